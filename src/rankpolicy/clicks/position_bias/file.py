"""Position bias in a file: what ``rankpolicy clicks bias --out`` wrote, or one ``PositionBias.to_json``."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.types import RankPolicyError, unknown_name


def read_position_bias(path: str | os.PathLike[str], *, method: str | None = None) -> PositionBias:
    """The position bias of a bias.json; ``method`` names the one to take where it holds several."""
    file = Path(path)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RankPolicyError(
            f"no file of propensities at {file}. 'rankpolicy clicks bias LOG --out DIR' writes DIR/bias.json."
        ) from None
    except OSError as error:
        raise RankPolicyError(f"{file} must be a file that can be read; it cannot ({error.strerror}).") from None
    except ValueError as error:
        raise RankPolicyError(
            f"{file} must be JSON, as 'rankpolicy clicks bias' writes; it is not ({error})."
        ) from None
    found = document.get("methods", {"": document}) if isinstance(document, dict) else None
    if not isinstance(found, dict) or not found:
        raise RankPolicyError(f"{file} must hold a position bias, as 'rankpolicy clicks bias' writes; it holds none.")
    if method is None and len(found) > 1:
        raise RankPolicyError(
            f"{file} holds the propensities of several methods, {', '.join(found)}: name the one to take."
        )
    if method is not None and method not in found:
        raise RankPolicyError(f"{file}: {unknown_name('method', method, found)}")
    try:
        return PositionBias.from_json(next(iter(found.values())) if method is None else found[method])
    except RankPolicyError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RankPolicyError(
            f"{file} is damaged: its position bias cannot be read ({error!r}). Make it again."
        ) from None
