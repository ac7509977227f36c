"""The methods of a run by name: ``--methods a,b`` and ``--variant NAME=METHOD``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from rankpolicy.types import RankPolicyError, unknown_name

Variant = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME=METHOD",
        help="Run METHOD once more under a name of your own, whose settings are --set NAME.SETTING=VALUE. May be repeated.",
    ),
]
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMethods:
    """The methods of a run, in order.

    Parameters
    ----------
    classes
        The class of each method by its name in this run.
    methods
        The method behind each name: another one where ``--variant`` gave the name.
    """

    classes: dict[str, Any]
    methods: dict[str, str]

    def with_settings(self, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """The method and its settings by name, as experiments take them.

        Parameters
        ----------
        settings
            Settings by the name in this run.
        """
        return {name: (method, settings[name]) for name, method in self.methods.items()}


def parse_methods(
    text: str, variants: Sequence[str] | None, class_named: Callable[[str], Any], *, kind: str = "method"
) -> NamedMethods:
    """The methods that the options name: those listed, then the variants that are not listed.

    Parameters
    ----------
    text
        Names separated by commas.
    variants
        ``NAME=METHOD`` texts.
    class_named
        The class of a method by its name; raises an error for an unknown one.
    kind
        What the methods are called, for error messages.
    """
    method_of = _parse_variants(variants or (), class_named)
    listed = [name for name in (part.strip() for part in text.split(",")) if name]
    names = dict.fromkeys([*listed, *method_of])
    if not names:
        raise RankPolicyError(f"--{kind}s must name at least one {kind}; see: rankpolicy methods.")
    methods = {name: method_of.get(name, name) for name in names}
    return NamedMethods(classes={name: class_named(method) for name, method in methods.items()}, methods=methods)


def parse_by_method(texts: Sequence[str], methods: Mapping[str, Any], *, option: str) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dict by the name of a method of the run.

    Parameters
    ----------
    texts
        What the option was given, once or several times.
    methods
        The methods of the run by name.
    option
        The option, for error messages.

    >>> parse_by_method(["deltr=0,100"], {"deltr": None}, option="--strengths-of")
    {'deltr': '0,100'}
    """
    values = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise RankPolicyError(f"{option} must be METHOD=VALUE; got {text!r}.")
        if name not in methods:
            raise RankPolicyError(unknown_name(f"method in {option}:", name, methods))
        values[name] = value
    return values


def _parse_variants(texts: Sequence[str], class_named: Callable[[str], Any]) -> dict[str, str]:
    method_of: dict[str, str] = {}
    for text in texts:
        name, equals, method = (part.strip() for part in text.partition("="))
        if not equals or not _NAME.fullmatch(name) or not method:
            raise RankPolicyError(
                f"--variant must be NAME=METHOD, such as wide=pg-rank, NAME of letters, digits, - and _; got {text!r}."
            )
        if name in method_of or _is_known(name, class_named):
            raise RankPolicyError(f"--variant {text}: {name} is taken already; choose another name.")
        class_named(method)
        method_of[name] = method
    return method_of


def _is_known(name: str, class_named: Callable[[str], Any]) -> bool:
    try:
        class_named(name)
    except RankPolicyError:
        return False
    return True
