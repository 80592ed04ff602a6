"""Shapes of single clusters, in local coordinates: centred, of about unit spread.

    shape(n, dim, chance) -> (n, dim)

``chance`` is a numpy generator, the only source of randomness. A shape of few intrinsic dimensions
(line, arc, ring) lies in a random plane of its space, with a little thickness.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["SHAPES", "Shape", "draw_shape", "random_directions", "random_rotation"]

Shape = Callable[[int, int, np.random.Generator], np.ndarray]


def random_directions(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Unit vectors (n, dim), uniform on the sphere."""
    vectors = chance.standard_normal((n, dim))
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def random_rotation(dim: int, chance: np.random.Generator) -> np.ndarray:
    """Orthogonal matrix (dim, dim), uniform."""
    q, r = np.linalg.qr(chance.standard_normal((dim, dim)))
    return q * np.sign(np.diag(r))


def spherical(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Gaussian with equal axes."""
    return chance.standard_normal((n, dim))


def anisotropic(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Gaussian with axes of different length, in any direction or along the coordinates."""
    spread = chance.uniform(0.2, 1.4)
    axes = np.exp(spread * chance.standard_normal(dim))
    axes /= np.sqrt(np.mean(axes**2))
    x = chance.standard_normal((n, dim)) * axes
    return x @ random_rotation(dim, chance).T if chance.random() < 0.7 else x


def heavy_tailed(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Student's t with 2.5 to 6 degrees of freedom."""
    freedom = chance.uniform(2.5, 6)
    scale = np.sqrt(freedom / chance.chisquare(freedom, (n, 1)))
    return chance.standard_normal((n, dim)) * scale * np.sqrt((freedom - 2) / freedom)


def ball(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Uniform in a ball."""
    radius = chance.random((n, 1)) ** (1 / dim) * np.sqrt(dim + 2)
    return random_directions(n, dim, chance) * radius


def box(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Uniform in a box with sides of different length."""
    sides = np.exp(0.4 * chance.standard_normal(dim))
    x = (chance.random((n, dim)) - 0.5) * np.sqrt(12) * sides / np.sqrt(np.mean(sides**2))
    return x @ random_rotation(dim, chance).T if chance.random() < 0.5 else x


def peaked(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Random direction, Gaussian radius: dense at the centre in any dimension."""
    radius = chance.standard_normal((n, 1)) * np.sqrt(dim)
    return random_directions(n, dim, chance) * radius


def skewed(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Gaussian with some axes bent by the exponential."""
    x = chance.standard_normal((n, dim))
    bend = chance.uniform(0.3, 0.9, dim) * (chance.random(dim) < 0.6)
    sign = chance.choice([-1.0, 1.0], dim)
    bent = np.where(bend > 0, sign * np.expm1(bend * x) / np.maximum(bend, 1e-6), x)
    bent -= bent.mean(axis=0)
    return bent / np.maximum(bent.std(axis=0), 1e-6)


def line(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Segment with a little thickness."""
    t = chance.uniform(-1.7, 1.7, n) if chance.random() < 0.6 else chance.standard_normal(n)
    return _thicken(t[:, None], n, dim, chance, 0.02, 0.25)


def arc(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Part of a circle, 60 to 300 degrees."""
    angle = chance.random(n) * np.deg2rad(chance.uniform(60, 300))
    curve = 1.4 * np.c_[np.cos(angle), np.sin(angle)]
    return _thicken(curve - curve.mean(axis=0), n, dim, chance, 0.03, 0.18)


def ring(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Full circle."""
    angle = chance.random(n) * 2 * np.pi
    return _thicken(1.4 * np.c_[np.cos(angle), np.sin(angle)], n, dim, chance, 0.03, 0.2)


def ridge(n: int, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Density ridge along a smooth random walk."""
    knots = np.cumsum(chance.standard_normal((6, min(dim, 3))), axis=0)
    t = chance.random(n) * (len(knots) - 1)
    low = np.minimum(t.astype(int), len(knots) - 2)
    share = (t - low)[:, None]
    share = share * share * (3 - 2 * share)
    curve = (1 - share) * knots[low] + share * knots[low + 1]
    curve -= curve.mean(axis=0)
    curve /= max(float(np.sqrt(np.mean(curve**2))), 1e-6)
    return _thicken(curve, n, dim, chance, 0.03, 0.2)


def _thicken(
    curve: np.ndarray, n: int, dim: int, chance: np.random.Generator, low: float, high: float
) -> np.ndarray:
    """Put a curve into ``dim`` dimensions, turned at random, with noise around it."""
    x = chance.uniform(low, high) * chance.standard_normal((n, dim))
    kept = min(curve.shape[1], dim)
    x[:, :kept] += curve[:, :kept]
    return x @ random_rotation(dim, chance).T


SHAPES: dict[str, Shape] = {
    shape.__name__: shape
    for shape in (
        spherical,
        anisotropic,
        heavy_tailed,
        ball,
        box,
        peaked,
        skewed,
        line,
        arc,
        ring,
        ridge,
    )
}
_CONVEX = ("spherical", "anisotropic", "heavy_tailed", "ball", "box", "peaked", "skewed")
_CURVED = ("line", "arc", "ring", "ridge")


def draw_shape(dim: int, chance: np.random.Generator) -> Shape:
    """A shape at random: mostly convex ones, curves only where there is room for them."""
    if dim == 1 or chance.random() < 0.82:
        weights = np.array([0.28, 0.28, 0.09, 0.07, 0.07, 0.1, 0.11])
        return SHAPES[str(chance.choice(_CONVEX, p=weights))]
    return SHAPES[str(chance.choice(_CURVED))]
