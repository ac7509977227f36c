"""Model files: a zip of named files (safetensors, LightGBM text) and a JSON manifest. Reading one executes nothing from it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import warnings
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from rankpolicy.files import atomic_write
from rankpolicy.types import RankPolicyError
from rankpolicy.version import __version__

FORMAT = 2
_MANIFEST = "manifest.json"
_ZIP_MAGIC = b"PK\x03\x04"


def is_bundle(path: Path) -> bool:
    """Whether the file starts like a model file."""
    with path.open("rb") as file:
        return file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC


def write_bundle(path: Path, content: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write a model file, whole or not at all.

    Parameters
    ----------
    path
        Where it goes.
    content
        What the manifest says beside versions and checksums: the ``kind`` ("ranker", "bandit"), its name, its settings, what was fitted.
    files
        The parts, by name.
    """
    manifest = {
        "format": FORMAT,
        **content,
        "versions": {"rankpolicy": __version__} | _versions("torch", "numpy"),
        "sha256": {name: hashlib.sha256(part).hexdigest() for name, part in files.items()},
    }
    text = json.dumps(manifest, indent=1)
    try:
        with atomic_write(path) as stream, zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(_MANIFEST, text)
            for name, part in files.items():
                archive.writestr(name, part)
    except OSError as error:
        raise RankPolicyError(
            f"cannot write {path}: {error.strerror or error}. Check that the folder exists and is writable."
        ) from None


def read_bundle(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the parts of a model file, after its format and checksums are checked.

    Parameters
    ----------
    path
        The file.
    """
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
    _warn_if_newer(manifest.get("versions", {}), path)
    for name, digest in manifest.get("sha256", {}).items():
        if name not in files or hashlib.sha256(files[name]).hexdigest() != digest:
            raise RankPolicyError(
                f"{path} is damaged: {name} does not match its sha256. Copy or train the model again."
            )
    unchecked = sorted(set(files) - set(manifest.get("sha256", {})))
    if unchecked:
        raise RankPolicyError(f"{path} is damaged: {unchecked[0]} has no sha256. Copy or train the model again.")
    return manifest, files


def _versions(*packages: str) -> dict[str, str]:
    """Versions of those packages that are installed."""
    found = {}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _warn_if_newer(versions: dict[str, str], path: Path) -> None:
    made, here = versions.get("rankpolicy", "0"), __version__
    if [int(part) for part in re.findall(r"\d+", made)] > [int(part) for part in re.findall(r"\d+", here)]:
        warnings.warn(
            f"{path} was made with rankpolicy {made}, newer than {here} here: it may rank otherwise. Update rankpolicy.",
            stacklevel=4,
        )
