"""Shared by all tests."""

import os

# scikit-learn's array-API check is skipped without it, and none of its checks may be.
os.environ["SCIPY_ARRAY_API"] = "1"

import pytest

from asterism.methods.registry import methods

_FEW = {"n_threads": 6, "n_samples": 6, "n_draws": 1, "scaling": "local"}
_QUICK_MIXTURE = {"epoch_steps": 5, "n_epochs": 1, "patience": 1}
LIGHT = {
    "ae-kmeans": {"hidden_dims": (16,), "max_steps": 40, "n_init": 2},
    "ae-deepdpm": {
        "hidden_dims": (16,),
        "max_steps": 20,
        "n_alternations": 1,
        "alternation_steps": 5,
        **_QUICK_MIXTURE,
    },
    "acp": _FEW,
    "ccp": _FEW,
    "dac": {"scaling": "local"},
    "deepdpm": _QUICK_MIXTURE,
    "dp-sampler": {"n_samples": 3, "n_burn": 8, "n_moves": 3},
    "ncp": {"n_samples": 8, "scaling": "local"},
}
"""Parameters that make a method quick; what is tested does not depend on them.

Scales are tried by all amortised methods alike, and here by those whose networks are the quickest.
"""


def light(name, **parameters):
    """Quick estimator of a method."""
    from asterism.methods.registry import get_method

    return get_method(name).load()(**{**LIGHT.get(name, {}), **parameters})


@pytest.fixture(params=[method.name for method in methods()])
def method_name(request):
    """Every registered method in turn."""
    return request.param
