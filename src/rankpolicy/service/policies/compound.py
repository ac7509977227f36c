"""What policies share that hold other policies."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError

_NOT_INSIDE = ("split", "apprentice", "interleaved", "swaps")


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
