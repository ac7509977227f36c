"""Model files: a zip of named files (safetensors, LightGBM text) and a JSON manifest. Reading one executes nothing from it."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from rankpolicy.declarations.arguments import kind_of
from rankpolicy.optional import versions_of
from rankpolicy.types import RankPolicyError
from rankpolicy.version import __version__
from rankpolicy.writing import atomic_write, note_input

FORMAT = 2
_MANIFEST = "manifest.json"
_ZIP_MAGIC = b"PK\x03\x04"
_ENCRYPTED = 1  # a bit of a part's flags
_LARGEST_MANIFEST = 64 << 20
_MOST_PARTS = 1000
_MOST = 2**31  # features, and iterations
_TEXTS, _VALUES = (Mapping[str, str], "hold names and texts"), (Mapping[str, Any], "hold names and values")
_FIELDS: dict[str, tuple[Any, str]] = {"sha256": _TEXTS, "versions": _TEXTS, "settings": _VALUES, "fitted": _VALUES}
_FIELDS |= dict.fromkeys(("kind", "ranker", "bandit"), (str, "be a text"))
_FITTED: dict[str, Any] = {  # what training records next to weights and trees
    "num_features_": int,
    "feature_names_": Sequence[str] | None,
    "best_iteration_": int | None,
    "best_score_": Real | None,
    "evals_result_": Mapping[str, Mapping[str, Sequence[float]]] | None,
    "click_report_": Mapping[str, Any] | None,
    "categories_": Mapping[str, Sequence[str]] | None,
}


def is_bundle(path: Path) -> bool:
    """Whether the file starts like a model file."""
    with path.open("rb") as file:
        return file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC


def write_bundle(path: Path, content: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write a model file, whole or not at all."""
    manifest = {
        "format": FORMAT,
        **content,
        "versions": {"rankpolicy": __version__} | versions_of("torch", "numpy"),
        "sha256": {name: hashlib.sha256(content_bytes).hexdigest() for name, content_bytes in files.items()},
    }
    text = json.dumps(manifest, indent=1)
    with atomic_write(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(_MANIFEST, text)
        for name, content_bytes in files.items():
            archive.writestr(name, content_bytes)


def read_bundle(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the parts of a model file, after its format, sizes and checksums are checked.

    A file may come from a stranger. Parts are stored as they are, so that none is larger than the file, and only parts that the manifest
    lists may be there.
    """
    if not path.is_file():
        raise RankPolicyError(f"no model file at {path}." + (" It is a folder." if path.is_dir() else ""))
    note_input(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = _checked_members(archive, path.stat().st_size)
            if _MANIFEST not in members:
                raise KeyError(f"there is no {_MANIFEST} in it")
            if members[_MANIFEST].file_size > _LARGEST_MANIFEST:
                raise KeyError(f"{_MANIFEST} is larger than {_LARGEST_MANIFEST} bytes")
            manifest = json.loads(archive.read(members[_MANIFEST]))
            _check_manifest(manifest)
            listed = manifest.get("sha256", {})
            files = {name: archive.read(member) for name, member in members.items() if name in listed}
    except (zipfile.BadZipFile, LookupError, ValueError, OSError, EOFError, RuntimeError, TypeError) as error:
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise RankPolicyError(
            f"{path} is not a rankpolicy model, or is damaged ({reason}). Models are written by save()."
        ) from None
    if manifest["format"] != FORMAT:
        made_with = manifest.get("versions", {}).get("rankpolicy", "an unknown version")
        raise RankPolicyError(
            f"{path} has model format {manifest['format']}, made with rankpolicy {made_with}; this version reads format {FORMAT}. "
            "Load it with that version, or train the model again."
        )
    _warn_if_newer(manifest.get("versions", {}), path)
    for name, digest in manifest.get("sha256", {}).items():
        if name not in files or hashlib.sha256(files[name]).hexdigest() != digest:
            raise RankPolicyError(
                f"{path} is damaged: {name} does not match its sha256. Copy or train the model again."
            )
    unchecked = sorted(set(members) - {_MANIFEST, *files})
    if unchecked:
        raise RankPolicyError(f"{path} is damaged: {unchecked[0]} has no sha256. Copy or train the model again.")
    return manifest, files


def _checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The parts by name, if they are stored as they are and fit into the file together."""
    members = archive.infolist()
    if len(members) > _MOST_PARTS:
        raise KeyError(f"it has {len(members)} parts, a model at most {_MOST_PARTS}")
    by_name = {member.filename: member for member in members}
    if len(by_name) < len(members):
        raise KeyError("a part is there twice")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED:
            raise KeyError(f"its part {member.filename:.80} is compressed or encrypted, which save() does not do")
        if member.file_size != member.compress_size:
            raise KeyError(f"its part {member.filename:.80} has two sizes")
    if sum(member.file_size for member in members) > size:
        raise KeyError("its parts are larger than the file")
    return by_name


def _check_manifest(manifest: Any) -> None:
    """Refuse a manifest whose fields have the wrong types."""
    if not isinstance(manifest, dict):
        raise KeyError(f"{_MANIFEST} must hold names and values")
    if not kind_of(int).fits(manifest.get("format")):
        raise KeyError(f"{_MANIFEST} has no format number")
    for name, (annotation, words) in _FIELDS.items():
        if name in manifest and not kind_of(annotation).fits(manifest[name]):
            raise KeyError(f"{name} in {_MANIFEST} must {words}")


def check_fitted(fitted: Mapping[str, Any]) -> None:
    """Refuse what training recorded next to weights and trees where it is not of its kind."""
    wrong = [name for name, annotation in _FITTED.items() if not kind_of(annotation).fits(fitted.get(name))]
    if not wrong:
        names, categories = fitted.get("feature_names_"), fitted.get("categories_") or {}
        agree = {
            "num_features_": 0 <= fitted["num_features_"] < _MOST,
            "best_iteration_": 0 <= (fitted.get("best_iteration_") or 0) < _MOST,
            "feature_names_": names is None or len(names) == fitted["num_features_"],
            "categories_": all(
                name in (names or ()) and len(set(texts)) == len(texts) for name, texts in categories.items()
            ),
        }
        wrong = [name for name, agrees in agree.items() if not agrees]
    if wrong:
        raise RankPolicyError(
            f"{wrong[0]} in the file is {fitted.get(wrong[0])!r:.60}, which no training records. Copy or train the model again."
        )


def _warn_if_newer(versions: dict[str, str], path: Path) -> None:
    version = versions.get("rankpolicy", "0")
    if _numbers_in(version) > _numbers_in(__version__):
        warnings.warn(
            f"{path} was made with rankpolicy {version}, newer than {__version__} here: it may rank otherwise. Update rankpolicy.",
            stacklevel=4,
        )


def _numbers_in(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]{1,9}", version[:100])]
