"""A fitted ranker as a model file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.bundle import write_bundle
from rankpolicy.settings import plain
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


def save_ranker(ranker: Ranker, path: Path) -> None:
    """Write a fitted ranker."""
    content = {
        "kind": "ranker",
        "ranker": ranker.name,
        # A function cannot be saved, and prediction does not need it: its name stands for it.
        "settings": {name: plain(value) for name, value in ranker.get_params().items()},
        "fitted": {name: plain(getattr(ranker, name)) for name in ranker.fitted_attributes},
    }
    write_bundle(path, content, ranker._files())


def restore_ranker(manifest: dict[str, Any], files: dict[str, bytes], path: Path, *, model: Any = None) -> Ranker:
    """The ranker that a model file holds."""
    from rankpolicy.rankers.members import RANKERS

    if model is not None:
        manifest["settings"]["model"] = model
    if manifest["ranker"] not in RANKERS:
        raise RankPolicyError(
            f"{path} holds a {manifest['ranker']!r} ranker. This version knows: {', '.join(RANKERS)}."
        )
    known = RANKERS[manifest["ranker"]].setting_names()
    unknown = sorted(set(manifest["settings"]) - set(known))
    if unknown:
        raise RankPolicyError(
            f"{path} has settings this version does not know: {', '.join(unknown)}. Update rankpolicy."
        )
    settings = {
        name: tuple(value) if isinstance(value, list) else value for name, value in manifest["settings"].items()
    }
    ranker = RANKERS[manifest["ranker"]](**settings)
    for name in ranker.fitted_attributes:
        # None: an attribute that rankers of the version that wrote the file did not have.
        setattr(ranker, name, manifest["fitted"].get(name))
    ranker._restore(files)
    return ranker
