import importlib
import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from rankpolicy.cli.support.catalog import KINDS, describe, read_locations, read_summary
from rankpolicy.declarations.settings import Declaration, ReadWhen, setting


def test_every_kind_is_listed(rankpolicy):
    shown = rankpolicy("methods")
    assert shown.status == 0
    for kind in KINDS.values():
        assert kind.title in shown.stdout
        assert all(f" {name} " in shown.stdout for name in kind.locations)


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_has_a_summary(kind):
    summaries = KINDS[kind].summaries()
    assert list(summaries) == list(_imported(KINDS[kind]))
    assert all(summaries.values())
    assert not any("``" in summary for summary in summaries.values())


def test_the_source_gives_what_importing_gives():
    for kind in KINDS.values():
        assert kind.locations == _imported(kind).locations
        name = next(iter(kind.locations))
        assert kind.member(name) is _imported(kind)[name]
    assert read_summary("rankpolicy.rankers.trees.lambdamart:LambdaMART").startswith("LambdaMART")
    with pytest.raises(KeyError):
        read_locations("rankpolicy.rankers.members", "NONE")


def _imported(kind):
    module, _, name = kind.table.partition(":")
    return getattr(importlib.import_module(module), name)


def test_json_lists_by_kind(rankpolicy):
    kinds = rankpolicy("methods", "--json").json["kinds"]
    assert set(kinds) == set(KINDS)
    assert {"pg-rank", "lambdamart"} <= set(kinds["ranker"])
    assert kinds["ranker"]["lambdamart"].startswith("LambdaMART")


def test_one_method_with_its_settings(rankpolicy):
    shown = rankpolicy("methods", "lambdamart").stdout
    assert "rankpolicy.rankers.trees.lambdamart.LambdaMART" in shown
    assert "num_leaves" in shown
    assert "A whole number, at least 2 and at" in shown


def test_json_of_one_method(rankpolicy):
    (found,) = rankpolicy("methods", "lambdamart", "--json").json["found"]
    assert found["kind"] == "ranker"
    (leaves,) = [each for each in found["settings"] if each["name"] == "num_leaves"]
    assert leaves.pop("help").startswith("Leaves per tree.")
    assert leaves == {
        "name": "num_leaves",
        "kind": "a whole number",
        "required": False,
        "default": 15,
        "range": "at least 2 and at most 131072",
        "choices": [],
        "read_when": "",
    }


@dataclass(kw_only=True)
class Example:
    """An example."""

    control: str = setting("mean", "What is subtracted.", choices=("mean", "none"))
    samples: int | None = setting(
        None, "How many.", at_least=1, read_when=ReadWhen(condition="control is 'mean'", holds=lambda owner: True)
    )
    widths: tuple[int, ...] = setting((64, 64), "Layer widths.")
    flat: bool = setting(True, "Whether it is flat.")


@pytest.fixture
def example(monkeypatch):
    members = {"ours": Example, "lambdamart": Example}
    _replace_table(monkeypatch, "bandit", members)


def _replace_table(monkeypatch, kind, members):
    table = KINDS[kind].table.replace(":", ".")
    monkeypatch.setattr(table, members)
    locations = {name: f"tests.cli.test_methods:{name}" for name in members}

    def read(module, name):
        return locations if f"{module}.{name}" == table else read_locations(module, name)

    monkeypatch.setattr("rankpolicy.cli.support.catalog.read_locations", read)


def test_choices_ranges_defaults_and_conditions_are_shown(rankpolicy, example):
    shown = rankpolicy("methods", "ours").stdout
    assert "mean      What is subtracted. One of mean, none." in shown
    assert "none      How many. A whole number or None, at least 1. Read only when control is 'mean'." in shown
    assert "64,64     Layer widths." in shown
    assert "true      Whether it is flat." in shown


def test_all_kinds_that_share_a_name_are_shown(rankpolicy, example):
    assert [found.kind for found in describe("lambdamart")] == ["ranker", "bandit"]
    shown = rankpolicy("methods", "lambdamart").stdout
    assert "lambdamart  ranker" in shown
    assert "lambdamart  bandit" in shown


def test_what_has_no_settings_says_so(rankpolicy):
    assert "how it is fitted: rankpolicy clicks fit --help" in rankpolicy("methods", "dcm").stdout


def test_options_of_a_value_are_shown_as_settings(rankpolicy, monkeypatch):
    def measure(rankings, *, persistence=0.8):
        """Measure."""

    metric = SimpleNamespace(function=measure, options={"persistence": Declaration(help="Patience.", above=0, below=1)})
    _replace_table(monkeypatch, "metric", {"ours": metric})
    (found,) = rankpolicy("methods", "ours", "--json").json["found"]
    assert found["settings"][0]["default"] == 0.8
    assert "0.8       Patience. Above 0 and below 1." in rankpolicy("methods", "ours").stdout


def test_unknown_names(refused):
    assert "Unknown name 'pg-rnk'. Did you mean 'pg-rank'? For all names: rankpolicy methods." in refused(
        "methods", "pg-rnk"
    )
    assert "Unknown name 'zzzz'. For all names: rankpolicy methods." in refused("methods", "zzzz")


LIGHT = """
import sys
from rankpolicy.cli.support.catalog import KINDS
for kind in KINDS.values():
    kind.summaries()
print([name for name in ("torch", "numpy", "numba", "polars") if name in sys.modules])
"""


def test_the_list_imports_no_method():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
