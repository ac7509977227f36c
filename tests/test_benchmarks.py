"""Every benchmark can be imported: a name that moves is noticed here, not when ratios are wanted."""

import importlib
import pkgutil

import pytest

import benchmarks

NAMES = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name != "__main__"]


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_imported(name):
    assert importlib.import_module(f"benchmarks.{name}")
