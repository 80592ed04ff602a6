"""Ctrl-C and SIGTERM during a run that keeps checkpoints: finish the step, save, then stop.

A second Ctrl-C stops at once.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

__all__ = ["StopRequest", "stop_request"]


class StopRequest:
    """Remembers which signal asked the run to stop."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def received(self) -> bool:
        """Whether a signal has come."""
        return self.signal is not None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal; at the second one stop at once."""
        if self.received:
            raise KeyboardInterrupt
        self.signal = number

    def obey(self, step: int, directory: Path | None) -> None:
        """Leave as the signal would have us leave, after the work is safe."""
        message = f"stopped after step {step}; run again to resume from {directory}"
        if self.signal == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
        raise KeyboardInterrupt(message)


@contextmanager
def stop_request(active: bool) -> Iterator[StopRequest]:
    """Catch the two signals inside the block, in the main thread, and only there."""
    request = StopRequest()
    if not active or threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, request) for number in numbers]
    try:
        yield request
    finally:
        for number, handler in zip(numbers, before, strict=True):
            if handler is not None:  # None stands for a handler that was not set from Python
                signal.signal(number, handler)
