"""Calls of the public face with one or two odd arguments: a result, or an error of ours.

``python -m tests.fuzz.public_face 20000`` makes a longer run and prints every raw exception once; a second number is the seed.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import rankpolicy as rp
from tests.fuzz.examples import calls, not_called
from tests.fuzz.odd_values import odd_value

_MOST_BYTES = 10 << 30
_MOST_SECONDS = 30
LENGTHS = {
    "count", "cutoff", "iterations", "num_changes", "num_draws", "num_flips", "num_items", "num_points", "num_positions", "num_queries",
    "num_rankers", "num_repeats", "num_resamples", "num_runs", "num_samples", "num_sessions", "num_steps", "max_candidates", "denominator",
    "reference_samples",
}  # fmt: skip
_CALLBACKS = {"report_fit"}  # what these raise is the user's, as int does with two arguments
_EXPECTED = (rp.RankPolicyError, rp.MissingDependencyError)


def run(num_calls: int, *, seed: int) -> Counter[str]:
    """Raw exceptions by description, and how often each came up."""
    rng, raw = random.Random(seed), Counter[str]()
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/work")
        os.chdir(f"{folder}/work")
        try:
            known = calls()
            assert not not_called(known), f"public names that are not tried: {sorted(not_called(known))}"
            for name, (function, arguments) in known.items():
                found = _raw_exception(name, function, arguments, allowed=())
                assert found is None, f"{name} does not work as it stands: {found}"
            shutil.copytree(".", f"{folder}/kept")
            for _ in range(num_calls):
                name = rng.choice(sorted(known))
                function, arguments = known[name]
                changed = rng.sample(sorted(arguments), min(len(arguments), rng.choice([1, 1, 2])))
                odd = {key: _affordable(key, odd_value(rng)) for key in changed}
                found = _raw_exception(name, function, arguments | odd, allowed=_EXPECTED)
                if found is not None:
                    raw[f"{name}({', '.join(f'{key}={value!r:.60}' for key, value in odd.items())}): {found}"] += 1
                if not {"path", "directory"}.isdisjoint(odd):  # a writer may have replaced a file
                    shutil.copytree(f"{folder}/kept", ".", dirs_exist_ok=True)
        finally:
            os.chdir(here)
    return raw


def _affordable(name: str, value: Any) -> Any:
    """The value; a number of steps, runs or items that is valid and would take hours becomes a small one."""
    is_large = isinstance(value, int | float) and 10_000 < value < 2**63
    return 3 if is_large and name in LENGTHS else value


def _raw_exception(
    name: str, function: Callable[..., Any], arguments: dict[str, Any], *, allowed: tuple[type[Exception], ...]
) -> str | None:
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            signal.alarm(_MOST_SECONDS)
            repr(function(**arguments))
    except (*allowed, MemoryError):
        return None
    except Exception as error:
        if isinstance(error, LookupError) and name.endswith("[]"):  # what indexing is expected to raise
            return None
        if isinstance(error, TypeError) and any(arguments.get(name) is int for name in _CALLBACKS):
            return None
        if "allocate memory" in str(error):  # torch's words for it: billions of numbers were asked for
            return None
        places = traceback.extract_tb(error.__traceback__)
        ours = [place for place in places if "/rankpolicy/" in place.filename] or places
        place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}"
        return f"{type(error).__name__}: {str(error)[:100]} ({place})"
    finally:
        signal.alarm(0)
    return None


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"took more than {_MOST_SECONDS} s")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    outcome = run(int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    by_function: dict[str, list[str]] = {}
    for text in outcome:
        by_function.setdefault(text.partition("(")[0], []).append(text)
    for texts in by_function.values():
        print("\n".join(texts[:6]))
    print(f"{sys.argv[1]} calls, {sum(outcome.values())} raw exceptions in {len(by_function)} functions")
    sys.exit(bool(outcome))
