# Everything from nothing but Python, pip and make; nothing is done twice.
#   make demo   cluster a bundled table: labels, a picture and a report in demo/
#   make test   lint, types, tests
#   make setup | lint | types | docs | bench | clean

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2

.PHONY: setup demo test lint types docs bench clean

setup: $(VENV)/.dev

# Stamps: a target is made again only when the project's requirements change.
$(VENV)/.user: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch --editable '.[data,plot]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch --editable '.[dev]'
	@touch $(VENV)/.user $@

$(VENV)/.docs: $(VENV)/.user
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

demo: demo/stars.html
	@echo
	@echo "Labels:  demo/stars.clusters.csv"
	@echo "Picture: demo/stars.png"
	@echo "Report:  demo/stars.html"

demo/stars.html: $(VENV)/.user examples/stars.csv $(shell find src -name '*.py')
	@mkdir -p demo
	$(BIN)/asterism cluster examples/stars.csv --id star --label kind --drop spectral_class \
	    --output demo/stars.clusters.csv --plot demo/stars.png --report demo/stars.html \
	    --save demo/stars-model

test: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --quiet

lint: $(VENV)/.dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

types: $(VENV)/.dev
	$(BIN)/mypy --no-error-summary

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html
	$(BIN)/python docs/check_pages.py
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.user
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/set_transformer.py
	$(BIN)/python benchmarks/ae_kmeans.py
	$(BIN)/python benchmarks/suites.py
	$(BIN)/python benchmarks/objects.py
	$(BIN)/python benchmarks/opinions.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/validity.py
	$(BIN)/python benchmarks/few_labels.py
	$(BIN)/python benchmarks/robustness.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/filtering.py
	$(BIN)/python benchmarks/units.py
	$(BIN)/python benchmarks/many.py
	$(BIN)/python benchmarks/posteriors.py
	$(BIN)/python benchmarks/columns.py

clean:
	rm -rf $(VENV) demo docs/_build docs/gallery docs/api/generated
