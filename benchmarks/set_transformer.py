"""SetTransformerMixture on the published benchmark: 100 batches of 10 data sets, K = 4, N 100-500.

    python benchmarks/set_transformer.py [--weights NAME-OR-PATH]

Log-likelihood a point before and after one EM step, next to the oracle on the same data, to
scikit-learn's Gaussian mixture with the same K, and to the table of the paper (Lee et al., ICML
2019, supplement: ISAB(32) + PMA, mean of five runs). The oracle knows the population's parameters,
not the sample's, so that a fitted mixture may pass it.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np
import torch
from common import Row, write_results
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils._testing import ignore_warnings

from asterism import SetTransformerMixture
from asterism.functional.mixtures import log_likelihood
from asterism.functional.sets import SetBatch
from asterism.io import find_weights, read_card
from asterism.metrics import adjusted_rand_index, oracle_log_likelihood
from asterism.priors import GaussianMixturePrior
from asterism.training import derive_seed

BATCHES, BATCH_SIZE, SEED = 100, 10, 2019
PAPER = {"network": -1.4963, "network + 1 EM step": -1.4524, "oracle": -1.4726}
PAPER_SPREAD = {"network": 0.0064, "network + 1 EM step": 0.0044}


def batches() -> Iterator[SetBatch]:
    prior = GaussianMixturePrior()
    for index in range(BATCHES):
        # A stream of its own: training draws from seeds that begin with another number.
        generator = torch.Generator().manual_seed(derive_seed(SEED, BATCHES, index))
        yield prior.sample(BATCH_SIZE, generator)


def network(weights: str, refine: str | None) -> tuple[list[float], list[float], float]:
    model = SetTransformerMixture(weights=weights, refine=refine, scaling="none", device="cpu")
    likelihoods, agreements, seconds = [], [], 0.0
    for batch in batches():
        sets, labels = batch.x.numpy(), batch.labels
        start = time.process_time()
        fitted = model.fit_many(sets)
        seconds += time.process_time() - start
        likelihoods += [one.score(x) for one, x in zip(fitted, sets, strict=True)]
        agreements += [
            adjusted_rand_index(y.numpy(), one.labels_)
            for one, y in zip(fitted, labels, strict=True)
        ]
    return likelihoods, agreements, seconds


@ignore_warnings(category=ConvergenceWarning)
def scikit_learn() -> tuple[list[float], list[float], float]:
    likelihoods, agreements, seconds = [], [], 0.0
    for number, batch in enumerate(batches()):
        for x, y in zip(batch.x.double().numpy(), batch.labels.numpy(), strict=True):
            start = time.process_time()
            model = GaussianMixture(4, covariance_type="diag", random_state=number).fit(x)
            seconds += time.process_time() - start
            likelihoods.append(model.score(x))
            agreements.append(adjusted_rand_index(y, model.predict(x)))
    return likelihoods, agreements, seconds


def oracle() -> tuple[list[float], list[float], list[float]]:
    """Likelihood with the true weights, with the empirical ones, and the best possible ARI."""
    true, empirical, agreements = [], [], []
    for batch in batches():
        true += log_likelihood(batch.x, batch.truth).mean(dim=1).tolist()
        log_r = torch.log_softmax(
            torch.distributions.Normal(batch.truth.means[:, None], batch.truth.scales[:, None])
            .log_prob(batch.x[:, :, None])
            .sum(-1)
            + batch.truth.log_weights[:, None],
            dim=-1,
        )
        for b in range(len(batch)):
            y = batch.labels[b].numpy()
            means, scales = batch.truth.means[b].numpy(), batch.truth.scales[b].numpy()
            empirical.append(oracle_log_likelihood(batch.x[b].numpy(), y, means, scales))
            agreements.append(adjusted_rand_index(y, log_r[b].argmax(-1).numpy()))
    return true, empirical, agreements


def row(name: str, likelihoods: list[float], agreements: list[float], seconds: float | None) -> Row:
    error = np.std(likelihoods) / np.sqrt(len(likelihoods))
    published = f"{PAPER[name]:.4f}" if name in PAPER else ""
    if name in PAPER_SPREAD:
        published += f" ± {PAPER_SPREAD[name]:.4f}"
    return {
        "": name,
        "log-likelihood a point (± standard error)": f"{np.mean(likelihoods):.4f} ± {error:.4f}",
        "paper": published,
        "ARI": f"{np.mean(agreements):.4f}",
        "CPU ms a data set": "" if seconds is None else f"{1000 * seconds / len(likelihoods):.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", default="default")
    weights = parser.parse_args().weights
    torch.set_num_threads(1)
    true, empirical, best = oracle()
    rows = [
        row("network", *network(weights, None)),
        row("network + 1 EM step", *network(weights, "em")),
        row("scikit-learn GaussianMixture, K = 4", *scikit_learn()),
        row("oracle", true, best, None),
        row("oracle, empirical weights", empirical, best, None),
    ]
    name = SetTransformerMixture._default_weights if weights == "default" else weights
    write_results(
        "set_transformer",
        "SetTransformerMixture on the published benchmark",
        f"{BATCHES} batches of {BATCH_SIZE} data sets, 2-D, K = 4, N in 100-500; one thread.",
        rows,
        weights_sha256=read_card(find_weights(name))["sha256"],
        seed=SEED,
    )


if __name__ == "__main__":
    main()
