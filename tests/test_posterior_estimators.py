"""What estimators with a posterior keep of it."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from torch import nn

from asterism._validation import draw_seed
from asterism.base import AmortizedClusterer
from asterism.base import posterior as base_posterior
from asterism.base.posterior import PosteriorMixin
from asterism.exceptions import DataError
from asterism.functional.comparisons import (
    by_appearance,
)
from asterism.functional.posterior import (
    central_partition,
    coassignment,
    count_posterior,
    row_confidence,
)


class Nothing(nn.Module):
    """A network that knows nothing, for an estimator that needs none."""

    def __init__(self, dim=2):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))


class Coins(PosteriorMixin, AmortizedClusterer):
    """Two centres; every row takes a side by a coin of its own."""

    _module_class = Nothing
    _default_weights = "none"
    _per_cluster = ("centers_",)
    _parameter_constraints = {  # noqa: RUF012
        **AmortizedClusterer._parameter_constraints,
        **PosteriorMixin._parameter_constraints,
    }

    def __init__(
        self, *, n_samples=100, weights="default", scaling="none", device="cpu", random_state=None,
        verbose=False,
    ):  # fmt: skip
        self.n_samples = n_samples
        self.weights = weights
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _load_weights(self):
        if not hasattr(self, "module_"):
            self.module_, self.architecture_ = Nothing(), {"dim": 2}
            self.spread_, self.network_ = 1.0, str(self.weights)

    def _infer(self, batch, seed):
        answers = []
        for x, keep in zip(batch.x.numpy(), batch.keep.numpy(), strict=True):
            rows = x[keep].astype(np.float64)
            ends = rows[np.argsort(rows[:, 0])[[0, -1]]]
            answers.append({"rows_": rows, "centers_": ends})
        return answers

    def _log_responsibilities(self, X):
        return self._sides(self._aligned(X))

    def _sides(self, rows):
        log_r = -((rows[:, None] - self.centers_) ** 2).sum(axis=-1)
        return log_r - np.logaddexp.reduce(log_r, axis=1, keepdims=True)

    def _sample_partitions(self, n, seed):
        log_r = self._sides(self.rows_)
        chance = np.random.default_rng(seed).uniform(size=(n, len(log_r)))
        labels = (chance > np.exp(log_r[:, 0])).astype(np.int64)
        return labels, np.where(labels == 0, log_r[:, 0], log_r[:, 1]).sum(axis=1)


def two_sides(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.linspace(-1.2, 1.2, n), rng.normal(scale=0.1, size=n)])


def test_fit_keeps_the_draws_and_their_summaries():
    X = two_sides()
    model = Coins(random_state=0).fit(X)
    assert model.partitions_.shape == (100, 40)
    assert model.partitions_.dtype == np.int32
    drawn, log_probability = model._sample_partitions(100, draw_seed(0))
    np.testing.assert_array_equal(model.partitions_, by_appearance(drawn))
    np.testing.assert_allclose(model.log_probabilities_, log_probability)
    fresh, log_probability = model.samples(100)
    assert (by_appearance(fresh) != model.partitions_).any()
    np.testing.assert_array_equal(model.samples(100)[0], fresh)
    np.testing.assert_allclose(model.samples(100)[1], log_probability)
    assert model.log_probabilities_.dtype == np.float64
    np.testing.assert_allclose(model.k_posterior_, count_posterior(model.partitions_))
    np.testing.assert_allclose(model.confidence_, row_confidence(model.labels_, model.partitions_))
    rand = [adjusted_rand_score(model.labels_, c) for c in model.partitions_]
    assert model.overall_confidence_ == pytest.approx(np.mean(rand))
    np.testing.assert_allclose(model.coassignment_, coassignment(model.partitions_))
    # Rows in the middle are less sure than those at the ends.
    assert model.confidence_[18:22].mean() < model.confidence_[[0, 1, -2, -1]].mean()


def test_same_seed_same_draws_and_another_seed_others():
    X = two_sides()
    first, again, other = (Coins(random_state=s).fit(X).partitions_ for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_fit_many_and_fit_agree():
    sets = [two_sides(n, seed=n) for n in (30, 12, 21)]
    together = Coins(n_samples=7, random_state=3).fit_many(sets)
    for X, model in zip(sets, together, strict=True):
        alone = Coins(n_samples=7, random_state=3).fit(X)
        assert model.partitions_.shape == (7, len(X))
        np.testing.assert_array_equal(model.partitions_, alone.partitions_)
        np.testing.assert_allclose(model.confidence_, alone.confidence_)


def test_a_new_fit_draws_anew():
    model = Coins(n_samples=5, random_state=0).fit(two_sides(40))
    model.fit(two_sides(25))
    assert model.partitions_.shape == (5, 25)


def test_draws_survive_saving_and_pickling_and_clones_have_none(tmp_path):
    model = Coins(n_samples=9, random_state=0).fit(two_sides())
    copies = [Coins.load(model.save(tmp_path / "coins")), pickle.loads(pickle.dumps(model))]
    for copy in copies:
        for name in ("partitions_", "log_probabilities_", "k_posterior_", "confidence_"):
            found = getattr(copy, name)
            np.testing.assert_array_equal(found, getattr(model, name))
            assert found.dtype == getattr(model, name).dtype
        assert copy.overall_confidence_ == model.overall_confidence_
        assert copy.credible_set().radius == model.credible_set().radius
    twin = clone(model)
    assert twin.n_samples == 9
    assert not hasattr(twin, "partitions_")


def test_credible_set_and_central_partition_are_of_the_draws():
    model = Coins(random_state=0).fit(two_sides(8))
    ball = model.credible_set(level=0.5)
    assert 0.5 <= ball.mass < 1
    np.testing.assert_array_equal(ball.center, by_appearance(model.labels_[None])[0])
    np.testing.assert_array_equal(model.central_partition(), central_partition(model.partitions_))
    np.testing.assert_array_equal(
        model.central_partition("binder"), central_partition(model.partitions_, loss="binder")
    )
    with pytest.raises(DataError, match="level=2"):
        model.credible_set(level=2)


def test_what_infer_has_drawn_is_kept_and_may_give_the_labels():
    class Best(Coins):
        """Takes its labels from the likeliest draw."""

        def _infer(self, batch, seed):
            fixed = {
                "partitions_": np.array([[1, 0, 0], [2, 0, 2]]),
                "log_probabilities_": [-2, -1],
            }
            return [answer | fixed for answer in super()._infer(batch, seed)]

        def _fitted_labels(self, X):
            return self.partitions_[self.log_probabilities_.argmax()].astype(np.int64)

    model = Best(random_state=0).fit(two_sides(3))
    assert model.partitions_.tolist() == [[0, 1, 1], [0, 1, 0]]
    assert model.labels_.tolist() == [0, 1, 0]


def test_rows_of_no_cluster_are_by_themselves():
    class Noisy(Coins):
        """Gives one row to no cluster."""

        def _fitted_labels(self, X):
            return np.r_[-1, super()._fitted_labels(X)[1:]]

    model = Noisy(random_state=0).fit(two_sides(10))
    assert model.labels_[0] == -1
    apart = np.r_[5, model.labels_[1:]]
    np.testing.assert_allclose(model.confidence_, row_confidence(apart, model.partitions_))
    assert model.credible_set().center[0] == 0


def test_pairs_of_many_rows_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(base_posterior, "MOST_PAIRED", 30)
    model = Coins(n_samples=3, random_state=0).fit(two_sides(31))
    with pytest.raises(DataError, match=r"31 rows.*30 at most.*partitions_\[:, rows\]"):
        _ = model.coassignment_
    # Notebooks read every attribute to show an estimator.
    assert "partitions_" in model._repr_html_()
    assert Coins(n_samples=3).fit(two_sides(30)).coassignment_.shape == (30, 30)


def test_nothing_is_known_before_fit():
    for ask in (Coins().credible_set, Coins().central_partition, lambda: Coins().coassignment_):
        with pytest.raises(NotFittedError):
            ask()
    assert not hasattr(Coins(), "coassignment_")


@pytest.mark.parametrize("n_samples", [0, -1, 1.5, True, "many"])
def test_bad_numbers_of_samples_are_refused(n_samples):
    with pytest.raises(ValueError, match="n_samples"):
        Coins(n_samples=n_samples).fit(two_sides())
