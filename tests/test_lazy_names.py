"""Every public name can be reached, and none is loaded before it is used."""

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

import rankpolicy

PACKAGES = ["rankpolicy"] + [
    found.name for found in pkgutil.iter_modules(rankpolicy.__path__, "rankpolicy.") if found.ispkg
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_there_and_is_no_module_of_the_same_name(package):
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        assert name in dir(module)
        if hasattr(value, "__path__") or type(value) is type(sys):
            assert value.__name__ == f"{package}.{name}"
            assert package == "rankpolicy", f"{package}.{name} is a module where a function or class was meant"


def test_what_users_type_is_listed_and_helpers_are_not():
    assert {"tune", "Client", "scan_parquet", "scan_letor"} <= set(rankpolicy.__all__)
    shown = {name for name in dir(rankpolicy) if not name.startswith("__")}
    assert shown == {name for name in rankpolicy.__all__ if not name.startswith("__")} | {"executors"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'PGRnk'"):
        _ = rankpolicy.PGRnk


@pytest.mark.parametrize(
    ("wrong", "meant"), [("PgRank", "PGRank"), ("lambdamart", "LambdaMART"), ("read_letr", "read_letor")]
)
def test_a_misspelled_name_is_answered_with_the_name_that_is_meant(wrong, meant):
    with pytest.raises(AttributeError, match=f"has no attribute '{wrong}'. Did you mean '{meant}'"):
        getattr(rankpolicy, wrong)


def test_importing_loads_no_package_that_costs_time():
    code = "import json, sys, rankpolicy; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert not {"torch", "numba", "scipy", "polars", "pandas", "lightgbm", "matplotlib", "typer", "rich"} & set(loaded)
