"""A fitted ranker in one file: a zip of its state (safetensors, LightGBM text) and a JSON manifest. Loading executes nothing from it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rankpolicy.settings import plain
from rankpolicy.types import MissingDependencyError, RankPolicyError
from rankpolicy.version import __version__

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

FORMAT = 1
_MANIFEST = "manifest.json"


def save_ranker(ranker: Ranker, path: Path) -> None:
    """Write beside, then rename: what stood at ``path`` is whole until the new file is."""
    files = ranker._files()
    manifest = {
        "format": FORMAT,
        "ranker": ranker.name,
        # A function cannot be saved, and prediction does not need it: its name stands for it.
        "settings": {name: plain(value) for name, value in ranker.get_params().items()},
        "fitted": {name: plain(getattr(ranker, name)) for name in ranker.fitted_attributes},
        "versions": {"rankpolicy": __version__, "torch": torch.__version__, "numpy": np.__version__},
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    text = json.dumps(manifest, indent=1)
    beside = path.with_name(path.name + ".part")
    try:
        with zipfile.ZipFile(beside, "w") as archive:
            archive.writestr(_MANIFEST, text)
            for name, content in files.items():
                archive.writestr(name, content)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise RankPolicyError(
            f"cannot write {path}: {error.strerror or error}. Check that the folder exists and is writable."
        ) from None


def load(path: str | Path, *, model: Any = None) -> Ranker:
    """The ranker saved at ``path``, after its checksums and format are checked.

    ``model`` is the torch module of a ranker that was trained with one of the user's own: a file holds weights, never code.
    """
    manifest, files = _read(Path(path))
    if model is not None:
        manifest["settings"]["model"] = model
    try:
        return _restored(manifest, files, path)
    except (RankPolicyError, MissingDependencyError):
        raise
    except Exception as error:  # whatever a library says of weights or trees that do not fit the settings
        reason = " ".join(str(error).split())[:200]
        raise RankPolicyError(
            f"{path} is damaged: its parts do not fit together ({reason}). Copy or train the model again."
        ) from None


def _restored(manifest: dict[str, Any], files: dict[str, bytes], path: str | Path) -> Ranker:
    from rankpolicy.rankers import RANKERS

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


def _warn_of_newer(versions: dict[str, str], path: Path) -> None:
    made, here = versions.get("rankpolicy", "0"), __version__
    if [int(part) for part in re.findall(r"\d+", made)] > [int(part) for part in re.findall(r"\d+", here)]:
        warnings.warn(
            f"{path} was made with rankpolicy {made}, newer than {here} here: it may rank otherwise. Update rankpolicy.",
            stacklevel=4,
        )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    if not path.is_file():
        raise RankPolicyError(f"no model file at {path}." + (" It is a folder." if path.is_dir() else ""))
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(_MANIFEST))
            files = {name: archive.read(name) for name in archive.namelist() if name != _MANIFEST}
        if not isinstance(manifest, dict) or not isinstance(manifest.get("sha256", {}), dict):
            raise KeyError(f"no {_MANIFEST} of a model")
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError, RuntimeError) as error:
        raise RankPolicyError(
            f"{path} is not a rankpolicy model, or is damaged ({error}). Models are written by save()."
        ) from None
    if manifest.get("format") != FORMAT:
        made_with = manifest.get("versions", {}).get("rankpolicy", "an unknown version")
        raise RankPolicyError(
            f"{path} has model format {manifest.get('format')}, made with rankpolicy {made_with}; this version reads format {FORMAT}. "
            "Load it with that version, or train the model again."
        )
    _warn_of_newer(manifest.get("versions", {}), path)
    for name, digest in manifest.get("sha256", {}).items():
        if name not in files or hashlib.sha256(files[name]).hexdigest() != digest:
            raise RankPolicyError(
                f"{path} is damaged: {name} does not match its sha256. Copy or train the model again."
            )
    unchecked = sorted(set(files) - set(manifest.get("sha256", {})))
    if unchecked:
        raise RankPolicyError(f"{path} is damaged: {unchecked[0]} has no sha256. Copy or train the model again.")
    return manifest, files
