"""A fitted ranker as a model file, and back."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.bundle import write_bundle
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


def save_ranker(ranker: Ranker, path: Path) -> None:
    """Write a fitted ranker.

    Parameters
    ----------
    ranker
        The ranker. Functions and torch modules among its settings are saved by name: prediction does not need a reward.
    path
        Where the file goes.
    """
    write_bundle(path, {"kind": "ranker"} | ranker.to_dict(), ranker._files())


def restore_ranker(manifest: dict[str, Any], files: dict[str, bytes], path: Path, *, model: Any = None) -> Ranker:
    """The ranker in a model file.

    Parameters
    ----------
    manifest
        The manifest of the file.
    files
        The other files in it, by name.
    path
        Where the file is, for error messages.
    model
        The torch module of a ranker that was trained with a module of the user's own.
    """
    from rankpolicy.rankers.members import RANKERS

    if manifest["ranker"] not in RANKERS:
        raise RankPolicyError(
            f"{path} holds a {manifest['ranker']!r} ranker. This version knows: {', '.join(RANKERS)}."
        )
    ranker_class = RANKERS[manifest["ranker"]]
    settings = dict(manifest["settings"])
    unknown = sorted(set(settings) - set(ranker_class.setting_names()))
    if unknown:
        raise RankPolicyError(
            f"{path} has settings this version does not know: {', '.join(unknown)}. Update rankpolicy."
        )
    if model is not None:
        settings["model"] = model
    # Not by the constructor: a reward of the user's own is known here by its name only, which a check would refuse.
    ranker = ranker_class.__new__(ranker_class)
    for field in fields(ranker_class):  # type: ignore[arg-type]  # every ranker is a dataclass
        value = settings.get(field.name, field.default)
        setattr(ranker, field.name, tuple(value) if isinstance(value, list) else value)
    for name in ranker.fitted_attributes:
        # None: an attribute that rankers of the version that wrote the file did not have.
        setattr(ranker, name, manifest["fitted"].get(name))
    ranker._restore(files)
    return ranker
