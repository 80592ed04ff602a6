"""What ``asterism cluster`` says of a clustering: a few lines for people, or JSON for machines."""

from numbers import Integral
from typing import TYPE_CHECKING, Any

from asterism.cli.common import say
from asterism.functional.wording import counted

if TYPE_CHECKING:
    from asterism.pipeline import FileClustering, TableClustering

__all__ = ["describe", "summary"]

_SHOWN = 0.05  # other numbers of clusters are named from this probability on
_KEPT = 0.005


def summary(result: "TableClustering | FileClustering") -> dict[str, Any]:
    """The result in a few numbers, for machines."""
    sample, estimator = result.sample, result.model.estimator
    probability = result.mean_probability
    confidence = getattr(estimator, "overall_confidence_", None)
    return {
        "method": result.method.name,
        "n_rows": result.n_rows,
        "n_sample": len(sample.labels),
        "n_features": sample.X.shape[1],
        "n_clusters": result.n_clusters,
        "n_clusters_given": isinstance(getattr(estimator, "n_clusters", None), Integral),
        "sizes": result.sizes,
        "noise": result.noise,
        "mean_probability": None if probability is None else round(probability, 4),
        "k_posterior": _belief(estimator),
        "expected_ari": None if confidence is None else round(float(confidence), 4),
        "scores": sample.scores,
        "labels_used": sample.labels_used,
        "seconds": round(result.seconds, 3),
        "notes": result.notes,
    }


def describe(
    result: "TableClustering | FileClustering", written: dict[str, str], quiet: bool
) -> None:
    """The same for people."""
    facts = summary(result)
    noise = f", noise {facts['noise']}" if facts["noise"] else ""
    say(
        f"{counted(facts['n_clusters'], 'cluster')} of {facts['n_rows']} rows by {facts['method']} "
        f"({facts['seconds']:.1f} s): sizes {', '.join(map(str, facts['sizes']))}{noise}",
        quiet,
    )
    if facts["k_posterior"] is not None:
        say(_sureness(facts), quiet)
    if facts["scores"]:
        scores = facts["scores"]
        used = ", which guided the fit" if facts["labels_used"] else ""
        say(
            f"agreement with the labels{used}: "
            + ", ".join(f"{name.upper()} {scores[name]:.3f}" for name in ("acc", "nmi", "ari")),
            quiet,
        )
    for note in facts["notes"]:
        say(f"note: {note}", quiet)
    for what, path in written.items():
        if path != "-":
            say(f"{what}: {path}", quiet)


def _belief(estimator: Any) -> dict[int, float] | None:
    """Probability of the numbers of clusters that are not out of the question."""
    posterior = getattr(estimator, "k_posterior_", None)
    if posterior is None:
        return None
    found = int(estimator.n_clusters_)
    return {k: round(float(p), 4) for k, p in enumerate(posterior) if p >= _KEPT or k == found}


def _sureness(facts: dict[str, Any]) -> str:
    """How sure the method is, in a line: ``probability of 5 clusters 0.83 (4: 0.12), ...``."""
    belief, found = facts["k_posterior"], facts["n_clusters"]
    likely = sorted(belief, key=lambda k: -belief[k])
    others = [f"{k}: {belief[k]:.2f}" for k in likely if k != found and belief[k] >= _SHOWN]
    beside = f" ({', '.join(others[:3])})" if others else ""
    sure = f"probability of {counted(found, 'cluster')} {belief.get(found, 0.0):.2f}{beside}"
    expected = facts["expected_ari"]
    if expected is None:
        return sure
    # The likeliest number need not have the best partition; one that was given is no news.
    chosen = "expected" if likely[0] == found else "chosen for its expected"
    told = f"{chosen} ARI {expected:.2f}"
    return told if facts["n_clusters_given"] else f"{sure}, {told}"
