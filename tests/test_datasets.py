"""Toys, the data set record, file formats, and the search for files; nothing is downloaded."""

import bz2
import gzip
import hashlib
import inspect
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from asterism import datasets
from asterism.datasets import Dataset, Suite, dataset_info, dataset_names, load_toy, toy_names
from asterism.datasets.catalogue import CATALOGUE
from asterism.datasets.files import Source, locate
from asterism.datasets.formats import (
    csr_from_arrays,
    npz_keys,
    read_idx,
    read_npz,
    read_svmlight,
)
from asterism.datasets.generic import LOADERS, SUITE_LOADERS
from asterism.exceptions import DataError, DataNotFoundError
from asterism.io.files import cache_directory


def idx_bytes(array):
    """Encode an array of bytes as an idx file."""
    array = np.asarray(array, dtype=np.uint8)
    sizes = np.array(array.shape, dtype=">i4").tobytes()
    return b"\x00\x00\x08" + bytes([array.ndim]) + sizes + array.tobytes()


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path, monkeypatch):
    """Keep the tests away from the data and the cache of whoever runs them."""
    monkeypatch.delenv("ASTERISM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


TOY_CLUSTERS = {
    "blobs": 5,
    "anisotropic": 3,
    "varied": 3,
    "unbalanced": 3,
    "noisy_blobs": 3,
    "moons": 2,
    "circles": 2,
    "spirals": 3,
    "rings_and_blob": 3,
    "uniform": 1,
}


class TestToys:
    @pytest.mark.parametrize("name", toy_names())
    @pytest.mark.parametrize("n_samples", [10, 101])
    def test_contract(self, name, n_samples):
        toy = load_toy(name, n_samples, random_state=0)
        assert toy.X.shape == (n_samples, 2)
        assert toy.X.dtype == np.float32
        assert toy.y.dtype == np.int64
        assert toy.n_classes == TOY_CLUSTERS[name]
        assert np.isfinite(toy.X).all()

    @pytest.mark.parametrize("name", toy_names())
    def test_one_seed_decides_everything(self, name):
        first, second, other = (load_toy(name, 50, random_state=seed) for seed in (3, 3, 4))
        np.testing.assert_array_equal(first.X, second.X)
        np.testing.assert_array_equal(first.y, second.y)
        assert not np.array_equal(first.X, other.X)

    def test_noise_is_marked(self):
        assert np.sum(load_toy("noisy_blobs", 200, random_state=0).y == -1) == 20

    def test_unbalanced_proportions(self):
        np.testing.assert_array_equal(
            np.bincount(load_toy("unbalanced", 100, random_state=0).y), [80, 15, 5]
        )

    def test_pair_on_request(self):
        X, y = load_toy("moons", 20, random_state=0, return_X_y=True)
        assert X.shape == (20, 2)
        assert y.shape == (20,)

    def test_unknown_or_too_small_is_refused(self):
        with pytest.raises(DataError, match=r"'moon'.*moons"):
            load_toy("moon")
        with pytest.raises(DataError, match="at least 10; got 3"):
            load_toy("moons", 3)


class TestDataset:
    def test_common_form(self):
        X, y = np.array([[1, 2]], dtype="uint8"), np.array([0], dtype="uint8")
        data = Dataset.build("d", X, y)
        assert (data.X.dtype, data.y.dtype) == (np.float32, np.int64)
        assert (data.n_samples, data.n_features, data.n_classes) == (1, 2, 1)
        with pytest.raises(AttributeError):
            data.name = "other"

    def test_noise_is_no_class(self):
        assert Dataset.build("d", np.zeros((3, 1)), np.array([-1, 0, 1])).n_classes == 2

    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            (np.zeros(3), np.zeros(3, int), "table of numbers"),
            (np.array([["a"]]), np.zeros(1, int), "table of numbers"),
            (np.zeros((3, 2)), np.zeros(2, int), "3 rows"),
            (np.zeros((3, 2)), np.zeros(3), "float64"),
            (np.zeros((3, 2)), np.zeros((3, 1), int), r"\(3, 1\)"),
        ],
    )
    def test_arrays_that_do_not_fit_are_refused(self, X, y, message):
        with pytest.raises(DataError, match=message):
            Dataset.build("d", X, y)

    def test_suite_reads_when_asked(self):
        read = []

        def reader(name):
            read.append(name)
            return Dataset.build(name, np.zeros((1, 1)), np.zeros(1, int))

        suite = Suite("s", {"a": lambda: reader("a"), "b": lambda: reader("b")})
        assert (len(suite), suite.names, "a" in suite, "c" in suite) == (2, ("a", "b"), True, False)
        assert not read
        assert suite["b"].name == "b"
        assert read == ["b"]
        assert [data.name for data in suite] == ["a", "b"]
        with pytest.raises(DataError, match="no data set 'c'; it has a, b"):
            suite["c"]


