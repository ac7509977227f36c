"""One door to every saved thing: rankers, bandits, click models, position bias."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.arguments import checked_kinds, checked_path
from rankpolicy.bundle import is_bundle, read_bundle
from rankpolicy.files import checked_file, read_text_bytes
from rankpolicy.settings import check_setting
from rankpolicy.types import MissingDependencyError, RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

_SMALL = 64 << 20
_MAY_BE_FUNCTIONS = ("model", "reward", "valid_metric")  # a file has their names only
_MOST_EXPANSION = 50  # packed JSON of numbers and names expands less; a file that expands more was made to


@checked_kinds
def load(path: str | os.PathLike[str], *, model: Any = None) -> Any:
    """What ``save`` wrote to a file: a ranker, a bandit, a click model or a position-bias estimate.

    Checksums and formats are checked first; nothing in a file is executed.

    Parameters
    ----------
    path
        The file.
    model
        The torch module of a ranker that was trained with a module of your own: a file holds weights, never code.
    """
    file = Path(checked_path(path))
    if os.path.isdir(file):
        raise RankPolicyError(f"no model file at {file}. It is a folder.")
    if not os.path.lexists(file):
        raise RankPolicyError(f"no model file at {str(file)[:300]}.")
    checked_file(file)
    if not is_bundle(file):
        return _from_document(file)
    manifest, files = read_bundle(file)
    with _damage_explained(file):
        if manifest.get("kind") == "bandit":
            from rankpolicy.bandits.files import restore_bandit

            return restore_bandit(manifest, files, file)
        return _restore_ranker(manifest, files, file, model)


@contextmanager
def _damage_explained(file: Path) -> Iterator[None]:
    try:
        yield
    except MissingDependencyError:
        raise
    except RankPolicyError as error:
        if str(file) in str(error):
            raise
        raise RankPolicyError(f"{file}: {error}") from None
    except Exception as error:  # whatever a library says of weights or trees that do not fit the settings
        reason = " ".join(str(error).split())[:200]
        raise RankPolicyError(
            f"{file} is damaged: its parts do not fit together ({reason}). Copy or train the model again."
        ) from None


def _restore_ranker(manifest: dict[str, Any], files: dict[str, bytes], path: Path, model: Any) -> Ranker:
    """The ranker in a model file; ``model`` is the torch module of a ranker that was trained with one of the user's own."""
    from rankpolicy.rankers.members import RANKERS

    name = str(manifest.get("ranker"))
    if name not in RANKERS:
        raise RankPolicyError(f"{path} holds a {name!r:.80} ranker. This version knows: {', '.join(RANKERS)}.")
    ranker_class = RANKERS[name]
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
        value = tuple(value) if isinstance(value, list) else value
        if field.name in ranker_class.value_settings:
            value = ranker_class.value_settings[field.name].restored(value)
        elif field.name not in _MAY_BE_FUNCTIONS:
            check_setting(ranker_class, field.name, value)
        setattr(ranker, field.name, value)
    ranker._restore_fitted(manifest["fitted"], files)
    return ranker


def _from_document(file: Path) -> Any:
    try:
        largest = max(_SMALL, _MOST_EXPANSION * file.stat().st_size)
        document = json.loads(read_text_bytes(file, largest=largest).tobytes())
    except (ValueError, RecursionError) as error:
        if isinstance(error, RankPolicyError):
            raise
        raise RankPolicyError(
            f"{file} is not a rankpolicy model, or is damaged ({error}). Models are written by save()."
        ) from None
    kind = document.get("format") if isinstance(document, dict) else None
    with _damage_explained(file):
        if kind == "rankpolicy click model":
            from rankpolicy.clicks.models.file import restore_click_model

            return restore_click_model(document, file)
        if kind == "rankpolicy position bias":
            from rankpolicy.clicks.position_bias.file import read_position_bias

            return read_position_bias(file)
    raise RankPolicyError(f"{file} is not a rankpolicy model. Models are written by save().")
