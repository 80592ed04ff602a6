"""Constants by which the default network states what it believes after a second look.

    python benchmarks/opinions.py [--quick] [--weights default] [--draws 200]

Draws     of the network's own prior, 300 rows each, by a seed of their own; those on which the
          first reading is sure are left out, since nothing else is looked at there.
Pairs     P = σ(a logit P̄ + b logit P₁ + c) with the least log loss of 3000 pairs of each draw,
          noise rows left out, P̄ the mean over all views and P₁ the first; beside it both alone,
          with log loss and expected calibration error (ECE, 15 bins). "Stated" is scored on the
          draws it was fitted to, by three numbers; ``calibration.py`` has others.
Count     mean log-probability of the true K by the first reading, the mean, and √(p₁ p̄).

The constants in ``methods/asterism/opinions.py`` are those of a run of this command with the
weights that are shipped. No real data, and no labels but those of synthetic draws, have a part in
them.
"""

import numpy as np
import torch
from common import Row, markdown_tables, network_options, write_results
from scipy.optimize import minimize
from scipy.special import expit, logit
from suites import network_identity

from asterism import Asterism
from asterism.functional.views import other_views
from asterism.methods.asterism.opinions import CERTAIN, Belief
from asterism.nn.reading import ContextReader
from asterism.priors import TabularPrior

ROWS, PAIRS, SEED, BINS = 300, 3000, 29, 15
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()


def hear(weights: str, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Of doubtful draws: pairs (M, 3) by first view, mean and truth; log scores (draws, 3) of K."""
    model = Asterism(weights=weights)
    model._load_weights()
    network = model._network
    prior, chance = TabularPrior(), np.random.default_rng(SEED)
    pairs, counts = [], []
    for _ in range(n_draws):
        x, labels = prior.draw(ROWS, chance)
        readers = ContextReader.read_many(network, [x, *other_views(x)])
        heard = [Belief(reader.similarity, reader.counts) for reader in readers]
        if heard[0].sure:
            continue
        first, second = np.triu_indices(ROWS, 1)
        known = np.flatnonzero((labels[first] >= 0) & (labels[second] >= 0))
        chosen = chance.choice(known, PAIRS)
        i, j = first[chosen], second[chosen]
        mean = np.mean([belief.similarity[i, j] for belief in heard], axis=0)
        pairs.append(np.stack([heard[0].similarity[i, j], mean, labels[i] == labels[j]], axis=1))
        counts.append(_count_scores(heard, int(labels.max())))
    return np.concatenate(pairs), np.array(counts)


def _count_scores(heard: list[Belief], true: int) -> list[float]:
    first, mean = heard[0].counts, np.mean([belief.counts for belief in heard], axis=0)
    both = np.sqrt(first * mean)
    place = min(true, len(first) - 1)
    return [float(np.log(max(p[place] / p.sum(), 1e-9))) for p in (first, mean, both)]


def log_loss(p: np.ndarray, same: np.ndarray) -> float:
    return float(-np.mean(np.where(same > 0.5, np.log(p), np.log1p(-p))))


def calibration_error(p: np.ndarray, same: np.ndarray) -> float:
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    sizes = np.maximum(np.bincount(place, minlength=BINS), 1)
    gaps = np.bincount(place, p - same, minlength=BINS) / sizes
    return float(np.sum(np.abs(gaps) * sizes) / len(p))


def main() -> None:
    asked = network_options(__doc__, draws=200)
    torch.set_num_threads(1)
    pairs, counts = hear(asked.weights, 20 if asked.quick else asked.draws)
    first, mean, same = pairs.T
    first, mean = np.clip([first, mean], CERTAIN, 1 - CERTAIN)
    logits = logit(np.stack([mean, first]))

    def stated(constants: np.ndarray) -> np.ndarray:
        return expit(constants[:2] @ logits + constants[2])

    fitted = minimize(
        lambda c: log_loss(stated(c), same), np.array([0.5, 0.5, 0.0]), method="Nelder-Mead"
    ).x
    told = {"first view": first, "mean of views": mean, "stated": stated(fitted)}
    by_kind: list[Row] = [
        {
            "belief": name,
            "log loss of pairs": f"{log_loss(p, same):.4f}",
            "ECE of pairs": f"{calibration_error(p, same):.4f}",
            "log score of K": f"{score:.3f}",
        }
        for (name, p), score in zip(told.items(), counts.mean(axis=0), strict=True)
    ]
    constants = {name: f"{value:.2f}" for name, value in zip("abc", fitted, strict=True)}
    tables = {f"{len(counts)} doubtful draws": by_kind, "Constants": [constants]}
    if asked.quick:
        print(markdown_tables(tables))
        return
    write_results(
        "opinions",
        "What is stated after a second look",
        f"```text\n{PROTOCOL}\n```",
        tables,
        seeds=[SEED],
        network=network_identity(asked.weights),
    )


if __name__ == "__main__":
    main()
