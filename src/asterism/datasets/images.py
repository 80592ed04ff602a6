"""Images: handwritten digits and characters, clothing, objects, stick figures; and embeddings.

Rows are images read line by line, grey values scaled to [0, 1] with the ink or the object bright.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from asterism.datasets.catalogue import DatasetInfo
from asterism.datasets.dataset import Dataset
from asterism.datasets.files import Source, locate
from asterism.datasets.formats import npz_keys, read_idx, read_npz, read_svmlight
from asterism.datasets.loading import loader
from asterism.exceptions import DataError

__all__ = [
    "load_coil20",
    "load_deepdpm_embeddings",
    "load_fashion_mnist",
    "load_mnist",
    "load_omniglot",
    "load_stickfigures",
    "load_usps",
]

_DIGITS = tuple("0123456789")
_CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


@loader("mnist")
def load_mnist(info: DatasetInfo, source: Source) -> Dataset:
    """MNIST: 70000 handwritten digits of 28x28, the first 60000 for training; X in [0, 1].

    Takes the parameters of :func:`load_dataset`; can be downloaded.

    Examples
    --------
    >>> load_mnist()  # doctest: +SKIP
    Dataset('mnist', N=70000, D=784, K=10)
    """
    return _grey_images(info, _mnist_family(locate(info, source)), _DIGITS)


@loader("fashion_mnist")
def load_fashion_mnist(info: DatasetInfo, source: Source) -> Dataset:
    """Fashion-MNIST: 70000 articles of clothing of 28x28, 60000 for training; X in [0, 1].

    Takes the parameters of :func:`load_dataset`; can be downloaded.

    Examples
    --------
    >>> load_fashion_mnist().target_names[:2]  # doctest: +SKIP
    ('T-shirt/top', 'Trouser')
    """
    return _grey_images(info, _mnist_family(locate(info, source)), _CLOTHES)


@loader("usps")
def load_usps(info: DatasetInfo, source: Source) -> Dataset:
    """USPS: 9298 handwritten digits of 16x16, the first 7291 for training; X in [0, 1].

    Takes the parameters of :func:`load_dataset`; can be downloaded.

    Examples
    --------
    >>> X, y = load_usps(return_X_y=True)  # doctest: +SKIP
    """
    files = locate(info, source)
    if len(files) == 1:
        arrays = read_npz(files[0], "X", "y", "n_train?", "scale?")
    else:
        (train, y_train), (test, y_test) = (read_svmlight(f, info.n_features) for f in files)
        arrays = {
            "X": (np.concatenate([train, test]) + 1) / 2,  # published in [−1, 1]
            "y": np.concatenate([y_train, y_test]) - 1,  # published as 1..10
            "n_train": np.array(len(train)),
            "scale": np.array(1.0),
        }
    return _grey_images(info, arrays, _DIGITS)


@loader("coil20")
def load_coil20(info: DatasetInfo, source: Source) -> Dataset:
    """COIL-20: 20 objects, each seen from 72 angles, 32x32; X in [0, 1].

    Takes the parameters of :func:`load_dataset`; needs a file, as no checksummed public address
    is known.

    Examples
    --------
    >>> load_coil20(path="coil20.npz")  # doctest: +SKIP
    Dataset('coil20', N=1440, D=1024, K=20)
    """
    return _grey_images(info, read_npz(_npz(info, source), "X", "y", "scale?"), ())


@loader("omniglot")
def load_omniglot(
    info: DatasetInfo,
    source: Source,
    *,
    target: Literal["character", "alphabet"] = "character",
    resolution: Literal[28, 105] = 28,
) -> Dataset:
    """Omniglot, background small 1: 136 characters of 5 alphabets, each by 20 hands; X in [0, 1].

    ``groups`` is the hand (1 to 20) that drew the character.

    Parameters
    ----------
    target : {"character", "alphabet"}, default="character"
        What ``y`` says; ``labels`` has both, the chosen one first.
    resolution : {28, 105}, default=28
        Averaged grey images of 28x28, or the original bitmaps of 105x105.
    **shared
        As :func:`load_dataset`; needs a file.

    Examples
    --------
    >>> load_omniglot(path="omniglot_small1.npz", target="alphabet").n_classes  # doctest: +SKIP
    5
    """
    if resolution not in (28, 105):
        raise DataError(f"resolution must be 28 or 105; got {resolution!r}.")
    if target not in ("character", "alphabet"):
        raise DataError(f"target must be 'character' or 'alphabet'; got {target!r}.")
    pixels = "X" if resolution == 28 else "packed105"
    arrays = read_npz(_npz(info, source), pixels, "y", "alphabet", "alphabet_names", "drawer")
    X: NDArray[Any]
    if resolution == 28:
        X = arrays["X"].astype(np.float32) / np.float32(255)
    else:
        X = np.unpackbits(arrays["packed105"], axis=1, count=105 * 105)
    labels = [arrays["y"], arrays["alphabet"]]
    by_alphabet = target == "alphabet"
    return Dataset.build(
        info.name,
        X,
        *(reversed(labels) if by_alphabet else labels),
        target_names=tuple(arrays["alphabet_names"].tolist()) if by_alphabet else (),
        image_shape=(resolution, resolution),
        groups=arrays["drawer"].astype(np.int64),
        source=info.source,
        licence=info.licence,
    )


@loader("stickfigures")
def load_stickfigures(info: DatasetInfo, source: Source) -> Dataset:
    """Stick figures: 900 images of 20x20 with two independent labellings of 3 classes; X in [0, 1].

    ``y`` combines them into 9 classes; ``labels`` is (combined, first, second). Takes the
    parameters of :func:`load_dataset`; needs a file.

    Examples
    --------
    >>> [len(set(y)) for y in load_stickfigures().labels]  # doctest: +SKIP
    [9, 3, 3]
    """
    arrays = read_npz(_npz(info, source), "X", "y1", "y2")
    first, second = arrays["y1"].astype(np.int64), arrays["y2"].astype(np.int64)
    arrays["y"] = first * (second.max(initial=0) + 1) + second
    return _grey_images(info, arrays, (), first, second)


@loader("deepdpm_embeddings")
def load_deepdpm_embeddings(
    info: DatasetInfo, source: Source, *, embedding: str = "mnist", imbalanced: bool = False
) -> Dataset:
    """Embeddings published with DeepDPM, as published (not scaled).

    Rows of mnist, fashion_mnist and usps are those of :func:`load_mnist` and so on.

    Parameters
    ----------
    embedding : {"mnist", "fashion_mnist", "usps", "imagenet50_test"}, default="mnist"
        Which one: 10 features, or 128 for ImageNet-50.
    imbalanced : bool, default=False
        Only the rows of the imbalanced variant; mnist and fashion_mnist have one.
    **shared
        As :func:`load_dataset`; needs a file.

    Examples
    --------
    >>> load_deepdpm_embeddings(embedding="usps")  # doctest: +SKIP
    Dataset('deepdpm_embeddings/usps', N=9298, D=10, K=10)
    """
    path = _npz(info, source)
    names = [key.removesuffix("_X") for key in npz_keys(path) if key.endswith("_X")]
    if embedding not in names:
        raise DataError(f"embedding must be one of {', '.join(names)}; got {embedding!r}.")
    variant = f"{embedding}_imb_idx"
    arrays = read_npz(path, f"{embedding}_X", f"{embedding}_y", f"{variant}?")
    if imbalanced and variant not in arrays:
        raise DataError(f"Embedding {embedding!r} has no imbalanced variant.")
    rows = arrays[variant] if imbalanced else slice(None)
    return Dataset.build(
        f"{info.name}/{embedding}{'_imbalanced' if imbalanced else ''}",
        arrays[f"{embedding}_X"][rows],
        arrays[f"{embedding}_y"][rows],
        source=info.source,
        licence=info.licence,
    )


def _npz(info: DatasetInfo, source: Source) -> Path:
    return locate(info, source)[0]


def _mnist_family(files: tuple[Path, ...]) -> dict[str, NDArray[Any]]:
    """Read an ``.npz``, or the four idx files: training images and labels, then test ones."""
    if len(files) == 1:
        return read_npz(files[0], "X", "y", "n_train?")
    train, y_train, test, y_test = map(read_idx, files)
    return {
        "X": np.concatenate([train.reshape(len(train), -1), test.reshape(len(test), -1)]),
        "y": np.concatenate([y_train, y_test]),
        "n_train": np.array(len(train)),
    }


def _grey_images(
    info: DatasetInfo,
    arrays: dict[str, NDArray[Any]],
    target_names: tuple[str, ...],
    *further_labels: NDArray[Any],
) -> Dataset:
    """Square images divided by ``scale``, 255 unless stored."""
    scale = np.float32(arrays.get("scale", 255))
    side = round(info.n_features**0.5)
    n_samples = len(arrays["X"])
    n_train = arrays.get("n_train")
    return Dataset.build(
        info.name,
        arrays["X"].astype(np.float32) / scale,
        arrays["y"],
        *further_labels,
        target_names=target_names,
        train_mask=None if n_train is None else np.arange(n_samples) < n_train,
        image_shape=(side, side),
        source=info.source,
        licence=info.licence,
    )
