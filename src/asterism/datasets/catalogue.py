"""The table of benchmark data sets: what they are, where they come from, what file holds them.

Each row names the ``.npz`` file looked for, the SHA-256 of the file the project's own figures were
made with, the size (0 where a suite has many), the arrays inside, the origin and the terms. Rows
with ``public`` files can be downloaded and are checked against those MD5 sums.
"""

from dataclasses import dataclass
from difflib import get_close_matches

from asterism.exceptions import DataError

__all__ = ["CATALOGUE", "DatasetInfo", "PublicFile", "dataset_info", "dataset_names"]


@dataclass(frozen=True)
class PublicFile:
    """A file at a stable public address."""

    name: str
    md5: str
    base_url: str

    @property
    def url(self) -> str:
        """Full address."""
        return self.base_url + self.name


@dataclass(frozen=True)
class DatasetInfo:
    """One row of the catalogue."""

    name: str
    title: str
    file: str
    sha256: str
    arrays: str
    source: str
    licence: str
    n_samples: int = 0
    n_features: int = 0
    n_classes: int = 0
    is_suite: bool = False
    public: tuple[PublicFile, ...] = ()


def _idx_files(base_url: str, *md5: str) -> tuple[PublicFile, ...]:
    names = (
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    )
    return tuple(PublicFile(n, m, base_url) for n, m in zip(names, md5, strict=True))


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
_NOT_STATED = "not stated by the source"
_SPARSE = "data, indices, indptr, shape (CSR), y"

