"""Documents as term counts or tf-idf.

The recipe of deep clustering papers (Xie, Girshick & Farhadi, "Unsupervised deep embedding for
clustering analysis", ICML 2016): keep the 2000 terms with the largest total count, then

    tfidf_it = n_it · (1 + log((1 + N) / (1 + N_t)))      rows scaled to length one

with n_it the count of term t in document i, and N_t the documents that have it. Documents with
none of the terms keep a row of zeros.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from asterism.datasets.catalogue import DatasetInfo
from asterism.datasets.dataset import Dataset
from asterism.datasets.files import Source, locate
from asterism.datasets.formats import csr_from_arrays, read_npz
from asterism.datasets.loading import loader
from asterism.exceptions import DataError, DataNotFoundError

__all__ = ["frequent_term_tfidf", "load_newsgroups", "load_rcv1_sample", "load_reuters"]

_CSR = ("data", "indices", "indptr", "shape")
_NEWSGROUPS = (
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "rec.sport.baseball",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
    "talk.religion.misc",
)


def frequent_term_tfidf(counts: sparse.csr_matrix, max_terms: int = 2000) -> NDArray[np.float32]:
    """Dense tf-idf of the most frequent terms, rows of length one.

    Parameters
    ----------
    counts : CSR matrix of shape (N, n_terms)
        How often each document has each term.
    max_terms : int, default=2000
        Terms kept, by total count; ties to the earlier column. Columns keep their order.

    Returns
    -------
    ndarray of shape (N, min(max_terms, n_terms)), float32

    Examples
    --------
    >>> counts = sparse.csr_matrix([[3, 0, 1], [0, 4, 0]])
    >>> frequent_term_tfidf(counts, max_terms=2)
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if max_terms < 1:
        raise DataError(f"max_terms must be positive; got {max_terms}.")
    totals = np.asarray(counts.sum(axis=0)).ravel()
    kept = np.sort(np.argsort(-totals, kind="stable")[:max_terms])
    return TfidfTransformer().fit_transform(counts[:, kept]).toarray().astype(np.float32)


@loader("reuters")
def load_reuters(
    info: DatasetInfo,
    source: Source,
    *,
    n_classes: int | None = None,
    features: Literal["tfidf", "counts"] = "tfidf",
    max_terms: int = 2000,
) -> Dataset:
    """Reuters-21578: 8293 documents of one topic each, 65 topics by decreasing size.

    Not the REUTERS-10K of many papers, which comes from RCV1: figures are not comparable.

    Parameters
    ----------
    n_classes : int, optional
        Keep the documents of the largest classes only, 4 or 10 customarily; all by default.
    features : {"tfidf", "counts"}, default="tfidf"
        Dense tf-idf of the most frequent terms, or the sparse counts of all terms.
    max_terms : int, default=2000
        Terms kept for tf-idf, chosen among the documents kept.
    **shared
        As :func:`load_dataset`; needs a file.

    Examples
    --------
    >>> load_reuters(n_classes=4)  # doctest: +SKIP
    Dataset('reuters', N=6387, D=2000, K=4)
    """
    counts, y, train_mask = _read_counts(info, source)
    if n_classes is not None:
        if not 1 <= n_classes <= y.max() + 1:
            raise DataError(f"n_classes must lie in 1..{y.max() + 1}; got {n_classes}.")
        kept = y < n_classes
        counts, y, train_mask = counts[kept], y[kept], train_mask[kept]
    return _documents(info, counts, y, train_mask, features, max_terms)


@loader("newsgroups")
def load_newsgroups(
    info: DatasetInfo,
    source: Source,
    *,
    features: Literal["tfidf", "counts"] = "tfidf",
    max_terms: int = 2000,
) -> Dataset:
    """20 Newsgroups: 18846 messages of 20 groups, split by date.

    Without a file, scikit-learn downloads the messages, and their words except English stop words
    are counted: a larger vocabulary than the file's, so figures differ somewhat.

    Parameters
    ----------
    features : {"tfidf", "counts"}, default="tfidf"
        Dense tf-idf of the most frequent terms, or the sparse counts of all terms.
    max_terms : int, default=2000
        Terms kept for tf-idf.
    **shared
        As :func:`load_dataset`.

    Examples
    --------
    >>> load_newsgroups(features="counts").X  # doctest: +SKIP
    <Compressed Sparse Row sparse matrix ...>
    """
    try:
        counts, y, train_mask = _read_counts(info, source)
    except DataNotFoundError as missing:
        if source.path is not None or not source.fetch:
            raise
        counts, y, train_mask = _fetch_newsgroups(missing)
    return _documents(info, counts, y, train_mask, features, max_terms, _NEWSGROUPS)


@loader("rcv1_sample")
def load_rcv1_sample(info: DatasetInfo, source: Source) -> Dataset:
    """RCV1/RCV2 English sample: 1200 documents of 6 topics, tf-idf of 2000 terms.

    Dense, rows scaled to length one, without which their lengths swamp the topics. Takes the
    parameters of :func:`load_dataset`; needs a file.

    Examples
    --------
    >>> load_rcv1_sample()  # doctest: +SKIP
    Dataset('rcv1_sample', N=1200, D=2000, K=6)
    """
    arrays = read_npz(locate(info, source)[0], *_CSR, "y")
    X = normalize(csr_from_arrays(arrays)).toarray()
    return Dataset.build(info.name, X, arrays["y"], source=info.source, licence=info.licence)


def _read_counts(
    info: DatasetInfo, source: Source
) -> tuple[sparse.csr_matrix, NDArray[Any], NDArray[np.bool_]]:
    arrays = read_npz(locate(info, source)[0], *_CSR, "y", "trainIdx")
    counts, y, rows = csr_from_arrays(arrays), arrays["y"], arrays["trainIdx"]
    if len(y) != counts.shape[0] or rows.max(initial=0) >= len(y):
        raise DataError(
            f"Data set {info.name!r}: {counts.shape[0]} documents, {len(y)} labels and training "
            f"rows up to {rows.max(initial=0)} do not fit together."
        )
    train_mask = np.zeros(len(y), dtype=bool)
    train_mask[rows] = True
    return counts, y, train_mask


def _fetch_newsgroups(
    missing: DataNotFoundError,
) -> tuple[sparse.csr_matrix, NDArray[Any], NDArray[np.bool_]]:
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        train, test = (fetch_20newsgroups(subset=part, shuffle=False) for part in ("train", "test"))
    except OSError as error:
        raise DataNotFoundError(f"Downloading failed: {error}\n{missing}") from error
    messages = [*train.data, *test.data]
    counts = CountVectorizer(stop_words="english", dtype=np.float32).fit_transform(messages)
    y = np.concatenate([train.target, test.target])
    return sparse.csr_matrix(counts), y, np.arange(len(y)) < len(train.data)


def _documents(
    info: DatasetInfo,
    counts: sparse.csr_matrix,
    y: NDArray[Any],
    train_mask: NDArray[np.bool_],
    features: str,
    max_terms: int,
    target_names: tuple[str, ...] = (),
) -> Dataset:
    if features not in ("tfidf", "counts"):
        raise DataError(f"features must be 'tfidf' or 'counts'; got {features!r}.")
    return Dataset.build(
        info.name,
        frequent_term_tfidf(counts, max_terms) if features == "tfidf" else counts,
        y,
        target_names=target_names,
        train_mask=train_mask,
        source=info.source,
        licence=info.licence,
    )
