"""run.toml: the options of a verb in a file. Options on the command line take precedence."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

from rankpolicy.cli.support.method_settings import as_texts
from rankpolicy.cli.support.options import RENAMED
from rankpolicy.cli.support.verb_parameters import for_typer
from rankpolicy.types import RankPolicyError, unknown_name

SETTINGS = "settings"
_NOT_IN_FILES = ("config", "as_json", SETTINGS)
_KINDS = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    list: 'a list of strings, ["title", "url"]',
    dict: "a table, [settings]",
}


def read_run_file(verb: Callable[..., Any], context: typer.Context, path: Path | None) -> Path | None:
    """The callback of an eager ``--config``: what the file holds becomes the default of the other options."""
    if path is None:
        return path
    from rankpolicy.files import read_toml  # not before: it loads numpy, which a help page does not need

    document, kinds = read_toml(path), _kinds(verb)
    for key, value in document.items():
        if key not in kinds:
            renamed = RENAMED.get(f"--{key}")
            answer = f"{key} is now {renamed.removeprefix('--')}." if renamed else unknown_name("key", key, kinds)
            raise RankPolicyError(f"{path}: {answer}")
        if not _is_of_kind(value, kinds[key]):
            raise RankPolicyError(f"{path}: {key} must be {_KINDS[kinds[key]]}; got {value!r}.")
    context.default_map = {key: value for key, value in document.items() if key != SETTINGS}
    # No default of --set, whose texts would replace it: the settings of both count.
    context.meta[SETTINGS] = as_texts(document.get(SETTINGS, {}))
    return path


def settings_in_run_file(context: typer.Context) -> dict[str, str]:
    """The table [settings] of the run file in words, by name."""
    texts: dict[str, str] = context.meta.get(SETTINGS, {})
    return texts


def _kinds(verb: Callable[..., Any]) -> dict[str, type]:
    """The keys that a file may have, and the kind of each: the options of the verb by their types."""
    kinds: dict[str, type] = {}
    for name, option in inspect.signature(for_typer(verb)).parameters.items():
        declared = get_args(option.annotation)  # Annotated[list[str] | None, typer.Option(...)] has two
        if declared and name not in _NOT_IN_FILES:
            members = get_args(declared[0]) or (declared[0],)
            kind = get_origin(members[0]) or members[0]
            kinds[name] = kind if kind in _KINDS else str
    return {**kinds, SETTINGS: dict}


def _is_of_kind(value: Any, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(member, str) for member in value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