class TestCatalogue:
    def test_every_row_has_a_loader(self):
        assert set(LOADERS) == set(dataset_names())
        assert set(SUITE_LOADERS) == set(CATALOGUE) - set(dataset_names())

    def test_every_loader_is_public_and_documented(self):
        for name, loader in (LOADERS | SUITE_LOADERS).items():
            assert getattr(datasets, f"load_{name}") is loader
            assert loader.__name__ == f"load_{name}"
            assert inspect.getdoc(loader)

    def test_checksums_have_their_length(self):
        for info in CATALOGUE.values():
            assert len(bytes.fromhex(info.sha256)) == 32
            assert all(len(bytes.fromhex(file.md5)) == 16 for file in info.public)

    def test_signature_shows_shared_and_own_parameters(self):
        parameters = inspect.signature(datasets.load_reuters).parameters
        assert list(parameters)[:4] == ["path", "fetch", "verify", "return_X_y"]
        assert parameters["n_classes"].default is None
        assert parameters["fetch"].annotation is bool

    def test_misspelt_name_gets_a_hint(self):
        with pytest.raises(DataError, match="Did you mean 'fashion_mnist'"):
            dataset_info("fashion-mnist")


class TestFormats:
    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_idx_round_trip(self, tmp_path, suffix):
        array = np.arange(24).reshape(2, 3, 4)
        path = tmp_path / f"images-idx3-ubyte{suffix}"
        path.write_bytes(gzip.compress(idx_bytes(array)) if suffix else idx_bytes(array))
        np.testing.assert_array_equal(read_idx(path), array)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "not an idx file"),
            (b"PK\x03\x04", "not an idx file"),
            (idx_bytes([[1, 2], [3, 4]])[:-1], r"announces \(2, 2\) and holds 3"),
            (idx_bytes([[1, 2], [3, 4]])[:9], "header of 12 bytes"),
        ],
    )
    def test_bad_idx_is_refused(self, tmp_path, content, message):
        path = tmp_path / "labels"
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_idx(path)

    def test_truncated_gzip_is_refused(self, tmp_path):
        path = tmp_path / "labels.gz"
        path.write_bytes(gzip.compress(idx_bytes(range(200)))[:-20])
        with pytest.raises(DataError, match="cut short"):
            read_idx(path)

    def test_svmlight_in_bz2(self, tmp_path):
        path = tmp_path / "two.bz2"
        path.write_bytes(bz2.compress(b"1 1:-1 3:0.5\n10 2:1\n"))
        X, y = read_svmlight(path, n_features=3)
        np.testing.assert_array_equal(X, [[-1, 0, 0.5], [0, 1, 0]])
        np.testing.assert_array_equal(y, [1, 10])

    @pytest.mark.parametrize(
        "content", [b"no compression", bz2.compress(b"1 7:1\n"), bz2.compress(b"1 1:1\n" * 99)[:-9]]
    )
    def test_bad_svmlight_is_refused(self, tmp_path, content):
        path = tmp_path / "bad.bz2"
        path.write_bytes(content)
        with pytest.raises(DataError, match="3 features"):
            read_svmlight(path, n_features=3)

    def test_npz_reads_what_is_asked(self, tmp_path):
        path = tmp_path / "a.npz"
        np.savez(path, X=np.eye(2), y=np.arange(2))
        assert npz_keys(path) == ("X", "y")
        assert set(read_npz(path, "X", "scale?")) == {"X"}
        with pytest.raises(DataError, match=r"lacks the arrays \['z'\]; it has X, y"):
            read_npz(path, "X", "z")

    def test_npz_with_pickles_is_refused(self, tmp_path):
        path = tmp_path / "a.npz"
        np.savez(path, X=np.array([{}], dtype=object))
        with pytest.raises(DataError, match="cannot be read"):
            read_npz(path, "X")

    @pytest.mark.parametrize("kept", [0, 10, -30])
    def test_truncated_npz_is_refused(self, tmp_path, kept):
        path = tmp_path / "a.npz"
        np.savez_compressed(path, X=np.arange(1000))
        path.write_bytes(path.read_bytes()[:kept])
        with pytest.raises(DataError, match="cannot be read"):
            read_npz(path, "X")

    def test_damaged_body_of_npz_is_refused(self, tmp_path):
        path = tmp_path / "a.npz"
        np.savez_compressed(path, X=np.random.default_rng(0).integers(9, size=1000))
        content = bytearray(path.read_bytes())
        content[200:260] = bytes(60)
        path.write_bytes(content)
        with pytest.raises(DataError, match="cannot be read"):
            read_npz(path, "X")

    def test_csr_round_trip_and_inconsistency(self):
        matrix = sparse.csr_matrix([[0, 2, 0], [1, 0, 3]])
        arrays = {key: getattr(matrix, key) for key in ("data", "indices", "indptr")}
        arrays["shape"] = np.array(matrix.shape)
        np.testing.assert_array_equal(csr_from_arrays(arrays).toarray(), matrix.toarray())
        for key, value in {"shape": [2, 2], "indptr": [0, 1]}.items():
            with pytest.raises(DataError, match="inconsistent"):
                csr_from_arrays(arrays | {key: np.array(value)})


