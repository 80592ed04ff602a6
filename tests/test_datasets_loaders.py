"""Every loader on a tiny file of the layout it expects."""

import bz2
import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets
from scipy import sparse

from asterism.datasets import (
    Dataset,
    frequent_term_tfidf,
    load_clustering_suite,
    load_coil20,
    load_dataset,
    load_deepdpm_embeddings,
    load_fashion_mnist,
    load_highdim_suite,
    load_mnist,
    load_newsgroups,
    load_omniglot,
    load_rcv1_sample,
    load_reuters,
    load_stickfigures,
    load_tabular_suite,
    load_usps,
)
from asterism.exceptions import DataError, DataNotFoundError

COUNTS = sparse.csr_matrix([[4, 0, 1, 0], [0, 3, 0, 1], [2, 2, 0, 0], [0, 0, 5, 0], [1, 0, 0, 9]])


def csr_arrays(matrix):
    return {
        "data": matrix.data.astype("uint8"),
        "indices": matrix.indices.astype("uint16"),
        "indptr": matrix.indptr.astype("int32"),
        "shape": np.array(matrix.shape, dtype="int32"),
    }


def tiny_files():
    """Arrays of each file, a few rows each."""
    rng = np.random.default_rng(0)
    digits = {
        "X": np.repeat(np.array([[0], [128], [255]], dtype="uint8"), 784, axis=1),
        "y": np.array([0, 1, 1], dtype="uint8"),
        "n_train": np.array(2),
    }
    text = csr_arrays(COUNTS) | {
        "y": np.array([0, 1, 0, 2, 1], dtype="uint8"),
        "trainIdx": np.array([0, 3]),
        "testIdx": np.array([1, 2, 4]),
    }
    ink = rng.integers(2, size=(4, 105 * 105), dtype="uint8")
    return {
        "mnist.npz": digits,
        "fashion_mnist.npz": digits,
        "usps.npz": {
            "X": np.array([[0] * 256, [2000] * 256], dtype="uint16"),
            "y": np.array([3, 4], dtype="uint8"),
            "n_train": np.array(1),
            "scale": np.array(2000.0),
        },
        "coil20.npz": {
            "X": np.array([[4080] * 1024, [1020] * 1024], dtype="uint16"),
            "y": np.array([0, 1], dtype="uint8"),
            "scale": np.array(4080.0),
        },
        "omniglot_small1.npz": {
            "X": np.full((4, 784), 255, dtype="uint8"),
            "packed105": np.packbits(ink, axis=1),
            "y": np.array([0, 1, 2, 2], dtype="int16"),
            "alphabet": np.array([0, 0, 1, 1], dtype="int8"),
            "alphabet_names": np.array(["Greek", "Latin"]),
            "drawer": np.array([1, 2, 1, 2], dtype="int8"),
        },
        "stickfigures.npz": {
            "X": np.full((3, 400), 51, dtype="uint8"),
            "y1": np.array([0, 1, 2], dtype="uint8"),
            "y2": np.array([2, 0, 1], dtype="uint8"),
        },
        "deepdpm_embeddings.npz": {
            "mnist_X": rng.normal(size=(4, 10)).astype("float32"),
            "mnist_y": np.array([0, 1, 2, 3], dtype="uint8"),
            "mnist_imb_idx": np.array([1, 3], dtype="int32"),
            "usps_X": rng.normal(size=(2, 10)).astype("float32"),
            "usps_y": np.array([0, 1], dtype="uint8"),
        },
        "reuters21578.npz": text,
        "newsgroups20.npz": text,
        "reuters_rcv_en1200.npz": {k: text[k] for k in ("data", "indices", "indptr", "shape", "y")},
        "clustering_suite_dev.npz": {
            "wut/x3/X": np.array([[-5, 1], [2, 3], [4, 4]], dtype="int16"),
            "wut/x3/labels0": np.array([1, 2, 0], dtype="uint8"),
            "wut/x3/labels1": np.array([1, 1, 2], dtype="uint8"),
            "fcps/tetra/X": np.eye(3, dtype="float32"),
            "fcps/tetra/labels0": np.array([1, 2, 3], dtype="uint8"),
        },
        "tabular_dev.npz": {
            "seeds/X": np.eye(3, dtype="float32"),
            "seeds/y": np.array([0, 1, 1], dtype="uint8"),
            "seeds/ftype": np.array([0, 2, 1], dtype="uint8"),
        },
        "highdim_dev.npz": {
            "orl/X": np.full((2, 9), 7, dtype="uint8"),
            "orl/y": np.array([0, 1], dtype="uint8"),
        },
    }


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Folder of tiny files, set as ASTERISM_DATA; an empty cache."""
    for name, arrays in tiny_files().items():
        np.savez(tmp_path / name, **arrays)
    monkeypatch.setenv("ASTERISM_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("ASTERISM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_idx(path, array):
    array = np.asarray(array, dtype=np.uint8)
    header = b"\x00\x00\x08" + bytes([array.ndim]) + np.array(array.shape, dtype=">i4").tobytes()
    path.write_bytes(gzip.compress(header + array.tobytes()))


class TestImages:
    @pytest.mark.parametrize("load", [load_mnist, load_fashion_mnist])
    def test_mnist_family(self, home, load):
        data = load()
        np.testing.assert_allclose(data.X[:, 0], [0, 128 / 255, 1], rtol=1e-6)
        assert data.X.dtype == np.float32
        assert data.y.tolist() == [0, 1, 1]
        assert data.train_mask.tolist() == [True, True, False]
        assert data.image_shape == (28, 28)
        assert len(data.target_names) == 10

    def test_mnist_from_public_files(self, tmp_path, nowhere):
        images = np.arange(3 * 784).reshape(3, 28, 28) % 256
        write_idx(tmp_path / "train-images-idx3-ubyte.gz", images[:2])
        write_idx(tmp_path / "train-labels-idx1-ubyte.gz", [5, 0])
        write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", images[2:])
        write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", [7])
        data = load_mnist(path=tmp_path)
        np.testing.assert_allclose(data.X, images.reshape(3, -1) / 255, rtol=1e-6)
        assert data.y.tolist() == [5, 0, 7]
        assert data.train_mask.tolist() == [True, True, False]

    def test_usps_from_public_files_equals_the_archive_scale(self, home, tmp_path):
        raw = tmp_path / "raw"
        raw.mkdir()
        for name, label, value in (("usps.bz2", 4, -1), ("usps.t.bz2", 5, 1)):
            line = f"{label} " + " ".join(f"{i}:{value}" for i in range(1, 257))
            (raw / name).write_bytes(bz2.compress(line.encode()))
        archive, public = load_usps(), load_usps(path=raw)
        np.testing.assert_array_equal(public.X, archive.X)
        np.testing.assert_array_equal(public.y, archive.y)
        np.testing.assert_array_equal(public.train_mask, archive.train_mask)

    def test_coil20_is_divided_by_its_scale(self, home):
        X, y = load_coil20(return_X_y=True)
        np.testing.assert_allclose(X[:, 0], [1, 0.25])
        assert y.tolist() == [0, 1]

    def test_omniglot_targets_and_resolutions(self, home):
        small, large = load_omniglot(), load_omniglot(target="alphabet", resolution=105)
        assert small.X.shape == (4, 784)
        assert small.X.max() == 1
        assert small.n_classes == 3
        assert small.groups.tolist() == [1, 2, 1, 2]
        assert large.X.shape == (4, 105 * 105)
        ink = np.unpackbits(tiny_files()["omniglot_small1.npz"]["packed105"], axis=1)
        np.testing.assert_array_equal(large.X, ink[:, : 105 * 105])
        assert large.y.tolist() == small.labels[1].tolist() == [0, 0, 1, 1]
        assert large.target_names == ("Greek", "Latin")

    @pytest.mark.parametrize("option", [{"resolution": 64}, {"target": "hand"}])
    def test_omniglot_refuses_unknown_options(self, home, option):
        with pytest.raises(DataError, match=str(next(iter(option.values())))):
            load_omniglot(**option)

    def test_stickfigures_combine_two_labellings(self, home):
        data = load_stickfigures()
        assert [labels.tolist() for labels in data.labels] == [[2, 3, 7], [0, 1, 2], [2, 0, 1]]
        np.testing.assert_allclose(data.X, 0.2, rtol=1e-6)

    def test_embeddings_and_their_imbalanced_variant(self, home):
        full, part = load_deepdpm_embeddings(), load_deepdpm_embeddings(imbalanced=True)
        np.testing.assert_array_equal(part.X, full.X[[1, 3]])
        assert part.y.tolist() == [1, 3]
        assert part.name == "deepdpm_embeddings/mnist_imbalanced"
        with pytest.raises(DataError, match="no imbalanced variant"):
            load_deepdpm_embeddings(embedding="usps", imbalanced=True)
        with pytest.raises(DataError, match="one of mnist, usps; got 'svhn'"):
            load_deepdpm_embeddings(embedding="svhn")


class TestText:
    def test_tfidf_by_hand(self):
        # Totals 7, 5, 6, 10: the second term is dropped.
        X = frequent_term_tfidf(COUNTS, max_terms=3)
        idf = 1 + np.log(6 / (1 + np.array([3, 2, 2])))
        expected = COUNTS.toarray()[:, [0, 2, 3]] * idf
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(X, expected, rtol=1e-6)
        assert X.dtype == np.float32

    def test_documents_without_frequent_terms_are_zero(self):
        assert frequent_term_tfidf(COUNTS, max_terms=1).ravel().tolist() == [0, 1, 0, 0, 1]

    def test_max_terms_must_be_positive(self):
        with pytest.raises(DataError, match="got 0"):
            frequent_term_tfidf(COUNTS, max_terms=0)

    def test_reuters_largest_classes(self, home):
        everything, largest = load_reuters(max_terms=3), load_reuters(n_classes=2, max_terms=2)
        assert everything.X.shape == (5, 3)
        assert everything.train_mask.tolist() == [True, False, False, True, False]
        assert largest.y.tolist() == [0, 1, 0, 1]
        kept = COUNTS[[0, 1, 2, 4]]
        np.testing.assert_array_equal(largest.X, frequent_term_tfidf(kept, max_terms=2))
        assert largest.train_mask.tolist() == [True, False, False, False]
        with pytest.raises(DataError, match=r"1\.\.3; got 4"):
            load_reuters(n_classes=4)

    def test_counts_stay_sparse_and_whole(self, home):
        data = load_newsgroups(features="counts")
        assert sparse.issparse(data.X)
        assert data.X.dtype == np.float32
        np.testing.assert_array_equal(data.X.toarray(), COUNTS.toarray())
        assert data.target_names[0] == "alt.atheism"

    def test_unknown_features_are_refused(self, home):
        with pytest.raises(DataError, match="'bert'"):
            load_reuters(features="bert")

    def test_rcv1_rows_have_length_one(self, home):
        data = load_rcv1_sample()
        np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1, rtol=1e-6)

    def test_newsgroups_fall_back_on_scikit_learn(self, nowhere, monkeypatch):
        parts = {
            "train": SimpleNamespace(data=["God and the graphics card"], target=np.array([1])),
            "test": SimpleNamespace(data=["graphics", "hockey"], target=np.array([1, 0])),
        }
        monkeypatch.setattr(
            sklearn.datasets, "fetch_20newsgroups", lambda subset, shuffle: parts[subset]
        )
        data = load_newsgroups(features="counts")
        assert data.X.shape == (3, 4)  # card, god, graphics, hockey
        assert data.y.tolist() == [1, 1, 0]
        assert data.train_mask.tolist() == [True, False, False]

    def test_newsgroups_offline(self, nowhere, monkeypatch):
        def unreachable(**_):
            raise OSError("no route")

        monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", unreachable)
        with pytest.raises(DataNotFoundError, match="no route"):
            load_newsgroups()
        monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", pytest.fail)
        with pytest.raises(DataNotFoundError, match=r"newsgroups20\.npz"):
            load_newsgroups(fetch=False)

    def test_rows_that_do_not_fit_are_refused(self, home):
        arrays = tiny_files()["reuters21578.npz"] | {"trainIdx": np.array([7])}
        np.savez(home / "reuters21578.npz", **arrays)
        with pytest.raises(DataError, match="do not fit together"):
            load_reuters()


class TestSuites:
    def test_all_references_with_noise_as_minus_one(self, home):
        suite = load_clustering_suite()
        assert suite.names == ("fcps/tetra", "wut/x3")
        item = suite["wut/x3"]
        assert [labels.tolist() for labels in item.labels] == [[0, 1, -1], [0, 0, 1]]
        assert item.y is item.labels[0]
        assert item.battery == "wut"
        assert item.X.dtype == np.float32
        assert item.X[0].tolist() == [-5, 1]

    def test_one_battery(self, home):
        assert [data.name for data in load_clustering_suite("fcps")] == ["fcps/tetra"]
        with pytest.raises(DataError, match="one of fcps, wut; got 'sipu'"):
            load_clustering_suite("sipu")

    def test_kinds_of_columns(self, home):
        item = load_tabular_suite()["seeds"]
        assert item.feature_kinds == ("continuous", "categorical", "binary")
        assert item.y.tolist() == [0, 1, 1]

    def test_highdim(self, home):
        (item,) = load_highdim_suite()
        assert (item.name, item.X.shape) == ("orl", (2, 9))

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"other": np.zeros(2)}, "holds no data set"),
            ({"a/b/X": np.eye(2)}, "lacks the array a/b/labels0"),
        ],
    )
    def test_foreign_archives_are_refused(self, tmp_path, arrays, message):
        np.savez(tmp_path / "s.npz", **arrays)
        with pytest.raises(DataError, match=message):
            list(load_clustering_suite(path=tmp_path / "s.npz"))

    def test_table_with_wrong_kinds_is_refused(self, tmp_path):
        arrays = {"t/X": np.eye(2), "t/y": np.arange(2), "t/ftype": np.array([0, 3])}
        np.savez(tmp_path / "t.npz", **arrays)
        with pytest.raises(DataError, match="0, 1 or 2"):
            load_tabular_suite(path=tmp_path / "t.npz")["t"]


class TestLoadDataset:
    def test_same_as_the_loader_with_its_options(self, home):
        by_name = load_dataset("reuters", n_classes=2, max_terms=2)
        np.testing.assert_array_equal(by_name.X, load_reuters(n_classes=2, max_terms=2).X)

    def test_item_of_a_suite_as_a_pair(self, home):
        X, y = load_dataset("clustering_suite/wut/x3", return_X_y=True)
        assert X.shape == (3, 2)
        assert y.tolist() == [0, 1, -1]

    def test_a_suite_is_not_a_data_set(self, home):
        with pytest.raises(DataError, match=r"load_tabular_suite\(\)"):
            load_dataset("tabular_suite")

    def test_origin_and_terms_come_along(self, home):
        data = load_dataset("fashion_mnist")
        assert isinstance(data, Dataset)
        assert (data.licence, "zalando" in data.source) == ("MIT", True)

    def test_unknown_option_is_refused(self, home):
        with pytest.raises(TypeError, match="n_clases"):
            load_dataset("reuters", n_clases=4)

    def test_truncated_file_is_refused(self, home):
        path = home / "usps.npz"
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(DataError, match=r"usps\.npz cannot be read"):
            load_usps()

    def test_labels_of_another_length_are_refused(self, home):
        arrays = tiny_files()["usps.npz"] | {"y": np.arange(5)}
        np.savez(home / "usps.npz", **arrays)
        with pytest.raises(DataError, match="2 rows"):
            load_usps()
