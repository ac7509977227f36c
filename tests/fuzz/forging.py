"""Model files changed by hand, with their checksums recomputed, as a stranger could make them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any], dict[str, bytes]], None]


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the other parts of a model file."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(files.pop("manifest.json")), files


def write_parts(
    path: Path, manifest: Any, files: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED, checksums: bool = True
) -> None:
    """Write a model file from its parts."""
    if checksums and isinstance(manifest, dict):
        manifest = manifest | {"sha256": {name: hashlib.sha256(part).hexdigest() for name, part in files.items()}}
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, part in files.items():
            archive.writestr(name, part)


def forged(path: Path, change: Change) -> Path:
    """A copy of a model file with changed parts and right checksums."""
    manifest, files = parts_of(path)
    change(manifest, files)
    copy = path.with_name(f"forged-{path.name}")
    write_parts(copy, manifest, files)
    return copy
