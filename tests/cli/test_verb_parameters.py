"""Docstrings of verbs as arguments and options."""

import inspect
from dataclasses import dataclass
from typing import get_args

import pytest

from docs.building.commands import commands
from rankpolicy.cli.support.verb_parameters import documentation_of, for_typer


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large it is.

    Parameters
    ----------
    width : CM
        Its width.
    height
        Its height.
    """

    width: int = 3
    height: int | None = None


@dataclass(frozen=True, kw_only=True)
class SizeOfFrame(Size):
    """The same in other words.

    Parameters
    ----------
    height : default as wide as high
        The height of its frame.
    """


def draw(picture: str, *, size: SizeOfFrame, is_framed: bool = False, runs: str = "") -> object:
    """Draw a picture
    on paper.

    In colour.

    Parameters
    ----------
    picture : FILE
        What to draw,
        in one file.
    is_framed
        With a frame.
    runs : --run NAME=FILE,..., default all of them
        Which runs.

    Examples
    --------
    draw cat.png
    draw dog.png
    """
    return picture, size, is_framed, runs


def test_the_help_page_has_the_paragraphs_and_examples_of_the_docstring():
    documentation = documentation_of(draw)
    assert documentation.paragraphs == "Draw a picture on paper.\n\nIn colour."
    assert documentation.examples == "[bold]Examples[/bold]\n\ndraw cat.png\n\ndraw dog.png"


@pytest.mark.parametrize(
    ("name", "kind", "help", "metavar", "default_in_words", "decls"),
    [
        ("picture", "ArgumentInfo", "What to draw, in one file.", "FILE", True, None),
        ("width", "OptionInfo", "Its width.", "CM", True, None),
        ("height", "OptionInfo", "The height of its frame.", None, "as wide as high", None),
        ("is_framed", "OptionInfo", "With a frame.", None, True, ("--is-framed",)),
        ("runs", "OptionInfo", "Which runs.", "NAME=FILE,...", "all of them", ("--run",)),
    ],
)
def test_a_parameter_is_described_once(name, kind, help, metavar, default_in_words, decls):
    parameter = inspect.signature(for_typer(draw)).parameters[name]
    info = get_args(parameter.annotation)[1]
    assert type(info).__name__ == kind
    assert (info.help, info.metavar, info.show_default) == (help, metavar, default_in_words)
    assert (tuple(info.param_decls) if info.param_decls else None) == decls


def test_options_that_belong_together_arrive_as_one_value():
    called = for_typer(draw)(picture="cat.png", width=5, height=None, is_framed=True, runs="")
    assert called == ("cat.png", SizeOfFrame(width=5), True, "")


@pytest.mark.parametrize("name", commands())
def test_every_option_of_a_verb_has_a_help_text(name):
    command = commands()[name]
    assert [parameter.name for parameter in command.params if not parameter.help] == []
    assert command.epilog.count("rankpolicy ") >= 1
