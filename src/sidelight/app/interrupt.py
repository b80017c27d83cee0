"""Ctrl-C at a moment when there is something to keep."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held_back() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back until the function that is yielded is called; a second one is not held.

    A solver calls it between its steps: in the midst of one its state is not whole.
    """
    asked = False

    def hold(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def let_go() -> None:
        nonlocal asked
        if asked:
            asked = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield let_go
    finally:
        signal.signal(signal.SIGINT, before)