_ROWS = (
    DatasetInfo(
        name="mnist",
        title="MNIST handwritten digits, 28x28",
        file="mnist.npz",
        sha256="c7b204b9bf8d4cbf1f60997c3d5e4e18647f07fe0114da744000099412c49239",
        arrays="X uint8 0-255 (70000, 784), y, n_train",
        source="LeCun, Cortes & Burges, the MNIST database",
        licence=_NOT_STATED,
        n_samples=70000,
        n_features=784,
        n_classes=10,
        public=_idx_files(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    DatasetInfo(
        name="fashion_mnist",
        title="Fashion-MNIST articles of clothing, 28x28",
        file="fashion_mnist.npz",
        sha256="7237f188c83559caad37a81b0c5312ec8bdd2ef64398b4f82dda0f783eca9c53",
        arrays="X uint8 0-255 (70000, 784), y, n_train",
        source="Xiao, Rasul & Vollgraf 2017, github.com/zalandoresearch/fashion-mnist",
        licence="MIT",
        n_samples=70000,
        n_features=784,
        n_classes=10,
        public=_idx_files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
    DatasetInfo(
        name="usps",
        title="USPS handwritten digits, 16x16",
        file="usps.npz",
        sha256="1006185830317e56a4f2a55e7d8e0e28420efceb00602a215fabd0d5bc8616f8",
        arrays="X (9298, 256) to be divided by scale, y, n_train",
        source="Hull 1994; LIBSVM data sets, multiclass, usps",
        licence=_NOT_STATED,
        n_samples=9298,
        n_features=256,
        n_classes=10,
        public=(
            PublicFile("usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197", _LIBSVM),
            PublicFile("usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118", _LIBSVM),
        ),
    ),
    DatasetInfo(
        name="coil20",
        title="COIL-20: 20 objects seen from 72 angles, 32x32",
        file="coil20.npz",
        sha256="ad66db35abace6340d29aed7e858bb6f8722e2f99cd604a3c563745f3726d335",
        arrays="X (1440, 1024) to be divided by scale, y",
        source="Nene, Nayar & Murase 1996; github.com/jundongl/scikit-feature, COIL20.mat",
        licence=_NOT_STATED,
        n_samples=1440,
        n_features=1024,
        n_classes=20,
    ),
    DatasetInfo(
        name="omniglot",
        title="Omniglot, background small 1: 136 characters of 5 alphabets by 20 hands",
        file="omniglot_small1.npz",
        sha256="1aa33527bf7e267db89dcdea4975494633038d8b35fcf74925d0675626811ddf",
        arrays="X uint8 ink 0-255 (2720, 784), packed105 (105x105 bits), y, alphabet, "
        "alphabet_names, drawer",
        source="Lake et al. 2015; github.com/brendenlake/omniglot, "
        "python/images_background_small1.zip",
        licence="MIT",
        n_samples=2720,
        n_features=784,
        n_classes=136,
    ),
    DatasetInfo(
        name="stickfigures",
        title="Stick figures with two independent labellings, 20x20",
        file="stickfigures.npz",
        sha256="464f693fe8cbaec945c99fdd69de846540a40e2a9f895a7420976660322ae3aa",
        arrays="X uint8 0-255 (900, 400), y1, y2",
        source="Günnemann et al. 2014; github.com/collinleiber/ClustPy",
        licence="BSD-3-Clause (repository)",
        n_samples=900,
        n_features=400,
        n_classes=9,
    ),
    DatasetInfo(
        name="deepdpm_embeddings",
        title="Embeddings published with DeepDPM: MNIST, Fashion-MNIST, USPS, ImageNet-50",
        file="deepdpm_embeddings.npz",
        sha256="09015eafa7851d634d0a5242b2bdbb13068ef41f9d54188cf3e4b187dbc0bac6",
        arrays="for each embedding <name>_X, <name>_y and perhaps <name>_imb_idx",
        source="Ronen, Finder & Freifeld 2022; github.com/BGU-CS-VIL/DeepDPM, "
        "pretrained_embeddings",
        licence="MIT",
        n_samples=70000,
        n_features=10,
        n_classes=10,
    ),
    DatasetInfo(
        name="reuters",
        title="Reuters-21578, documents of one topic",
        file="reuters21578.npz",
        sha256="1ad2cf859c55feb7283da986aa54f708771e5da9cea963cc67385c14d32caed8",
        arrays=f"{_SPARSE} with classes by decreasing size, trainIdx, testIdx",
        source="Lewis 1997; github.com/Saeidhoseinipour/NMTFcoclust, Datasets/Reuters21578.mat",
        licence=_NOT_STATED,
        n_samples=8293,
        n_features=18933,
        n_classes=65,
    ),
    DatasetInfo(
        name="rcv1_sample",
        title="English sample of RCV1/RCV2, 200 documents of each of 6 topics",
        file="reuters_rcv_en1200.npz",
        sha256="c2cd95a66a46901e55b36e9cd730022866af496dd4d346be3066aca9d4cef0c3",
        arrays=_SPARSE,
        source="Amini et al. 2009; github.com/ChuanbinZhang/Multi-view-datasets, Reuters-1200.mat",
        licence=_NOT_STATED,
        n_samples=1200,
        n_features=2000,
        n_classes=6,
    ),
    DatasetInfo(
        name="newsgroups",
        title="20 Newsgroups, split by date",
        file="newsgroups20.npz",
        sha256="f5a6651eca385fa0baba94dee8182d3c0fa90acf9bdde684d277fd3ea30e4b5f",
        arrays=f"{_SPARSE}, trainIdx, testIdx",
        source="Lang 1995; github.com/Saeidhoseinipour/NMTFcoclust, Datasets/20Newsgroups.mat, "
        "or scikit-learn's fetch_20newsgroups",
        licence=_NOT_STATED,
        n_samples=18846,
        n_features=26214,
        n_classes=20,
    ),
    DatasetInfo(
        name="clustering_suite",
        title="Low-dimensional benchmark batteries, several references, noise marked",
        file="clustering_suite_dev.npz",
        sha256="12d1cb59f3999708a726f78a2bdb1c6c1f777bff6b109c84feb02f11c1ce26bf",
        arrays="<battery>/<name>/X and <battery>/<name>/labels0, labels1, ... (1..K, 0 noise)",
        source="Gagolewski 2022, github.com/gagolews/clustering-data-v1",
        licence="research use, unless a set's own description says otherwise",
        is_suite=True,
    ),
    DatasetInfo(
        name="tabular_suite",
        title="Small labelled tables with continuous, binary and categorical columns",
        file="tabular_dev.npz",
        sha256="5afd9028dc9ceffad3ca471852c45c881e9e332ad848a82c778b8841674a09dc",
        arrays="<name>/X, <name>/y and <name>/ftype (0 continuous, 1 binary, 2 categorical)",
        source="Olson et al. 2017, github.com/EpistasisLab/pmlb; seeds from the UCI repository",
        licence="MIT (PMLB); each table keeps the terms of its origin",
        is_suite=True,
    ),
    DatasetInfo(
        name="highdim_suite",
        title="Few points, many features: faces, spoken letters, gene expression",
        file="highdim_dev.npz",
        sha256="63eb45683b353b0c81bcb3875f851b745f0405c934653315df3026805450cc3e",
        arrays="<name>/X and <name>/y",
        source="Li et al. 2017, github.com/jundongl/scikit-feature",
        licence=_NOT_STATED,
        is_suite=True,
    ),
)

CATALOGUE: dict[str, DatasetInfo] = {row.name: row for row in _ROWS}


def dataset_names() -> tuple[str, ...]:
    """Names of the benchmark data sets, suites left out, as :func:`load_dataset` takes them.

    Examples
    --------
    >>> dataset_names()[:3]
    ('mnist', 'fashion_mnist', 'usps')
    """
    return tuple(name for name, info in CATALOGUE.items() if not info.is_suite)


def dataset_info(name: str) -> DatasetInfo:
    """Size, origin, terms and file of a benchmark data set or suite, without loading it.

    Examples
    --------
    >>> info = dataset_info("coil20")
    >>> info.n_samples, info.n_classes, info.file
    (1440, 20, 'coil20.npz')
    """
    if name not in CATALOGUE:
        close = get_close_matches(name, CATALOGUE, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise DataError(f"Unknown data set {name!r}.{hint} Known: {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]
