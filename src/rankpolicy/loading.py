"""One door to every saved thing: rankers, bandits, click models, position bias."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankpolicy.bundle import is_bundle, read_bundle
from rankpolicy.declarations.arguments import checked_kinds, checked_path
from rankpolicy.files import checked_file, read_text_bytes
from rankpolicy.types import MissingDependencyError, RankPolicyError

_SMALL = 64 << 20
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
        kind = manifest.get("kind", "ranker")
        if kind not in ("ranker", "bandit", "online ranker"):
            raise RankPolicyError(f"a model file must hold a ranker, a bandit or an online ranker; got {kind!r:.80}.")
        if kind == "online ranker":
            from rankpolicy.online.online_ranker import restored_online_ranker

            return restored_online_ranker(manifest, files)
        if kind == "bandit":
            from rankpolicy.bandits.files import restore_bandit

            return restore_bandit(manifest, files, file)
        from rankpolicy.rankers.restoring import restored_ranker

        return restored_ranker(manifest, files, what=str(file), model=model)


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
            from rankpolicy.clicks.models.click_model import restore_click_model

            return restore_click_model(document, file)
        if kind == "rankpolicy position bias":
            from rankpolicy.clicks.position_bias.bias import read_position_bias

            return read_position_bias(file)
    raise RankPolicyError(f"{file} is not a rankpolicy model. Models are written by save().")
