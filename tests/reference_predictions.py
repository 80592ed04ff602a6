"""What the shipped weights say of some fixed tables, kept to notice drift.

    python tests/reference_predictions.py     writes tests/data/asterism.json anew

after new weights or a deliberate change of what is computed.
"""

import json
from pathlib import Path

import numpy as np

from asterism import Asterism
from asterism.io import read_card
from asterism.io.pretrained import find_weights

PATH = Path(__file__).parent / "data" / "asterism.json"


def tables():
    """Small tables of several kinds, by name; numpy's legacy generator never changes."""
    chance = np.random.RandomState(0)
    normal = chance.standard_normal
    angle = chance.uniform(0, np.pi, 120)
    curve = np.column_stack([np.cos(angle), np.sin(angle)])
    flip = np.arange(120) % 2 == 1
    curve[flip] = [1, 0.4] - curve[flip]
    blobs = normal((90, 4)) + 7 * np.eye(4)[np.arange(90) % 3]
    codes = (chance.uniform(size=(80, 9)) < np.where(np.arange(80) % 2, 0.9, 0.1)[:, None]) * 1.0
    return {
        "blobs": blobs,
        "moons": curve + 0.05 * normal((120, 2)),
        "overlapping": normal((100, 2)) + 2.5 * np.eye(2)[np.arange(100) % 2],
        "one column": np.sort(np.concatenate([normal(50), normal(30) + 9]))[:, None],
        "codes": codes,
        "noise": chance.uniform(size=(100, 5)),
        "wide": normal((40, 120)) + 1.5 * (np.arange(40) % 2)[:, None],
    }


def answers():
    """What the default estimator says of every table."""
    found = {}
    for name, X in tables().items():
        model = Asterism(random_state=0).fit(X)
        found[name] = {
            "labels": model.labels_.tolist(),
            "k_posterior": model.k_posterior_.round(5).tolist(),
            "similarity": model.similarity_[0, :20].astype(float).round(5).tolist(),
            "confidence": round(float(model.overall_confidence_), 5),
        }
    return found


def checksum():
    """Of the shipped weights."""
    return read_card(find_weights("asterism"))["sha256"]


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps({"weights": checksum(), "answers": answers()}) + "\n")
