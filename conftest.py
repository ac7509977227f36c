"""Without an NVIDIA driver the kernels of rankpolicy.kernels.triton are tested in Triton's interpreter.

It must be chosen before anything imports triton.
"""

import importlib.util
import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# These modules import triton: where it is missing they are not searched for doctests.
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/rankpolicy/kernels/triton/*.py"]
collect_ignore = [] if importlib.util.find_spec("triton") else ["tests/kernels/triton"]
IS_LIGHT = importlib.util.find_spec("torch") is None


@contextmanager
def _skipped_without_its_package():
    """In the light installation, without torch, a test that needs a further package is skipped; elsewhere nothing is."""
    try:
        yield
    except (ImportError, pytest.Collector.CollectError) as error:
        words = re.search(
            r"No module named '(\w+)|needs (\w+): pip install|cannot import name '\w+' from '(tests)", str(error)
        )
        if not IS_LIGHT or words is None or "rankpolicy" in words.groups():
            raise
        pytest.skip(f"needs {next(filter(None, words.groups()))}", allow_module_level=True)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    if isinstance(collector, pytest.Module):
        import_module = collector._getobj
        collector._getobj = lambda: _skipped_without_its_package()(import_module)()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup():
    with _skipped_without_its_package():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    with _skipped_without_its_package():
        return (yield)
