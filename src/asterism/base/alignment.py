"""What an amortised method knows of the place its network was trained at, and how rows get there.

    ``spread_``   root mean square deviation of a coordinate in training
    ``place_``    where its middle was, how wide a cluster and a data set were; see
                  :mod:`asterism.priors.measures`
    ``origin_``, ``projection_``    the map chosen for a table, (x − origin) P

``scaling="local"`` makes clusters as wide as in training, by a rough guess of them, "global" the
whole table; "auto" is the former where it can be had: where the weights tell the width, and the
rows fill the network's space, as on a line neighbours are other than in the plane. With "auto" that
is where trials begin, ``base.trials``. Images go to the network as they are.
"""

from typing import Any

import numpy as np

from asterism.exceptions import DataError, WeightsError
from asterism.functional.alignment import apply_alignment, fit_alignment, group_scale

__all__ = ["AlignmentMixin", "check_place"]

_FLAT = 0.01  # of the widest direction: rows no wider in another do not fill the space
_FAR = 1e6  # in the network's coordinates: beyond, single precision is lost


class AlignmentMixin:
    """Holds the map of a fitted table."""

    scaling: str
    weights: Any
    module_: Any
    architecture_: dict[str, Any]
    spread_: float
    place_: dict[str, Any]
    notes_: list[str]

    @property
    def _dim(self) -> int:
        if "dim" not in self.architecture_:
            raise WeightsError(f"the card of weights={str(self.weights)!r} tells no dimension")
        return int(self.architecture_["dim"])

    def _align(self, X: np.ndarray) -> None:
        """Choose the affine map from the user's columns to the network's coordinates."""
        images = getattr(self.module_, "reads_images", False)
        if images and self.scaling not in ("auto", "none"):
            raise DataError(
                f"scaling={self.scaling!r}, but weights={str(self.weights)!r} read images as they "
                "are: use scaling='auto'"
            )
        if self.scaling == "none" or images:
            self._stay(X.shape[1])
            return
        center = self._place.get("center", "mean")
        self.origin_, self.projection_ = fit_alignment(X, self._dim, self.spread_, center=center)
        if X.shape[1] > self._dim:
            self._note(f"{X.shape[1]} features projected on {self._axes_told(X)}")
        if self.scaling != "global":
            self.projection_ = self.projection_ * self._local_factor(X)

    def _stay(self, n_columns: int) -> None:
        """Take the rows as they are, if they are of the network's dimension."""
        if n_columns != self._dim:
            told = "scaling='none' takes" if self.scaling == "none" else "weights of images take"
            fix = ": use scaling='auto'" if self.scaling == "none" else ""
            raise DataError(
                f"{told} data as the network was trained on, {self._dim} columns, got "
                f"{n_columns}{fix}"
            )
        self.origin_, self.projection_ = np.zeros(self._dim), np.eye(self._dim)

    def _axes_told(self, X: np.ndarray) -> str:
        """The axes kept, in words."""
        factor = (self.projection_[:, 0] ** 2).sum()
        total = float(X.var(axis=0, dtype=np.float64).sum())
        share = ""
        if factor > 0 and total > 0:
            share = f" ({self._aligned(X).var(axis=0).sum() / factor / total:.0%} of the variance)"
        return f"{self._dim} principal axes{share}: the network knows no more"

    def _local_factor(self, X: np.ndarray) -> float:
        """Further factor by which clusters become as wide as in training; one where none helps."""
        asked = self.scaling == "local"
        if "scale" not in self._place:
            if asked:
                raise DataError(
                    f"scaling='local', but weights={str(self.weights)!r} do not tell how wide the "
                    "clusters were in training: use scaling='auto'"
                )
            return 1.0
        aligned = self._aligned(X)
        found = group_scale(aligned) if len(X) > 1 else 0.0
        if found == 0 or not _fills(aligned):
            if asked:
                why = "rows on fewer axes than in training" if found else "most rows are equal"
                self._note(f"{why}: scaling='local' scales as 'global' does")
            return 1.0
        # No table shall be wider, nor narrower, than any the network has seen.
        narrowest, widest = (limit / self.spread_ for limit in self._place["spreads"])
        return float(np.clip(self._place["scale"] / found, narrowest, widest))

    def _aligned(self, X: np.ndarray) -> np.ndarray:
        return apply_alignment(X, self.origin_, self.projection_)

    def _check_near(self, aligned: np.ndarray) -> None:
        """Refuse rows so far out that the network's arithmetic would fail."""
        farthest = float(np.abs(aligned).max(initial=0.0))
        if not farthest <= _FAR:
            raise DataError(
                f"a row lies at {farthest:.1e} in the network's coordinates, {_FAR:.0e} at most: "
                "use scaling='auto', or look for a wrong entry"
            )

    def _brought_near(self, X: np.ndarray) -> np.ndarray:
        """Aligned rows for a network, those beyond its arithmetic moved in towards the middle."""
        aligned = self._aligned(X)
        distance = np.abs(aligned).max(axis=1, keepdims=True)
        return aligned * np.minimum(1.0, _FAR / np.maximum(distance, 1.0))

    @property
    def _place(self) -> dict[str, Any]:
        return getattr(self, "place_", {})

    def _note(self, text: str) -> None:
        self.notes_ = [*getattr(self, "notes_", []), text]


def _fills(aligned: np.ndarray) -> bool:
    """Whether rows (N, dim), but for the farthest tenth, are of some width in all directions."""
    apart = np.linalg.norm(aligned - np.median(aligned, axis=0), axis=1)
    most = aligned[apart <= np.quantile(apart, 0.9)]
    widths = np.linalg.svd(most - most.mean(axis=0), compute_uv=False)
    return len(widths) == aligned.shape[1] and bool(widths[-1] > _FLAT * widths[0])


def check_place(spread: Any, place: Any) -> None:
    """Refuse what a damaged card says of the place of training."""
    known = {"spread_": spread}
    if place:
        if not isinstance(place, dict) or place.get("center", "mean") not in ("mean", "median"):
            raise ValueError(f"place_={place!r} tells no place")
        if "scale" in place:
            known["scale"] = place["scale"]
            limits = place.get("spreads")
            if not isinstance(limits, list | tuple) or len(limits) != 2:
                raise ValueError(f"place_: spreads={limits!r} are not two numbers")
            known |= {"lowest spread": limits[0], "highest spread": limits[1]}
    for name, value in known.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < np.inf:
            raise ValueError(f"{name}={value!r} is not a number above zero")
