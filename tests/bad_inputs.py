"""The tables of bad inputs and of odd but legal ones; ``test_bad_inputs`` goes through them.

ROWS         what no method clusters: table, error, words of the message
PARAMETERS   method, parameters, words
LEGAL        what every method clusters
COMMANDS     arguments of the command line, words; ``late`` where only the fit can know
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
import torch

from asterism.exceptions import DataError

CHANCE = np.random.RandomState(0)
TWO = np.r_[CHANCE.randn(15, 3), CHANCE.randn(15, 3) + 10]
"""Two clusters far apart, 30 rows of 3 columns."""


def spoiled(value):
    """The two clusters with one entry replaced."""
    X = TWO.copy()
    X[3, 1] = value
    return X


ROWS = {
    "NaN": (spoiled(np.nan), DataError, r"NaN, first at row 4, column 2: fill or drop"),
    "NaN in a frame": (
        pd.DataFrame(spoiled(np.nan), columns=list("abc")),
        DataError,
        r"row 4, column 2 \('b'\)",
    ),
    "None in a list": ([[1, None], [2, 3]], DataError, r"NaN, first at row 1, column 2"),
    "inf": (spoiled(np.inf), DataError, r"infinity \(inf\), first at row 4, column 2: replace"),
    "-inf": (spoiled(-np.inf), DataError, r"infinity \(-inf\), first at row 4"),
    "too large": (spoiled(1e200), DataError, r"1e\+200, first at row 4.*rescale"),
    "strings": (np.array([["a", "b"]] * 5), DataError, r"text \(.*'a'.*TableEncoder"),
    "a frame with text": (
        pd.DataFrame({"x": [1, 2], "y": ["red", "blue"]}),
        DataError,
        r"text \(.*'red'.*cluster_table",
    ),
    "a name of a file": ("data.csv", DataError, r"text \(.*'data.csv'"),
    "dates": (
        pd.DataFrame({"day": pd.date_range("2020", periods=5)}),
        DataError,
        r"'day' holds dates .*derive numbers",
    ),
    "dates of polars": (
        pl.DataFrame({"day": pd.date_range("2020", periods=5)}),
        DataError,
        r"'day' holds dates",
    ),
    "time spans": (np.zeros((5, 2), dtype="m8[s]"), DataError, r"holds dates or times \(timedelta"),
    "objects": (np.array([[object(), 1]] * 5), TypeError, r"no number \(.*'object'\): give"),
    "a dictionary": ({"a": 1}, TypeError, r"no number \(.*'dict'\): give"),
    "None": (None, DataError, r"X is None: give"),
    "a number": (5, DataError, r"got 0D instead: X has shape \(\)"),
    "no rows": (np.empty((0, 3)), DataError, r"0 sample\(s\) \(shape=\(0, 3\)\).*give more rows"),
    "no columns": (np.empty((5, 0)), DataError, r"0 feature\(s\) .*give more columns"),
    "one row": (TWO[:1], DataError, r"1 sample\(s\) \(shape=\(1, 3\)\).*minimum of 2.*more rows"),
    "1-D": (TWO[:, 0], DataError, r"1D instead: X has shape \(30,\).*X.reshape\(-1, 1\)"),
    "a series": (pd.Series([1.0, 2.0]), DataError, r"1D instead: X has shape \(2,\)"),
    "3-D": (TWO[None], DataError, r"3D instead: X has shape \(1, 30, 3\).*reshape\(len\(X\)"),
    "3-D tensor": (torch.zeros(2, 3, 4), DataError, r"3D instead: X has shape \(2, 3, 4\)"),
    "complex": (TWO.astype(complex), DataError, r"Complex data not supported: X is complex128;"),
    "ragged": ([[1, 2], [3]], DataError, r"rows of X differ in length: give"),
    "sparse": (scipy.sparse.csr_matrix(TWO), TypeError, r"Sparse data was passed.*toarray"),
}

PARAMETERS = [
    ("ae-kmeans", {"lr": -1}, r"'lr' .*float in the range \(0.0, inf\). Got -1"),
    ("ae-kmeans", {"lr": "fast"}, r"'lr' .*Got 'fast'"),
    ("ae-kmeans", {"lr": float("nan")}, r"'lr' .*Got nan"),
    ("ae-kmeans", {"hidden_dims": 8}, r"'hidden_dims' .*Got 8"),
    ("ae-kmeans", {"hidden_dims": "ab"}, r"'hidden_dims' .*Got 'ab'"),
    ("ae-kmeans", {"batch_size": 0}, r"'batch_size' .*\[1, inf\). Got 0"),
    ("ae-kmeans", {"batch_size": True}, r"'batch_size' .*Got True"),
    ("ae-kmeans", {"max_steps": -1}, r"'max_steps' .*Got -1"),
    ("ae-kmeans", {"latent_dim": 0}, r"'latent_dim' .*Got 0"),
    ("ae-kmeans", {"scaling": "foo"}, r"'scaling' .*'minmax'.*Got 'foo'"),
    ("ae-kmeans", {"tol": 2}, r"'tol' .*Got 2"),
    ("ae-kmeans", {"n_init": 0}, r"'n_init' .*Got 0"),
    ("ae-kmeans", {"device": "tpu"}, r"device='tpu' cannot be used here .*use 'auto' or 'cpu'"),
    ("ae-kmeans", {"device": "meta"}, r"device='meta' cannot be used here"),
    ("ae-kmeans", {"lr": 1e30}, r"no longer finite \(.*\) at step \d+: lower lr=1e\+30"),
    ("set-transformer", {"device": "tpu"}, r"device='tpu' cannot be used here"),
    ("set-transformer", {"device": 5}, r"'device' .*Got 5"),
    ("set-transformer", {"refine": "foo"}, r"'refine' .*'em'.*Got 'foo'"),
    ("set-transformer", {"n_em": 0}, r"'n_em' .*Got 0"),
    ("set-transformer", {"scaling": "none"}, r"scaling='none'.*2 columns, got 3: use .*'auto'"),
    (
        "set-transformer",
        {"n_clusters": 9},
        r"n_clusters=9, but .* for 4: ask for at most 4",
    ),
    ("set-transformer", {"weights": "nope"}, r"named 'nope'; known: .*set-transformer-mog"),
    ("set-transformer", {"weights": "./no.safetensors"}, r"no weights file at no.safetensors: ch"),
    ("set-transformer", {"weights": 5}, r"'weights' .*Got 5"),
    ("kmeans", {"max_clusters": 1}, r"'max_clusters' .*Got 1"),
    ("gmm", {"reg_covar": -1}, r"'reg_covar' .*Got -1"),
    ("bayesian-gmm", {"concentration": 0}, r"'concentration' .*Got 0"),
    ("hdbscan", {"noise": "drop"}, r"'noise' .*Got 'drop'"),
    ("hdbscan", {"min_cluster_size": 1}, r"'min_cluster_size' .*Got 1"),
    ("spectral", {"n_neighbors": 0}, r"'n_neighbors' .*Got 0"),
    ("spectral", {"max_rows": 1}, r"'max_rows' .*Got 1"),
    ("agglomerative", {"linkage": "foo"}, r"'linkage' .*'ward'.*Got 'foo'"),
]

READ_ONLY = TWO.copy()
READ_ONLY.setflags(write=False)

LEGAL = {
    "a constant column": np.c_[TWO, np.full(30, 7.0)],
    "duplicated rows": np.repeat(TWO[::3], 3, axis=0),
    "identical rows": np.full((12, 3), 2.5),
    "two rows": np.array([[0.0, 1.0], [9.0, 2.0]]),
    "one column": TWO[:, :1],
    "1e30": TWO * 1e30,
    "1e30 in single precision": (TWO * 1e30).astype(np.float32),
    "float32": TWO.astype(np.float32),
    "float16": TWO.astype(np.float16),
    "integers": (TWO * 10).astype(np.int32),
    "booleans": TWO > 5,
    "a frame of integers and floats": pd.DataFrame({"a": range(30), "b": TWO[:, 0]}),
    "a frame with extension types": pd.DataFrame({"a": range(30), "b": TWO[:, 0]}).convert_dtypes(),
    "polars": pl.DataFrame({"a": range(30), "b": TWO[:, 0]}),
    "a tensor": torch.from_numpy(TWO),
    "a tensor with gradient": torch.from_numpy(TWO).requires_grad_(),
    "a tensor of bfloat16": torch.from_numpy(TWO).bfloat16(),
    "a list": TWO.tolist(),
    "read-only": READ_ONLY,
    "Fortran order": np.asfortranarray(TWO),
    "a view with steps": np.repeat(TWO, 2, axis=1)[:, ::2],
}


class Command(NamedTuple):
    """A command line that must be refused; ``late`` where only the fit can know."""

    arguments: str
    words: str
    late: bool = False


COMMANDS = [
    # no such command, option, argument
    Command("", r"give a command; asterism --help"),
    Command("plot", r"give a command; asterism plot --help"),
    Command("clustr t.csv", r"'clustr'. Did you mean 'cluster'\?"),
    Command("--loud", r"No such option: --loud"),
    Command("cluster t.csv --formt csv", r"--formt .*--format"),
    Command("cluster", r"Missing argument 'TABLE'"),
    Command("cluster t.csv t.csv", r"unexpected extra argument.*t.csv"),
    Command("cluster t.csv -k", r"'-k' requires an argument"),
    Command("cluster t.csv --seed x", r"'--seed'.*\(got 'x'\)"),
    Command("cluster t.csv --seed=-1", r"'--seed'.*\(got '-1'\)"),
    # the table
    Command("cluster nope.csv", r"no such file: nope.csv"),
    Command("cluster folder", r"folder is a directory"),
    Command("cluster empty.csv", r"empty.csv is empty"),
    Command("cluster blank.csv", r"blank.csv is empty"),
    Command("cluster header.csv", r"only a header, no rows; .*--header no"),
    Command("cluster one.csv", r"1 row: clustering needs two"),
    Command("cluster t.foo", r"'t.foo' names no table format: .*\.csv.*--format$"),
    Command("cluster ragged.csv", r"ragged.csv, line 3: expected 2 fields .*found 3; .*--sep$"),
    Command("cluster junk.csv", r"junk.csv holds binary data.*--format, or its --encoding"),
    Command("cluster latin.csv", r"not text in UTF-8: .*--encoding 'latin-1'"),
    Command("cluster junk.parquet", r"junk.parquet cannot be read as parquet"),
    Command("cluster junk.npy", r"junk.npy cannot be read as NPY"),
    Command("cluster junk.jsonl", r"junk.jsonl, line 1 is not JSON"),
    Command("cluster junk.csv.gz", r"junk.csv.gz cannot be read, it may be damaged"),
    Command("cluster many.npz", r"2 arrays \('a', 'b'\): choose --key$"),
    Command("cluster many.npz --key c", r"no array 'c'; it holds 'a', 'b'"),
    Command("cluster vector.npy", r"shape \(30,\): a table needs two dimensions"),
    Command("cluster complex.npy", r"type complex128"),
    Command("cluster infinite.npy", r"column 'x1', row 4: inf .*replace"),
    Command("cluster twice.csv", r"several columns 'a': rename"),
    Command("cluster constant.csv", r"no column is left.*'a' dropped: always 1"),
    Command("cluster t.csv --format parquet", r"t.csv cannot be read as parquet"),
    Command("cluster t.csv --format foo", r"'foo' names no table format"),
    Command("cluster t.csv --header maybe", r"--header maybe: give auto, yes or no"),
    Command("cluster t.csv --sep ,,", r"--sep ',,' is neither"),
    Command("cluster t.csv --decimal xx", r"--decimal 'xx' is not one character"),
    Command("cluster t.csv --encoding foo", r"--encoding 'foo' is not"),
    # its columns
    Command("cluster t.csv --id heigth", r"--id asks for column 'heigth'.*mean 'height'\?"),
    Command("cluster t.csv --label knd", r"--label asks for column 'knd'.*mean 'kind'\?"),
    Command("cluster t.csv --drop wieght", r"--drop asks for column 'wieght'.*mean 'weight'\?"),
    Command("cluster date.csv", r"'day' holds dates.*--drop day"),
    Command("cluster id.csv", r"'code' looks like an identifier.*--id code or --drop code"),
    Command("cluster done.csv", r"already has a column 'cluster': .*--cluster-column$"),
    Command("cluster t.csv --cluster-column height", r"already has a column 'height'"),
    Command("cluster t.csv --cluster-column=", r"--cluster-column '' is no name"),
    Command("cluster t.csv --cluster-column p --probability-column p", r"both 'p': give two"),
    Command("cluster t.csv --scaling foo", r"--scaling 'foo' is none of standard, robust, none"),
    # the method
    Command("cluster t.csv -m kmean", r"named 'kmean'.*kmeans"),
    Command("cluster t.csv -k 0", r"--n-clusters 0: give at least 1"),
    Command("cluster t.csv -k 0-3", r"--n-clusters 0-3: give at least 1"),
    Command("cluster t.csv -k 8-2", r"--n-clusters 8-2: give the lower number first, 2-8"),
    Command("cluster t.csv -k 2-8-9", r"--n-clusters 2-8-9: give 'auto'.* or a range: 2-8"),
    Command("cluster t.csv -m kmeans -k 2-8", r"no range .*2-8: give --n-clusters K,.*asterism$"),
    Command("cluster t.csv -m hdbscan -k 2-8", r"'hdbscan' finds .*: leave --n-clusters auto"),
    Command("cluster t.csv --use-labels", r"--use-labels needs --label NAME"),
    Command(
        "cluster t.csv -m kmeans --label kind --use-labels",
        r"'kmeans' does not use labels: leave out --use-labels,.*: asterism$",
    ),
    Command("cluster t.csv -m kmeans --details", r"'kmeans' has no confidence .*out --details"),
    Command("cluster t.csv -k abc", r"--n-clusters abc: give 'auto' or a whole number"),
    Command("cluster t.csv -k 31", r"n_samples=30 .*n_clusters=31: ask for fewer", late=True),
    Command("cluster t.csv -m ae-kmeans", r"'ae-kmeans' needs the number .*give --n-clusters K"),
    Command("cluster t.csv -m hdbscan -k 3", r"'hdbscan' finds .* got 3: leave --n-clusters auto"),
    Command("cluster t.csv -m set-transformer -k 9", r"n_clusters=9, but .* for 4", late=True),
    Command("cluster t.csv --set lr", r"--set lr: write NAME=VALUE"),
    Command("cluster t.csv -m kmeans --set n_inits=3", r"'n_inits' .*mean 'n_init'\?"),
    Command("cluster t.csv -m kmeans --set n_init=abc", r"'n_init' .*Got 'abc'", late=True),
    Command("cluster t.csv --set table=x", r"no parameter 'table'"),
    Command("cluster t.csv -k 3 --set n_clusters=4", r"--n-clusters 3 and --set n_clusters=4"),
    Command("cluster t.csv -m kmeans --device tpu", r"--device tpu: method 'kmeans' .*CPU only"),
    Command("cluster t.csv -m set-transformer --device tpu", r"device='tpu'", late=True),
    Command("cluster t.csv -m set-transformer --set weights=no", r"named 'no'; known", late=True),
    # the outputs
    Command("cluster t.csv -o none/x.csv", r"none/x.csv: there is no folder none; make it"),
    Command("cluster t.csv -o x.foo", r"'x.foo' names no table format.*endings$"),
    Command("cluster t.csv -o x.npz", r"'x.npz' names no table format"),
    Command("cluster t.csv -o x.npy", r"column 'kind' is not numeric"),
    Command("cluster t.csv -o folder.csv", r"folder.csv is a directory: give"),
    Command("cluster t.csv --json -o -", r"--json and the table cannot both .*--output FILE"),
    Command("cluster - --json", r"--json and the table cannot both"),
    Command("cluster t.csv --report folder", r"--report folder: this is a directory, give"),
    Command("cluster t.csv --report -", r"--report -: .*give the name of a file"),
    Command("cluster t.csv --report none/x.html", r"there is no folder none"),
    Command("cluster t.csv --save none/model", r"there is no folder none"),
    Command("cluster t.csv --save folder", r"--save folder: this is a directory"),
    Command("cluster t.csv --plot x.foo", r"--plot x.foo: the name must end in .png"),
    Command("cluster t.csv --report x.pdf", r"--report x.pdf: a report is a page, .* .html"),
    Command("cluster t.csv --drop weight,height", r"give each column by itself"),
    Command("cluster t.csv --plot folder", r"--plot folder: this is a directory"),
    # predict
    Command("predict nope t.csv", r"no weights card at nope.json.*check the path"),
    Command("predict damaged t.csv", r"damaged.safetensors is damaged.*train it again"),
    Command("predict bare t.csv", r"bare holds an estimator without .*asterism.load"),
    Command("predict model nope.csv", r"no such file: nope.csv"),
    Command("predict model short.csv", r"fitted on column 'height', which the table does not have"),
    Command("predict model text.csv", r"column 'height', row 1: 'tall' is not a number.*mend"),
    Command("predict model done.csv", r"already has a column 'cluster'"),
    Command("predict model t.csv -o none/x.csv", r"there is no folder none"),
    Command("predict model t.csv -o x.foo", r"'x.foo' names no table format"),
    Command("predict model t.csv --json -o -", r"--json and the table cannot both"),
    Command("predict model", r"Missing argument 'TABLE'"),
    # plot
    Command("plot clusters nope.csv", r"no such file: nope.csv"),
    Command("plot clusters t.csv", r"t.csv has no column 'cluster': .*--cluster-column"),
    Command("plot clusters t.csv --cluster-column kind", r"--cluster-column kind: .*whole numbers"),
    Command("plot clusters done.csv --projection foo", r"'pca'.*got 'foo'"),
    Command("plot clusters done.csv -o x.foo", r"--output x.foo: the name must end in .png"),
    Command("plot history nope", r"no such file: nope"),
    Command("plot history t.csv", r"t.csv holds no training records: give"),
    Command("plot confusion done.csv", r"Missing option '--label'"),
    Command("plot confusion done.csv --label z", r"--label z: the table has .*height"),
    # train
    Command("train set-transformer", r"Missing option '--output'"),
    Command("train kmean -o w", r"named 'kmean'.*kmeans"),
    Command("train kmeans -o w", r"'kmeans' is trained on your data by 'asterism cluster'"),
    Command("train set-transformer -o none/w", r"there is no folder none"),
    Command("train set-transformer -o w --run-dir t.csv", r"--run-dir t.csv: this is a file"),
    Command("train set-transformer -o w --steps=-1", r"'--steps'.*\(got '-1'\)"),
    Command("train set-transformer -o w --batch-size 0", r"'--batch-size'.*\(got '0'\)"),
    Command("train set-transformer -o w --lr=-1", r"--lr -1: give a number above 0"),
    Command("train set-transformer -o w --schedule foo", r"'foo' is not one of .*'cosine'"),
    Command("train set-transformer -o w --ema 2", r"ema=2\.0 is out of range"),
    Command("train set-transformer -o w --threads 0", r"'--threads'.*\(got '0'\)"),
    Command("train set-transformer -o w --device tpu", r"device='tpu' cannot be used"),
    Command("train set-transformer -o w --prior foo=1", r"--prior foo: the prior has n_clusters"),
    Command("train set-transformer -o w --prior scale", r"scale: choose .*, or write NAME=VALUE"),
    Command("train set-transformer -o w --prior scale=abc", r"scale=abc: give a number, .*=0.3"),
    Command("train set-transformer -o w --prior n_points=5", r"n_points=5: give a list of 2"),
    Command("train set-transformer -o w --prior n_points=[9,1]", r"\(9, 1\) must be \(lowest"),
    Command("train set-transformer -o w --set foo=1", r"--set foo: the network has .*width"),
    Command("train set-transformer -o w --set width=abc", r"width=abc: give a whole number"),
    Command("train set-transformer -o w --set width=0", r"width=0: give a larger"),
    Command("train set-transformer -o w --set width=15", r"heads=4 must divide width=15"),
]