class TestLocate:
    info = CATALOGUE["usps"]

    def put(self, folder, *names):
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_bytes(b"content")
        return folder

    def test_order_path_then_environment_then_cache(self, tmp_path, monkeypatch):
        offline = Source(fetch=False)
        cached = self.put(cache_directory("datasets") / "usps", "usps.bz2", "usps.t.bz2")
        assert locate(self.info, offline) == (cached / "usps.bz2", cached / "usps.t.bz2")
        home = self.put(tmp_path / "home", "usps.npz")
        monkeypatch.setenv("ASTERISM_DATA", str(home))
        assert locate(self.info, offline) == (home / "usps.npz",)
        own = self.put(tmp_path / "own", "mine.npz") / "mine.npz"
        assert locate(self.info, Source(path=own)) == (own,)

    def test_path_may_be_a_folder_of_public_files(self, tmp_path):
        folder = self.put(tmp_path / "raw", "usps.bz2", "usps.t.bz2")
        assert locate(self.info, Source(path=folder)) == (
            folder / "usps.bz2",
            folder / "usps.t.bz2",
        )

    def test_missing_set_says_where_it_was_looked_for_and_how_to_get_it(self, monkeypatch):
        with pytest.raises(DataNotFoundError) as caught:
            locate(self.info, Source(fetch=False))
        for part in ("usps.npz", "ASTERISM_DATA", "not set", self.info.public[0].url, "LIBSVM"):
            assert part in str(caught.value)
        monkeypatch.setenv("ASTERISM_DATA", "/elsewhere")
        with pytest.raises(DataNotFoundError, match="ASTERISM_DATA=/elsewhere"):
            locate(self.info, Source(fetch=False))

    def test_missing_path_is_never_replaced_by_a_download(self, tmp_path, monkeypatch):
        monkeypatch.setattr("asterism.datasets.files._download", pytest.fail)
        with pytest.raises(DataNotFoundError, match=r"path=.*absent\.npz"):
            locate(self.info, Source(path=tmp_path / "absent.npz"))

    def test_verify_compares_checksums(self, tmp_path):
        folder = self.put(tmp_path / "home", "usps.npz")
        with pytest.raises(DataError, match="not the catalogued file"):
            locate(self.info, Source(path=folder, verify=True))
        digest = hashlib.sha256(b"content").hexdigest()
        known = replace(self.info, sha256=digest)
        assert locate(known, Source(path=folder, verify=True)) == (folder / "usps.npz",)

    def test_download_goes_to_the_cache_with_its_checksum(self, monkeypatch):
        pooch = pytest.importorskip("pooch")
        asked = []

        def retrieve(url, known_hash, fname, path):
            asked.append((url, known_hash))
            return str(path / fname)

        monkeypatch.setattr(pooch, "retrieve", retrieve)
        files = locate(self.info, Source())
        assert files == tuple(
            cache_directory("datasets") / "usps" / f.name for f in self.info.public
        )
        assert asked == [(f.url, f"md5:{f.md5}") for f in self.info.public]

    @pytest.mark.parametrize("error", [OSError("no route"), ValueError("hash differs")])
    def test_failed_download_says_so(self, monkeypatch, error):
        pooch = pytest.importorskip("pooch")

        def retrieve(*_, **__):
            raise error

        monkeypatch.setattr(pooch, "retrieve", retrieve)
        with pytest.raises(DataNotFoundError, match=f"failed: {error}"):
            locate(self.info, Source())

    def test_set_without_public_address_is_not_fetched(self):
        with pytest.raises(DataNotFoundError, match=r"coil20\.npz"):
            locate(CATALOGUE["coil20"], Source(fetch=True))
