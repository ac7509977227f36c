"""The reference cannot lag: every public name, command and option has its place on a generated page."""

import doctest
import inspect
import re
import types

import pytest

from docs.building import commands, docstrings, public_names
from rankpolicy.cli.verbs import CLICKS_VERBS, SERVICE_VERBS, VERBS
from tests.undocumented import public_packages

PAGES = public_names.reference_pages()
TARGETS = set(re.findall(r"^\(([^)\s]+)\)=$", "\n".join(PAGES.values()), re.M))
COMMAND_PAGE = commands.command_page()


def missing_names(packages):
    """Public names without a target on a page."""
    for module in packages:
        for name in module.__all__:
            value = getattr(module, name)
            target = value.__name__ if isinstance(value, types.ModuleType) else f"{module.__name__}.{name}"
            if target not in TARGETS:
                yield target


def test_every_public_name_has_a_place():
    assert list(missing_names(public_packages())) == []


def test_a_name_without_a_place_is_noticed():
    stranger = types.ModuleType("rankpolicy.stranger")
    stranger.__all__ = ["unheard_of"]
    stranger.unheard_of = lambda: None
    assert list(missing_names([stranger])) == ["rankpolicy.stranger.unheard_of"]


def test_methods_that_rankers_inherit_are_described_once():
    methods = {"fit", "predict", "rank", "sample", "exposure", "save", "explain", "feature_importance", "get_params"}
    assert {f"rankpolicy.rankers.Ranker.{method}" for method in methods} <= TARGETS
    assert "rankpolicy.rankers.PGRank.fit" not in TARGETS


def test_defaults_are_shown_as_typed():
    assert "reward: Any = 'ndcg@10'" in PAGES["reference/python/rankers.md"]
    assert not re.findall(
        r" = <|0x[0-9a-f]{6}", "\n".join(re.findall(r"```python\n(.*?)```", "".join(PAGES.values()), re.S))
    )


def typed_commands():
    groups = {"clicks": CLICKS_VERBS, "service": SERVICE_VERBS}
    for verb in VERBS:
        yield from (f"{verb} {below}" for below in groups[verb]) if verb in groups else [verb]


@pytest.mark.parametrize("command", list(typed_commands()))
def test_every_command_and_option_is_described(command):
    section = COMMAND_PAGE.partition(f"\n## rankpolicy {command}\n")[2].partition("\n## ")[0]
    assert section
    parameters = [parameter for parameter in commands.commands()[command].params if not parameter.hidden]
    options = {name for parameter in parameters for name in parameter.opts if name.startswith("--")}
    assert {name for name in options if not re.search(rf"(?<![\w-]){name}(?![\w-])", section)} == set()
    assert "--json" in section or command in ("sample-data", "serve")


def test_docstrings_become_markdown():
    text = docstrings.as_markdown(
        "Add a_b to |x|.\n\nParameters\n----------\na, b : int\n    Terms, see ``c_d``.\n\n>>> 1\n1\n", level=0
    )
    assert text == (
        "Add a\\_b to \\|x\\|.\n\n**Parameters**\n\n`a`, `b` <small>int</small>\n:   Terms, see `c_d`.\n\n"
        "```pycon\n>>> 1\n1\n```\n"
    )


@pytest.mark.parametrize("module", [docstrings, public_names], ids=lambda module: module.__name__)
def test_examples_of_the_generator(module):
    assert inspect.getdoc(module)
    assert doctest.testmod(module).failed == 0
