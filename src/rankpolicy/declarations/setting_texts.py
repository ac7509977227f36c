"""Settings in words: the parameter section that ``help()`` shows, what ``rankpolicy methods`` lists, what ``--set name=value`` accepts."""

from __future__ import annotations

import dataclasses
import math
import textwrap
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rankpolicy.declarations.arguments import allows_none, is_union, kind_of
from rankpolicy.declarations.settings import declaration_of, kinds_of, setting_names
from rankpolicy.types import RankPolicyError, unknown_name

_LINE = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDescription:
    """One setting as ``rankpolicy methods NAME`` and the reference show it."""

    name: str
    kind: str
    default: Any
    help: str
    range: str
    choices: tuple[str, ...]
    read_when: str


def describe_settings(cls: type) -> list[SettingDescription]:
    """The settings of a dataclass, in order: name, kind, default, help, range and choices."""
    kinds = kinds_of(cls)
    described = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        declared = declaration_of(cls, field.name)
        described.append(
            SettingDescription(
                name=field.name,
                kind=kind_of(kinds[field.name]).words,
                default=field.default,
                help=declared.help,
                range=declared.range_in_words(),
                choices=tuple(declared.known_choices()),
                read_when="" if declared.read_when is None else declared.read_when.condition,
            )
        )
    return described


def parameter_section(cls: type) -> str:
    """The settings of a dataclass as the parameter section of its docstring."""
    lines = ["Parameters", "----------"]
    for described in describe_settings(cls):
        facts = [described.kind]
        if described.choices:
            facts = [" | ".join(map(repr, described.choices))]
        if described.range:
            facts.append(described.range)
        if described.default is not dataclasses.MISSING:
            facts.append(f"default {described.default!r}")
        text = described.help + (f" Read only when {described.read_when}." if described.read_when else "")
        lines.append(f"{described.name} : {', '.join(facts)}")
        lines += textwrap.wrap(text, _LINE, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def parse_setting(cls: type, name: str, text: str) -> Any:
    """The value of a setting from text, as ``--set name=text`` gives it, read as the kind of the setting."""
    kinds = kinds_of(cls)
    if name not in kinds or name not in setting_names(cls):
        raise RankPolicyError(unknown_name(f"setting of {cls.__name__}:", name, setting_names(cls)))
    return _parsed(name, text, kinds[name])


def _parsed(name: str, text: str, kind: Any) -> Any:
    if is_union(kind):
        if text.lower() == "none" and allows_none(kind):
            return None
        return _first_parsed(name, text, (member for member in typing.get_args(kind) if member is not type(None)), kind)
    if typing.get_origin(kind) is tuple:
        member = typing.get_args(kind)[0]
        return tuple(_parsed(name, word.strip(), member) for word in text.split(",") if word.strip())
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise _wrong_kind(name, text, kind)
        return text.lower() == "true"
    if kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            raise _wrong_kind(name, text, kind) from None
        if not math.isfinite(number):
            raise _wrong_kind(name, text, kind)
        return number
    return text


def _first_parsed(name: str, text: str, kinds: Iterable[Any], union: Any) -> Any:
    for kind in kinds:
        try:
            return _parsed(name, text, kind)
        except RankPolicyError:
            continue
    raise _wrong_kind(name, text, union)


def _wrong_kind(name: str, text: str, kind: Any) -> RankPolicyError:
    return RankPolicyError(f"setting {name} must be {kind_of(kind).words}; got {text!r}.")
