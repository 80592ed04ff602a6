"""Linear algebra of numpy keeps to one thread where it alternates with torch, and only there."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_info, threadpool_limits

from asterism import DeepDPM
from asterism.methods.nonparametric import expectations
from asterism.training import threads
from asterism.training.threads import one_thread
from conftest import LIGHT


def numpy_threads():
    return {
        library["num_threads"]
        for library in threadpool_info()
        if {"numpy", "numpy.libs"} & set(Path(library["filepath"]).parts)
    }


held = pytest.mark.skipif(not numpy_threads(), reason="numpy has no linear algebra of its own")


@held
@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_are_held_and_given_back(n_threads):
    with threadpool_limits(n_threads, user_api="blas"):
        with one_thread():
            assert numpy_threads() == {1}
            with one_thread():
                assert numpy_threads() == {1}
            assert numpy_threads() == {1}
        assert numpy_threads() == {n_threads}
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert numpy_threads() == {n_threads}


@held
def test_blocks_that_overlap_give_back_what_there_was():
    first_is_in, second_is_in = threading.Event(), threading.Event()
    before = numpy_threads()

    def first():
        with one_thread():
            first_is_in.set()
            assert second_is_in.wait(10)
            return numpy_threads()

    def second(one):
        with one_thread():
            second_is_in.set()
            return one.result()  # which began before, and ends before

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        assert first_is_in.wait(10)
        assert pool.submit(second, one).result() == {1}
    assert numpy_threads() == before


def test_only_what_numpy_and_scipy_brought_is_held():
    home = Path(np.__file__).resolve().parent
    for own in (home / ".dylibs" / "libopenblas.dylib", home.parent / "numpy.libs" / "lib.so"):
        assert threads._own(str(own))
    for other in (home.parent / "torch" / "lib" / "libopenblas.so", "/usr/lib/libopenblas.so"):
        assert not threads._own(str(other))


@held
def test_an_encoder_has_all_threads_and_the_search_one(monkeypatch):
    X, _ = make_blobs([80, 20, 40], centers=[[0, 0], [6, 0], [0, 6]], cluster_std=0.3)
    seen = {"encoder": set(), "search": set()}
    search = expectations.pool_covariance

    def watched(*args, **kwargs):
        seen["search"] |= numpy_threads()
        return search(*args, **kwargs)

    def encoder(rows):
        seen["encoder"] |= numpy_threads()
        return rows

    monkeypatch.setattr(expectations, "pool_covariance", watched)
    with threadpool_limits(2, user_api="blas"):
        DeepDPM(encoder=encoder, **LIGHT["deepdpm"], random_state=0).fit(X)
    assert seen == {"encoder": {2}, "search": {1}}
