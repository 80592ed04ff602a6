"""What a script has told torch: set aside while a method computes, and given back.

Networks here are in single precision and learn by gradients. Under another default precision or
device, autocast, ``no_grad`` or ``inference_mode`` they would fail with torch's own words, or
answer otherwise. So every method that computes is ``undisturbed``; an encoder of the user's, called
on the way, finds the settings ``as_called``.

Gradients, inference and autocast are a thread's own. The default precision is the process's: the
first method to begin sets it aside and the last to end gives it back, and meanwhile other threads
see single precision too.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch

__all__ = ["as_called", "undisturbed"]

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

_OURS = torch.float32
_CASTS = ("cpu", "cuda", "mps", "xpu")


class _Settings(NamedTuple):
    precision: torch.dtype
    device: torch.device
    gradients: bool
    inference: bool
    casts: tuple[tuple[str, torch.dtype], ...]


class _Precision:
    """The process's default precision, while some method computes in ours."""

    def __init__(self) -> None:
        self.lock, self.users, self.theirs = threading.Lock(), 0, _OURS

    def now(self) -> torch.dtype:
        """The user's."""
        with self.lock:
            return self.theirs if self.users else torch.get_default_dtype()

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Ours inside the block, and until the last that is in one leaves it."""
        with self.lock:
            if not self.users:
                self.theirs = torch.get_default_dtype()
                torch.set_default_dtype(_OURS)
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    torch.set_default_dtype(self.theirs)


_PRECISION = _Precision()
_THEIRS: ContextVar[_Settings | None] = ContextVar("_THEIRS", default=None)


def undisturbed(method: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Let a method compute with torch as it comes, whatever the script has told it.

    >>> @undisturbed
    ... def precision():
    ...     return torch.ones(1, requires_grad=True).exp().requires_grad
    >>> with torch.no_grad():
    ...     precision()
    True
    """

    @wraps(method)
    def computing(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        if _THEIRS.get() is not None:  # called by a method that has set them aside
            return method(*args, **kwargs)
        theirs = _settings()
        token = _THEIRS.set(theirs)
        try:
            with ExitStack() as stack:
                stack.enter_context(_PRECISION.set_aside())
                stack.enter_context(torch.inference_mode(False))
                stack.enter_context(torch.enable_grad())
                for kind, _ in theirs.casts:
                    stack.enter_context(torch.autocast(kind, enabled=False))
                if theirs.device.type != "cpu":
                    stack.enter_context(torch.device("cpu"))
                return method(*args, **kwargs)
        finally:
            _THEIRS.reset(token)

    return computing


@contextmanager
def as_called() -> Iterator[None]:
    """Inside the block torch is as the script has it that called the method we are in."""
    theirs = _THEIRS.get()
    if theirs is None:
        yield
        return
    token = _THEIRS.set(None)
    try:
        with ExitStack() as stack:
            if theirs.precision != _OURS:
                stack.callback(torch.set_default_dtype, _OURS)
                torch.set_default_dtype(theirs.precision)
            stack.enter_context(torch.inference_mode(theirs.inference))
            stack.enter_context(torch.set_grad_enabled(theirs.gradients))
            for kind, precision in theirs.casts:
                stack.enter_context(torch.autocast(kind, precision))
            if theirs.device.type != "cpu":
                stack.enter_context(theirs.device)
            yield
    finally:
        _THEIRS.reset(token)


def _settings() -> _Settings:
    casts = [kind for kind in _CASTS if torch.is_autocast_enabled(kind)]
    return _Settings(
        _PRECISION.now(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        tuple((kind, torch.get_autocast_dtype(kind)) for kind in casts),
    )
