"""Policies made from tables of settings, of a configuration or of the database, and their states when one is inside another."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rankpolicy.service.domain.records import PolicyVersion
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError

Models = Callable[[str], bytes | None]  # the file of a model by its hash
_NOT_INSIDE = ("split", "apprentice", "interleaved", "swaps", "personalizer")


def made_members(setting: Any, *, number: int) -> tuple[ServedPolicy, ...]:
    """The policies inside a compound one, from its setting ``of``."""
    tables = as_tables(setting)
    if len(tables) != number:
        raise RankPolicyError(f"of must be {number} table(s) of settings, each with a kind; got {len(tables)}.")
    members = []
    for table in tables:
        if not isinstance(table, Mapping) or "kind" not in table:
            raise RankPolicyError(f"of must be tables of settings, each with a kind; got {table!r:.80}.")
        if table["kind"] in _NOT_INSIDE:
            raise RankPolicyError(f"a policy of the kind {table['kind']} cannot be inside another.")
        members.append(policy_of_table(table))
    return tuple(members)


def policy_of_table(table: Mapping[str, Any]) -> ServedPolicy:
    """A policy from its kind and settings."""
    from rankpolicy.service.policies.members import SERVED

    try:
        return SERVED.named(table["kind"])(**{name: value for name, value in table.items() if name != "kind"})
    except TypeError as error:  # a setting that must be given is missing
        raise RankPolicyError(f"settings of {table['kind']} are incomplete ({error}).") from None


def as_tables(setting: Any) -> list[Any]:
    """The setting ``of`` as a list of tables."""
    if isinstance(setting, Mapping):
        return [setting]
    return list(setting) if isinstance(setting, Sequence) and not isinstance(setting, str) else [setting]


def packed(magic: bytes, counts: Sequence[int], states: Sequence[bytes]) -> bytes:
    """Counts and the states of members as one state."""
    blocks = [magic, struct.pack(f"<{len(counts)}q", *counts)]
    for state in states:
        blocks += [struct.pack("<Q", len(state)), state]
    return b"".join(blocks)


def unpacked(magic: bytes, num_counts: int, num_states: int, state: bytes) -> tuple[list[int], list[bytes]]:
    """What ``packed`` was given.

    >>> unpacked(b"m", 1, 1, packed(b"m", [7], [b"ab"]))
    ([7], [b'ab'])
    """
    states, start = [], len(magic) + 8 * num_counts
    try:
        counts = list(struct.unpack_from(f"<{num_counts}q", state, len(magic)))
        for _ in range(num_states):
            (size,) = struct.unpack_from("<Q", state, start)
            states.append(state[start + 8 : start + 8 + size])
            start += 8 + size
    except struct.error:
        start = -1  # it is too short
    if start != len(state) or not state.startswith(magic):  # a slice beyond the end is shorter than its size says
        raise DamagedStoreError("the state of a policy must be what state() returned; got other bytes.")
    return counts, states


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
