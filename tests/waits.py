"""How tests wait for another thread or process: until a condition holds, for at most ``LONGEST_WAIT``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# Seconds. Nothing in the suite takes as long, except on a machine that does much else: it decides only when a test gives up.
LONGEST_WAIT = 180.0


def wait_until(condition: Callable[[], Any], describe: Callable[[], Any] = lambda: "it did not happen") -> None:
    """Ask again and again until a condition holds; ``describe`` says what was seen instead."""
    end = time.monotonic() + LONGEST_WAIT
    while not condition():
        assert time.monotonic() < end, describe()
        time.sleep(0.02)
