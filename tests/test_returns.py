"""What one cluster more must bring."""

import math

import numpy as np
import pytest
import torch

from asterism import DeepDPM
from asterism.functional.niw import label_statistics
from asterism.functional.pooling import pool_covariance
from asterism.functional.returns import equal_gain, worth
from asterism.methods.nonparametric.growth import Growth
from asterism.nn.splitmerge import SplitMergeNet

ROOM = 1000.0


@pytest.mark.parametrize("gain", [1e-9, 3.0, 400.0, 1e4, 1e9])
@pytest.mark.parametrize(("k", "other"), [(2, 3), (3, 2), (10, 11), (300, 40)])
def test_equal_gain_is_worth_as_much(gain, k, other):
    found = equal_gain(gain, k, other, ROOM, 0.3)
    assert math.copysign(1, found - gain) == math.copysign(1, other - k)
    assert worth(found, other, ROOM, 0.3) == pytest.approx(worth(gain, k, ROOM, 0.3), abs=1e-7)


def test_a_split_brings_a_share_of_the_average_where_clusters_are_close():
    price = equal_gain(1.0, 101, 102, 1e6, 0.2) - 1.0
    assert price == pytest.approx(0.2 / 100, rel=0.01)


def test_how_far_apart_clusters_lie_does_not_matter_once_they_are_far():
    near, far = (equal_gain(gain, 10, 11, ROOM, 0.2) - gain for gain in (1e4, 1e6))
    assert near == pytest.approx(far, rel=1e-6)
    assert near == pytest.approx(ROOM / 2 * 0.2 * math.log(10 / 9), rel=1e-6)


def test_ratio_of_variances_is_that_of_calinski_and_harabasz():
    """In one column, of clusters whose evidence is their likelihood alone."""
    total, within, n, k = 7.0, 2.0, 50, 4
    gain = n / 2 * math.log(total / within)
    index = (total - within) / (k - 1) / (within / (n - k))
    assert worth(gain, k, n, 1.0) + math.log(n - k) == pytest.approx(math.log(index))


def test_nothing_is_asked_where_there_is_one_cluster_or_nothing_gained_or_parsimony_is_zero():
    assert equal_gain(0.0, 1, 2, ROOM, 0.2) == 0
    assert equal_gain(5.0, 2, 1, ROOM, 0.2) == 5
    assert equal_gain(-3.0, 4, 5, ROOM, 0.2) == -3
    assert equal_gain(50.0, 4, 5, ROOM, 0.0) == 50
    assert worth(-1.0, 3, ROOM, 0.2) == -math.inf


@pytest.mark.parametrize("columns", [3, 45])
@pytest.mark.parametrize("settings", [{}, {"coarsening": 80}, {"scaling": "standard"}], ids=str)
def test_gain_in_the_coordinates_of_the_net_is_that_in_which_the_prior_was_found(settings, columns):
    chance = np.random.default_rng(0)
    means = 9 * chance.standard_normal((3, columns))
    X = chance.standard_normal((240, columns)) + means[np.arange(240) % 3]
    model = DeepDPM(n_components=3, **settings)
    x, prior, labels, alone = model._begin(X, None, 0)
    growth = Growth(
        torch.from_numpy(x),
        SplitMergeNet(x.shape[1], 3, width=4),
        prior,
        model.concentration,
        model._schedule(prior),
        0,
        alone=alone,
    )
    stats = label_statistics(growth.x, torch.from_numpy(labels), labels.max() + 1, "full")
    rows = model._scaled(X) @ np.linalg.qr(model.axes_)[0]
    found = pool_covariance(
        rows - rows.mean(axis=0),
        len(X) * model.row_weight_,
        0.005 * rows.var(axis=0),
        alpha=model.concentration,
        parsimony=model.parsimony,
    )
    assert len(stats.n) == found.labels.max() + 1 == 3
    assert growth._gain(stats) == pytest.approx(found.gain, rel=0.02)


def test_a_single_cluster_has_gained_nothing():
    X = np.random.default_rng(0).standard_normal((100, 2))
    model = DeepDPM(1, prior="data")
    x, prior, labels, alone = model._begin(X, None, 0)
    assert alone is None
    growth = Growth(
        torch.from_numpy(x), SplitMergeNet(2, 1, width=4), prior, 10.0, model._schedule(prior), 0
    )
    growth.start(labels)
    assert growth._gain(growth.stats) == pytest.approx(0, abs=1e-6)
    assert growth._price() == 0
