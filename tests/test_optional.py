"""What an import that lacks a package says."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from rankpolicy.optional import EXTRA_OF, require
from rankpolicy.types import MissingDependencyError

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("package", EXTRA_OF)
def test_the_extra_that_is_named_brings_the_package(package):
    brought = [re.split(r"[\[><=;]", requirement)[0] for requirement in EXTRAS[EXTRA_OF[package]]]
    assert any(name == package or name.startswith(f"{package}-") for name in brought)


def test_the_extra_all_has_every_other_of_the_library():
    named = re.search(r"\[(.*)\]", EXTRAS["all"][0]).group(1).split(",")
    assert set(named) == {"torch", "frames", "plot", *EXTRA_OF.values()}


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match=r"^A frame needs polars: pip install 'rankpolicy\[frames\]'$"):
        require("polars", "A frame")


def test_the_package_that_a_module_lacks_is_named_and_not_the_module(monkeypatch):
    monkeypatch.delitem(sys.modules, "safetensors.torch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"^A checkpoint needs torch: pip install 'rankpolicy\[torch\]'$"):
        require("safetensors.torch", "A checkpoint")
