"""What one cluster more must bring."""

import itertools
import math

import pytest

from asterism.functional.returns import equal_gain

N, D = 100.0, 10


@pytest.mark.parametrize("gain", [1e-6, 3.0, 400.0, 1e4, 1e9])
@pytest.mark.parametrize("axes", [1, 2, 3, 10, 45])
def test_steps_lead_up_and_down_the_same_way(gain, axes):
    """In one step, in several, and back again."""
    for k, other in itertools.permutations((2, 3, 4, 7, 24, 300), 2):
        found = equal_gain(gain, k, other, N, axes, 0.3)
        assert math.copysign(1, found - gain) == math.copysign(1, other - k)
        assert equal_gain(found, other, k, N, axes, 0.3) == pytest.approx(gain, rel=1e-6)
        middle = equal_gain(gain, k, 5, N, axes, 0.3)
        assert equal_gain(middle, 5, other, N, axes, 0.3) == pytest.approx(found, rel=1e-6)


def test_a_split_brings_a_share_of_the_average_where_clusters_are_close():
    price = equal_gain(1.0, 101, 102, 1e5, D, 0.2) - 1.0
    assert price == pytest.approx(0.2 / 100, rel=0.01)


@pytest.mark.parametrize(("k", "axes"), [(2, 2), (3, 4), (6, 10), (40, 10)])
def test_how_far_apart_clusters_lie_does_not_matter_once_they_are_far(k, axes):
    near, far = (equal_gain(gain, k, k + 1, N, D, 0.2) - gain for gain in (1e4, 1e6))
    assert near == pytest.approx(far, rel=1e-6)
    assert near == pytest.approx(N * axes / 2 * 0.2 * math.log(k / (k - 1)), rel=1e-6)


def test_ratio_of_variances_is_that_of_calinski_and_harabasz():
    """In one column, of clusters whose evidence is their likelihood alone."""
    total, within, n, k = 7.0, 2.0, 50, 4
    gain = n / 2 * math.log(total / within)
    index = (total - within) / (k - 1) / (within / (n - k))
    two = equal_gain(gain, k, 2, n, 1, 1.0)
    assert math.expm1(2 * two / n) * (n - k) == pytest.approx(index)


def test_nothing_is_asked_where_there_is_one_cluster_or_nothing_gained_or_parsimony_is_zero():
    assert equal_gain(0.0, 1, 2, N, D, 0.2) == 0
    assert equal_gain(5.0, 2, 1, N, D, 0.2) == 5
    assert equal_gain(-3.0, 4, 5, N, D, 0.2) == -3
    assert equal_gain(50.0, 4, 5, N, D, 0.0) == 50


@pytest.mark.parametrize("parsimony", [200.0, 1e3, 1e6])
@pytest.mark.parametrize("axes", [2, 10, 32])
def test_any_parsimony_may_be_asked_for(parsimony, axes):
    for k, other in ((10, 2), (40, 2), (3, 2), (2, 40)):
        found = equal_gain(500.0, k, other, 4000, axes, parsimony)
        assert math.isfinite(found)
        assert found >= 500.0 if other > k else 0 <= found <= 500.0
