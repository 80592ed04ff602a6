"""Parts of the pages that are made from the code, so that they cannot fall behind it.

{method-table}          the registry, with links to the API
{weights-table}         the weights in the package, from their cards
{dataset-table}         the catalogue of benchmark data
{cli-help} cluster      the help text of a command, as the terminal shows it
"""

from importlib import import_module
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

PUBLIC = ("", ".base", ".datasets", ".io", ".metrics", ".plotting", ".priors", ".training")

# What our classes inherit from scikit-learn and users call; the rest is its own affair.
INHERITED = {"fit_predict", "fit_transform", "get_feature_names_out", "get_params", "set_params"}


GALLERY = (
    "plot_default.py",
    "plot_toys.py",
    "plot_table.py",
    "plot_prior.py",
    "plot_set_transformer.py",
    "plot_filtering.py",
    "plot_posterior.py",
    "plot_ae_kmeans.py",
)


def gallery_order(name):
    """Place of an example in the gallery; those not named come last."""
    return GALLERY.index(name) if name in GALLERY else len(GALLERY)


class _Generated(SphinxDirective):
    """A directive whose content is text in the page's own markup."""

    def lines(self):
        raise NotImplementedError

    def run(self):
        parent = nodes.container()
        self.state.nested_parse(StringList(self.lines(), "generated"), 0, parent)
        return parent.children


def _table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"


class MethodTable(_Generated):
    def lines(self):
        from asterism.methods.registry import DEFAULT_METHOD, methods

        head = ("name", "estimator", "family", "K", "soft", "what it does")
        rows = []
        for method in methods():
            count = method.count
            estimator = f"{{py:class}}`~asterism.{method.class_name}`"
            soft = "yes" if method.soft else "no"
            family = f"[{method.family}]({_family_page(method.family)})"
            name = f"`{method.name}`"
            if method.name == DEFAULT_METHOD:
                name = f"[{name}](families/default.md), the default"
            rows.append((name, estimator, family, count, soft, method.summary))
        return list(_table(head, rows))


def _family_page(family):
    return {"baseline": "families/baselines.md"}.get(family, f"families/{family}.md")


class WeightsTable(_Generated):
    def lines(self):
        from asterism import pretrained_names
        from asterism.io import find_weights, read_card

        head = ("name", "estimator", "MB", "steps", "CPU minutes", "trained")
        rows = []
        for name in pretrained_names():
            path = find_weights(name)
            card = read_card(path)
            training = card.get("training", {})
            stages = [training, *training.get("before", [])]
            rows.append(
                (
                    f"`{name}`",
                    f"{{py:class}}`~asterism.{card['method']}`",
                    f"{path.stat().st_size / 1e6:.1f}",
                    sum(stage["steps"] for stage in stages),
                    round(sum(stage["cpu_seconds"] for stage in stages) / 60),
                    training.get("date", ""),
                )
            )
        return list(_table(head, rows))


class DatasetTable(_Generated):
    def lines(self):
        from asterism.datasets.catalogue import CATALOGUE

        rows = [
            (
                f"`{info.name}`",
                info.title,
                "suite" if info.is_suite else f"{info.n_samples}&nbsp;×&nbsp;{info.n_features}",
                "" if info.is_suite else info.n_classes,
                f"`{info.file}`",
                "yes" if info.public else "no",
            )
            for info in CATALOGUE.values()
        ]
        head = ("name", "what", "size", "classes", "file", "can be fetched")
        return list(_table(head, rows))


class CommandHelp(_Generated):
    optional_arguments = 4

    def lines(self):
        from typer.testing import CliRunner

        from asterism.cli.app import app

        command = [*self.arguments, "--help"]
        shown = CliRunner().invoke(app, command, prog_name="asterism", env={"COLUMNS": "80"})
        if shown.exit_code:
            raise self.error(f"asterism {' '.join(command)} failed: {shown.output}")
        typed = f"$ asterism {' '.join(command)}"
        return ["```console", typed, *shown.output.rstrip().splitlines(), "```"]


def _skip_foreign(app, what, name, obj, skip, options):  # noqa: ARG001
    """Leave out methods that come from scikit-learn, but for those users call."""
    home = getattr(obj, "__module__", None) or ""
    if home.startswith("sklearn") and name not in INHERITED:
        return True
    return None


def _miss_nothing(app):
    """Warn, and so fail the build, where a public name has no place in the API pages."""
    listed = {
        line.strip()
        for page in (Path(app.srcdir) / "api").glob("*.rst")
        for line in page.read_text().splitlines()
    }
    for package in (f"asterism{name}" for name in PUBLIC):
        for name in set(import_module(package).__all__) - listed - {"__version__"}:
            logging.getLogger(__name__).warning("%s.%s is not listed in docs/api", package, name)


def _skip_missing_include(app, docname, source):
    """Pages that show a file of the repository's root also build where it is not there."""
    for line in source[0].splitlines():
        if line.startswith("```{include} ../"):
            name = line.removeprefix("```{include} ").strip()
            if not (Path(app.srcdir) / name).exists():
                source[0] = f"# {docname.capitalize()}\n\nNot part of this copy.\n"


def setup(app):
    app.add_directive("method-table", MethodTable)
    app.add_directive("weights-table", WeightsTable)
    app.add_directive("dataset-table", DatasetTable)
    app.add_directive("cli-help", CommandHelp)
    app.connect("builder-inited", _miss_nothing)
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("source-read", _skip_missing_include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
