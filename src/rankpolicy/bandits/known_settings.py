"""Unknown settings are refused with a message that says where they belong."""

from __future__ import annotations

from typing import Any, Self

from rankpolicy.settings import setting_names
from rankpolicy.types import RankPolicyError, unknown_name


class KnownSettings:
    """Base of bandits and indices: a setting that the class does not have is an error that names the classes that have it."""

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Check the names of the settings; the constructor does the rest."""
        for name in settings:
            if name not in setting_names(cls):
                kind, belongs = cls._kind(), cls.where_setting_belongs(name)
                if belongs is None:
                    raise RankPolicyError(unknown_name(f"setting of {kind}:", name, setting_names(cls)))
                raise RankPolicyError(f"{kind} would not read {name}: {belongs}.")
        return super().__new__(cls)

    @classmethod
    def where_setting_belongs(cls, name: str) -> str | None:
        """Where a setting that this class does not have belongs: to other bandits or indices; None if nothing has it.

        Parameters
        ----------
        name
            The name of the setting.
        """
        return _where_it_belongs(cls._kind(), name)

    @classmethod
    def _kind(cls) -> str:
        return str(getattr(cls, "name", cls.__name__))


def _where_it_belongs(kind: str, name: str) -> str | None:
    from rankpolicy.bandits.members import BANDITS, INDICES

    bandits = [owner for owner, member in BANDITS.items() if name in setting_names(member)]
    indices = [owner for owner, member in INDICES.items() if name in setting_names(member)]
    begin = "it is a setting of"
    if indices and kind not in BANDITS and kind != "query":
        hint = f". Give it to the index: index={INDICES[indices[0]].__name__}({name}=...)" if kind == "index" else ""
        return f"{begin} the {'index' if len(indices) == 1 else 'indices'} {', '.join(indices)}{hint}"
    if bandits:
        hint = f". Give it in bandit_settings={{{name!r}: ...}}" if kind == "query" else ""
        return f"{begin} the {'bandit' if len(bandits) == 1 else 'bandits'} {', '.join(bandits)}{hint}"
    return None
