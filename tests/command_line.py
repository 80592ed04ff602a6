"""What the tests of the command line share."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from asterism.cli.app import _run

CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A working folder with three clear clusters in ``t.csv``, its classes in ``kind``."""
    monkeypatch.chdir(tmp_path)
    X, y = make_blobs([30, 20, 10], centers=CENTERS, cluster_std=0.5, random_state=0)
    frame = pd.DataFrame(X, columns=["height", "weight"]).assign(kind=np.array(list("abc"))[y])
    frame.to_csv("t.csv", index=False)
    return frame


def succeed(capfd, *arguments):
    """Standard output and standard error of a command that must succeed."""
    code = _run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    assert code == 0, err
    return out, err


def process(*arguments, stdin=b"", options=()):
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, *options, "-m", "asterism", *arguments],
        input=stdin,
        capture_output=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        timeout=120,
    )
