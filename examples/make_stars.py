"""Draw the invented star catalogue ``stars.csv`` that the demonstration clusters.

Four populations, loosely after the Hertzsprung-Russell diagram: main sequence, giants, white dwarfs
and red dwarfs. The numbers are synthetic; no star of that name exists. Some cells are missing, as
in real catalogues.

    python examples/make_stars.py
"""

from pathlib import Path

import numpy as np
import pandas as pd

# name, rows, then mean and deviation of: colour index, magnitude, radius, rotation
POPULATIONS = [
    ("main sequence", 260, (0.75, 0.24), (5.2, 1.6), (1.0, 0.25), (24, 9)),
    ("giant", 150, (1.25, 0.20), (1.0, 1.3), (9.0, 3.0), (52, 14)),
    ("white dwarf", 90, (0.10, 0.16), (12.2, 0.9), (0.02, 0.006), (3.0, 1.0)),
    ("red dwarf", 140, (1.55, 0.16), (10.8, 1.2), (0.30, 0.08), (34, 9)),
]
COLUMNS = ["colour_index", "magnitude", "radius", "rotation_days"]
BANDS = {"main sequence": "FGK", "giant": "KM", "white dwarf": "AB", "red dwarf": "M"}


def main() -> None:
    chance = np.random.default_rng(20)
    tables = []
    for kind, rows, *moments in POPULATIONS:
        columns = {
            name: chance.normal(*moment, rows)
            for name, moment in zip(COLUMNS, moments, strict=True)
        }
        columns["radius"] = np.log10(np.abs(columns["radius"]) + 1e-3)
        bands = chance.choice(list(BANDS[kind]), rows)
        tables.append(pd.DataFrame(columns).assign(spectral_class=bands, kind=kind))
    table = pd.concat(tables).sample(frac=1, random_state=20).reset_index(drop=True)
    table = table.rename(columns={"radius": "log_radius"}).round(3)
    for column in ("rotation_days", "spectral_class"):
        table.loc[chance.choice(len(table), 20, replace=False), column] = np.nan
    table.insert(0, "star", [f"AST-{number:04d}" for number in range(1, len(table) + 1)])
    table.to_csv(Path(__file__).with_name("stars.csv"), index=False)


if __name__ == "__main__":
    main()
