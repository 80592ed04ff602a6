"""Labels and links given to the default method."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from asterism import Asterism
from asterism.exceptions import AsterismWarning, DataError
from asterism.methods.asterism.knowledge import Knowledge


def blobs(n=300, centers=4, dim=3, seed=0, spread=0.6):
    return make_blobs(n, dim, centers=centers, cluster_std=spread, random_state=seed)


def test_labels_and_links_are_respected_in_one_call():
    X, y = make_moons(200, noise=0.2, random_state=0)
    known = np.full(200, -1)
    known[:20] = y[:20]
    same, apart = [(30, 40), (40, 50)], [(30, 60)]
    model = Asterism(random_state=0).fit(X, known, must_link=same, cannot_link=apart)
    labels = model.labels_
    np.testing.assert_array_equal(
        labels[:20, None] == labels[None, :20], y[:20, None] == y[None, :20]
    )
    assert labels[30] == labels[40] == labels[50] != labels[60]
    np.testing.assert_array_equal(model.predict(X), labels)
    plain = Asterism(random_state=0).fit(X)
    score = adjusted_rand_score
    assert score(y[20:], labels[20:]) >= score(y[20:], plain.labels_[20:]) - 0.05


def test_labels_of_rows_outside_the_context_count_too():
    X, y = blobs(400, spread=3.0)
    model = Asterism(context_size=64, random_state=0).fit(X, y)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_unknown_may_be_missing_and_classes_may_be_words():
    knowledge = Knowledge.of(4, np.array(["a", None, "b", "a"], dtype=object))
    np.testing.assert_array_equal(knowledge.classes, [0, -1, 1, 0])
    knowledge = Knowledge.of(4, ["a", -1, "b", np.nan])
    np.testing.assert_array_equal(knowledge.classes, [0, -1, 1, -1])
    with pytest.warns(AsterismWarning, match="fractions"):
        assert (Knowledge.of(3, np.array([0.5, 1.5, 2.0])).classes == -1).all()
    with pytest.raises(DataError, match="600 classes"):
        Knowledge.of(600, np.arange(600))
    knowledge = Knowledge.of(3, np.array(["x", "y", "x"]))
    np.testing.assert_array_equal(knowledge.classes, [0, 1, 0])
    knowledge = Knowledge.of(3, [np.nan, 2.0, -1.0])
    np.testing.assert_array_equal(knowledge.classes, [-1, 0, -1])
    knowledge = Knowledge.of(3, np.array(["x", "", "x"]))
    np.testing.assert_array_equal(knowledge.classes, [0, -1, 0])


@pytest.mark.parametrize("y", [np.array([0, -2, 1]), [0, -2, "x"], np.array([0, -2.0, np.nan])])
def test_unknown_is_minus_one_and_no_other_number(y):
    with pytest.raises(DataError, match=r"y holds -2: classes are 0, 1, .* -1 where unknown"):
        Knowledge.of(3, y)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"y": [0, 1]}, "y has shape"),
        ({"must_link": [(0, 99)]}, "must_link names row 99"),
        ({"cannot_link": [(-2, 1)]}, "cannot_link names row -2"),
        ({"must_link": [0, 1]}, "pairs of row numbers"),
        ({"must_link": [(0.5, 1.0)]}, "pairs of row numbers"),
        ({"must_link": [(0, 1)], "cannot_link": [(0, 1)]}, "rows 0 and 1 must be apart"),
        ({"y": [0, 0] + [-1] * 38, "cannot_link": [(0, 1)]}, "rows 0 and 1 must be apart"),
    ],
)
def test_wrong_knowledge_is_refused(arguments, told):
    X, _ = blobs(40)
    with pytest.raises(DataError, match=told):
        Asterism().fit(X, **arguments)


def test_a_contradiction_is_told_in_row_numbers_of_the_whole_table():
    X, _ = blobs(400)
    with pytest.raises(DataError, match="rows 350 and 399 must be apart"):
        Asterism(context_size=32).fit(X, must_link=[(350, 399)], cannot_link=[(350, 399)])


def test_few_labels_do_not_shatter_what_has_little_structure():
    X = np.random.RandomState(0).randn(200, 3)
    classes = np.digitize(X[:, 0], [-1, -0.3, 0, 0.3, 1])
    known = np.full(200, -1)
    for k in range(6):
        known[np.flatnonzero(classes == k)[:3]] = k
    assert 6 <= Asterism(random_state=0).fit(X, known).n_clusters_ <= 10


def test_all_rows_may_be_linked_where_all_are_read():
    X, _ = blobs(60)
    labels = Asterism(context_size=64).fit_predict(X, must_link=np.arange(60).reshape(30, 2))
    assert (labels[::2] == labels[1::2]).all()


def test_too_many_links_for_a_context_are_refused():
    X, _ = blobs(200)
    pairs = np.arange(100).reshape(50, 2)
    with pytest.raises(DataError, match="raise context_size"):
        Asterism(context_size=64).fit(X, must_link=pairs)
