"""run.toml: the options of ``train`` in a file. Options on the command line take precedence."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankpolicy.cli.support.method_settings import as_texts
from rankpolicy.types import RankPolicyError, unknown_name

KEYS: dict[str, type] = {
    "method": str,
    "data": str,
    "valid": str,
    "clicks": str,
    "propensities": str,
    "bias_method": str,
    "weighted": str,
    "qid": str,
    "label": str,
    "group": str,
    "ignore": list,
    "out": str,
    "seed": int,
    "settings": dict,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """The keys of a run.toml; None where a key is missing. Paths are relative to the working directory, as on the command line."""

    method: str | None = None
    data: Path | None = None
    valid: Path | None = None
    clicks: Path | None = None
    propensities: Path | None = None
    bias_method: str | None = None
    weighted: str | None = None
    qid: str | None = None
    label: str | None = None
    group: str | None = None
    ignore: list[str] | None = None
    out: Path | None = None
    seed: int | None = None
    settings: dict[str, str] = field(default_factory=dict)


def read_run_file(path: Path) -> RunFile:
    """The options in a run.toml; an unknown key or a value of the wrong kind is an error."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RankPolicyError(f"--config must be a file; there is none at {path}.") from None
    except OSError as error:
        raise RankPolicyError(f"--config must be a file that can be read; {path} cannot ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RankPolicyError(f"{path} must be TOML; it cannot be read ({error}).") from None
    for key, value in document.items():
        if key not in KEYS:
            raise RankPolicyError(f"{path}: {unknown_name('key', key, KEYS)}")
        if not _is_of_kind(value, KEYS[key]):
            kind = {
                str: "a string",
                int: "a whole number",
                list: 'a list of strings, ["title", "url"]',
                dict: "a table, [settings]",
            }[KEYS[key]]
            raise RankPolicyError(f"{path}: {key} must be {kind}; got {value!r}.")
    return RunFile(
        method=document.get("method"),
        data=_path(document.get("data")),
        valid=_path(document.get("valid")),
        clicks=_path(document.get("clicks")),
        propensities=_path(document.get("propensities")),
        bias_method=document.get("bias_method"),
        weighted=document.get("weighted"),
        qid=document.get("qid"),
        label=document.get("label"),
        group=document.get("group"),
        ignore=document.get("ignore"),
        out=_path(document.get("out")),
        seed=document.get("seed"),
        settings=as_texts(document.get("settings", {})),
    )


def _is_of_kind(value: Any, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(member, str) for member in value)
    return isinstance(value, kind) and not isinstance(value, bool)


def _path(value: Any) -> Path | None:
    return None if value is None else Path(value)
