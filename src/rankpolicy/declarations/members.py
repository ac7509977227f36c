"""The members of a kind (rankers, models, bandits, click models, ...): one table per kind, one line per member."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar

from rankpolicy.optional import require
from rankpolicy.types import MissingDependencyError, RankPolicyError, unknown_name

Member = TypeVar("Member")


class Members(Mapping[str, Member], Generic[Member]):
    """A table of names and members whose modules are imported when a member is first used.

    Names, error texts and help therefore cost nothing; the command line and the contract tests read the same table.

    >>> colours = Members("separator", {"comma": "string:punctuation"})
    >>> list(colours), "," in colours.named("comma")
    (['comma'], True)
    >>> colours.named("coma")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown separator 'coma'. Did you mean 'comma'? Known: comma.
    """

    def __init__(self, kind: str, locations: Mapping[str, str]) -> None:
        self.kind = kind
        self.locations = dict(locations)  # module:name of each member
        self._loaded: dict[str, Member] = {}

    def __getitem__(self, name: str) -> Member:
        if name not in self._loaded:
            module, _, attribute = self.locations[name].partition(":")
            self._loaded[name] = getattr(require(module, f"The {self.kind} {name!r}"), attribute)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.locations)

    def __len__(self) -> int:
        return len(self.locations)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.locations

    def installed(self) -> dict[str, Member]:
        """The members by name, without those that need a package that is not installed."""
        members = {}
        for name in self:
            with suppress(MissingDependencyError):
                members[name] = self[name]
        return members

    def named(self, name: Any) -> Member:
        """The member of this name; an unknown name is an error that lists the known ones."""
        if name not in self:
            raise RankPolicyError(unknown_name(self.kind, name, self))
        return self[name]

    def __repr__(self) -> str:
        return f"Members({self.kind!r}: {', '.join(self)})"
