"""Reading position bias from a file of ``rankpolicy clicks bias --out`` or of ``PositionBias.save``."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import read_text_bytes
from rankpolicy.types import RankPolicyError, unknown_name


@checked_kinds
def read_position_bias(path: str | os.PathLike[str], *, method: str | None = None) -> PositionBias:
    """The position bias in a bias.json.

    Parameters
    ----------
    path
        The file that ``rankpolicy clicks bias --out`` or ``PositionBias.save`` wrote.
    method
        The method to take, where the file holds the estimates of several.
    """
    file = Path(path)
    if not os.path.exists(file):
        raise RankPolicyError(
            f"no file of propensities at {file}. 'rankpolicy clicks bias LOG --out DIR' writes DIR/bias.json."
        )
    try:
        document = json.loads(read_text_bytes(file).tobytes())
    except RankPolicyError:
        raise
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
    if "methods" not in document and method == document.get("method"):
        method = None
    if method is not None and method not in found:
        known = found if "methods" in document else [str(document.get("method"))]
        raise RankPolicyError(f"{file}: {unknown_name('method', method, known)}")
    try:
        return PositionBias.from_dict(next(iter(found.values())) if method is None else found[method])
    except RankPolicyError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RankPolicyError(
            f"{file} is damaged: its position bias cannot be read ({error!r}). Make it again."
        ) from None
