"""Estimators on benchmarks: scores against the truth, and the command that prints them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from asterism.cli.app import _run
from asterism.functional.oracles import oracle_labels, oracle_log_likelihood
from asterism.pipeline import evaluate, summarise
from asterism.priors import benchmark_batches
from command_line import succeed


class Knowing:
    """Says what it is told, data set after data set."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def fit_many(self, sets):
        return [SimpleNamespace(labels_=next(self.answers)[: len(x)]) for x in sets]


def batches(n=2):
    return list(benchmark_batches("filtering", n_batches=n))


def test_the_truth_scores_full_marks_and_the_oracle_nearly():
    drawn = batches()
    told = summarise(evaluate(Knowing([y.numpy() for b in drawn for y in b.labels]), drawn))
    assert told["ARI"] == told["NMI"] == told["exact K"] == 1
    assert told["error of K"] == told["share below 0.9"] == 0
    assert np.isnan(told["log-likelihood"])
    expected = np.mean([float(v) for b in drawn for v in oracle_log_likelihood(b)])
    assert told["oracle"] == pytest.approx(expected)
    oracle = [y.numpy() for b in drawn for y in oracle_labels(b)]
    assert 0.9 < summarise(evaluate(Knowing(oracle), drawn))["ARI"] < 1


def test_one_cluster_for_all_is_right_only_where_there_is_one():
    drawn = batches(3)
    rows = evaluate(Knowing(np.zeros((30, 2000), dtype=int)), drawn)
    assert {row.ari for row in rows if row.k_true > 1} == {0.0}
    told = summarise(rows)
    assert told["ARI where K = 1"] == 1
    assert told["error of K"] == pytest.approx(np.mean([row.k_true - 1 for row in rows]))


def test_the_command_prints_and_writes_the_same(tmp_path, capfd):
    path = tmp_path / "scores.json"
    arguments = ["evaluate", "set-transformer-mog", "--benchmark", "filtering", "--batches", "1"]
    out, _ = succeed(capfd, *arguments, "--json", "-q", "-o", str(path))
    written = json.loads(path.read_text())
    told = json.loads(out)
    assert written["summary"]["ARI"] == told["ARI"] > 0.5
    assert len(written["data sets"]) == told["data sets"] == 10
    plain, _ = succeed(capfd, *arguments, "-q")
    assert f"ARI              {told['ARI']:.4f}" in plain


def test_what_is_no_likelihood_is_not_told_as_one(tmp_path, capfd):
    class Silhouette(Knowing):
        def fit_many(self, sets):
            found = super().fit_many(sets)
            return [SimpleNamespace(**vars(model), score=lambda x: 0.7) for model in found]

    drawn = batches(1)
    rows = evaluate(Silhouette([y.numpy() for y in drawn[0].labels]), drawn)
    assert all(np.isnan(row.log_likelihood) for row in rows)
    path = tmp_path / "scores.json"
    arguments = ["evaluate", "set-transformer-mog", "--prior", "warped", "--batches", "1"]
    out, _ = succeed(capfd, *arguments, "--json", "-q", "-o", str(path))
    assert "NaN" not in out + path.read_text()  # which is no JSON
    assert json.loads(out)["oracle"] is None
    assert json.loads(out)["log-likelihood"] < 0


def test_likelihoods_are_those_of_the_data_whatever_the_map():
    class Dense(Knowing):
        def __init__(self, answers, projection):
            super().__init__(answers)
            self.told = {"has_density": True, "projection_": projection, "score": lambda _: -1.0}

        def fit_many(self, sets):
            return [SimpleNamespace(**vars(m), **self.told) for m in super().fit_many(sets)]

    drawn = batches(1)
    answers = [y.numpy() for y in drawn[0].labels]
    for row in evaluate(Dense(answers, 3 * np.eye(2)), drawn):
        assert row.log_likelihood == pytest.approx(-1 + 2 * np.log(3))
    for row in evaluate(Dense(answers, np.ones((3, 2))), drawn):  # a dimension is dropped
        assert np.isnan(row.log_likelihood)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["set-transformer-mog", "--benchmark", "none"], "choose from filtering, clustering"),
        (["set-transformer-mog", "--benchmark", "image-filtering"], "choose from filtering"),
        (["set-transformer-mog", "--set", "foo=1"], "--set foo: SetTransformerMixture has"),
        (["set-transformer-mog", "--set", "weights=x"], "--set weights: SetTransformerMixture"),
        (["set-transformer-mog", "--prior", "none"], "neither a prior nor one of mog, warped"),
        (["no-such-weights"], "no-such-weights"),
    ],
)
def test_bad_requests_are_refused(capfd, arguments, told):
    assert _run(["evaluate", *arguments]) == 2
    assert told in capfd.readouterr().err
