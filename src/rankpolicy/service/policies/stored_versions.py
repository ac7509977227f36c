"""A policy made from what the database says about its version."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rankpolicy.service.domain.records import PolicyVersion
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.policies.compound import as_tables
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.served_policy import ServedPolicy

Models = Callable[[str], bytes | None]  # the file of a model by its hash


def policy_of_version(version: PolicyVersion, models: Models = lambda sha256: None) -> ServedPolicy:
    """A policy with the settings of a version, knowing nothing."""
    with _with_files(json.loads(version.settings), models) as settings:
        return SERVED.named(version.kind)(**settings)


def policy_of_content(content: bytes, settings: Mapping[str, Any]) -> ServedPolicy:
    """A ranker from the bytes of its file."""
    with _with_files({"model": "", **settings}, lambda sha256: content) as chosen_settings:
        return SERVED.named("ranker")(**chosen_settings)


def stored_settings(policy: ServedPolicy, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the database keeps them: a model is named by the hash of its file, not by where it lies."""
    stored = dict(settings)
    if policy.model_sha256 is not None:
        stored["model"] = policy.model_sha256
    if policy.members:
        nested = [
            {"kind": table["kind"]}
            | stored_settings(member, {name: value for name, value in table.items() if name != "kind"})
            for member, table in zip(policy.members, as_tables(settings.get("of", [])), strict=False)
        ]
        if nested:
            stored["of"] = nested
    return stored


def models_of(policy: ServedPolicy) -> list[bytes]:
    """The files of the models in a policy."""
    model = policy.model_content()
    return ([] if model is None else [model]) + [content for member in policy.members for content in models_of(member)]


@contextmanager
def _with_files(settings: dict[str, Any], models: Models) -> Iterator[dict[str, Any]]:
    """The settings with every hash of a model replaced by a file that holds it for a moment."""
    with tempfile.TemporaryDirectory(prefix="rankpolicy-") as folder:
        yield _placed(settings, models, folder)


def _placed(settings: Mapping[str, Any], models: Models, folder: str) -> dict[str, Any]:
    placed = dict(settings)
    if "model" in placed:
        content = models(placed["model"])
        if content is None:
            raise DamagedStoreError(
                f"the model {placed['model']!r:.80} is not in the database. Restore it from a backup."
            )
        placed["model"] = os.path.join(folder, f"model-{len(os.listdir(folder))}.rp")
        with open(placed["model"], "wb") as file:
            file.write(content)
    if "of" in placed:
        placed["of"] = [_placed(table, models, folder) for table in as_tables(placed["of"])]
    return placed
