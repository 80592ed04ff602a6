"""Tables of the comparison ``suites.py``, from one row a fit.

    score of a method on a data set   mean over its seeds
    mean of a suite                   over its batteries, of the means over their data sets; a suite
                                      without batteries is one battery
    median                            over the data sets
    rank                              1 is the largest ARI among ranked methods, ties averaged
    wins-losses                       data sets on which Asterism is ahead or behind by more than
                                      0.01 of ARI

A method picked by battery is the one with the largest mean ARI in hindsight: no method, but what a
user could reach at best who knew which of them suits the data.
"""

from collections.abc import Sequence

import pandas as pd
from common import Row

__all__ = ["per_set", "suite_tables"]

OURS, UNRANKED = "Asterism", "kmeans-true"
CONSTANT = ("kmeans-2", "kmeans-3")
WITH_BATTERIES = "clustering_suite"
MARGIN = 0.01


def suite_tables(rows: Sequence[Row], part: str) -> dict[str, list[Row]]:
    """All tables by heading: an overview of each part, then each suite in each part.

    ``part`` is "tuning", "reported" or "all", which gives the two and the whole.
    """
    scores = score_frame(rows)
    parts = ["reported", "tuning", "all"] if part == "all" else [part]
    chosen = {one: scores if one == "all" else scores[scores["part"] == one] for one in parts}
    tables = {f"Mean ARI, {label(one)}": overview(frame) for one, frame in chosen.items()}
    for suite in scores["suite"].unique():
        for one, frame in chosen.items():
            here = frame[frame["suite"] == suite]
            if here.empty:
                continue
            n_sets = here["set"].nunique()
            tables[f"{suite}, {label(one)}, {n_sets} data sets"] = summary(here)
            if suite == WITH_BATTERIES:
                tables[f"{suite}, {label(one)}, mean ARI by battery"] = by_battery(here)
    return tables


def label(part: str) -> str:
    return "both parts" if part == "all" else f"{part} part"


def score_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line for each method and data set, seeds averaged, with its battery and rank."""
    frame = pd.DataFrame(rows)
    frame["k_error"] = (frame["k"] - frame["k_true"]).abs()
    frame["exact"] = (frame["k_error"] == 0).astype(float)
    frame["failed"] = (frame["note"] != "").astype(float)
    where = ["suite", "set", "part", "method"]
    columns = ["ari", "k", "k_true", "k_error", "exact", "cpu_seconds", "failed"]
    scores = frame.groupby(where, sort=False)[columns].mean().reset_index()
    first = scores["set"].str.partition("/")[0]
    scores["battery"] = first.where(scores["suite"] == WITH_BATTERIES, scores["suite"])
    ranked = scores[scores["method"] != UNRANKED]
    scores["rank"] = ranked.groupby(["suite", "set"])["ari"].rank(ascending=False)
    return scores


def balanced_mean(frame: pd.DataFrame, column: str) -> pd.Series:
    """Mean of a column for each method, every battery weighing the same."""
    means = frame.groupby(["method", "battery"], sort=False)[column].mean()
    return means.groupby("method", sort=False).mean()


def overview(frame: pd.DataFrame) -> list[Row]:
    """Mean ARI of each method in each suite."""
    means = {
        suite: balanced_mean(here, "ari") for suite, here in frame.groupby("suite", sort=False)
    }
    return [
        {"method": method} | {suite: f"{mean[method]:.3f}" for suite, mean in means.items()}
        for method in frame["method"].unique()
    ]


def summary(frame: pd.DataFrame) -> list[Row]:
    """Everything about each method in one suite."""
    means = {
        column: balanced_mean(frame, column)
        for column in ("ari", "rank", "k_error", "exact", "cpu_seconds")
    }
    median = frame.groupby("method")["ari"].median()
    failed = frame.groupby("method")["failed"].sum()
    table = []
    for method in frame["method"].unique():
        row = {
            "method": method,
            "mean ARI": f"{means['ari'][method]:.3f}",
            "median ARI": f"{median[method]:.3f}",
            "mean rank": "" if method == UNRANKED else f"{means['rank'][method]:.2f}",
            "mean K error": f"{means['k_error'][method]:.2f}",
            "exact K": f"{means['exact'][method]:.0%}",
            "CPU s a set": f"{means['cpu_seconds'][method]:.2f}",
            "failed": f"{failed[method]:.0f}",
        }
        if OURS in median:
            row["Asterism wins-losses"] = wins_losses(frame, method)
        table.append(row)
    return table


def wins_losses(frame: pd.DataFrame, method: str) -> str:
    """Data sets on which our method is ahead of this one, and behind it."""
    if method == OURS:
        return ""
    ari = frame.pivot(index="set", columns="method", values="ari")
    ahead = ari[OURS] - ari[method]
    return f"{(ahead > MARGIN).sum()}-{(ahead < -MARGIN).sum()}"


def by_battery(frame: pd.DataFrame) -> list[Row]:
    """Mean ARI of each method in each battery, and of the best classical one of each battery."""
    ari = frame.pivot_table(index="method", columns="battery", values="ari", sort=False)
    sets = frame.groupby("battery")["set"].nunique()
    table = [battery_row(method, values, sets) for method, values in ari.iterrows()]
    classical = ari.drop(index=[OURS, UNRANKED], errors="ignore")
    choosing = classical.drop(index=list(CONSTANT), errors="ignore")
    if len(choosing) > 1:
        table.append(battery_row("best choosing K, by battery", choosing.max(), sets))
        table.append(battery_row("best with constant K too", classical.max(), sets))
        table.append(battery_row("which chooses K best", choosing.idxmax(), sets))
    return table


def battery_row(method: str, values: pd.Series, sets: pd.Series) -> Row:
    cells = {f"{battery} ({sets[battery]})": value for battery, value in values.items()}
    if pd.api.types.is_numeric_dtype(values):
        cells = {head: f"{value:.3f}" for head, value in cells.items()}
        return {"method": method} | cells | {"mean": f"{values.mean():.3f}"}
    return {"method": method} | cells | {"mean": ""}


def per_set(rows: Sequence[Row]) -> list[Row]:
    """One entry a data set, with what every method did on it, seeds averaged; notes of failures."""
    scores = score_frame(rows)
    sizes = {(row["suite"], row["set"]): (row["n"], row["d"]) for row in rows}
    notes = {(r["suite"], r["set"], r["method"]): r["note"] for r in rows if r["note"]}
    table = []
    for (suite, name, part), here in scores.groupby(["suite", "set", "part"], sort=False):
        by_method = here.set_index("method")
        n, d = sizes[suite, name]
        methods = {
            method: {
                "ari": round(float(line["ari"]), 4),
                "k": round(float(line["k"]), 2),
                "cpu_seconds": round(float(line["cpu_seconds"]), 2),
            }
            | ({"note": notes[suite, name, method]} if (suite, name, method) in notes else {})
            for method, line in by_method.iterrows()
        }
        facts = {"suite": suite, "set": name, "part": part, "n": n, "d": d}
        table.append(facts | {"k_true": int(here["k_true"].iloc[0]), "methods": methods})
    return table
