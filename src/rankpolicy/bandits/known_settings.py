"""Unknown settings are refused with a message that says where they belong."""

from __future__ import annotations

from typing import Any, Self

from rankpolicy.display import ShortRepr
from rankpolicy.settings import setting_names
from rankpolicy.types import RankPolicyError, unknown_name


class KnownSettings(ShortRepr):
    """Base of bandits and indices: a setting that the class does not have is an error that names the classes that have it."""

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Check the names of the settings; the constructor does the rest."""
        for name in settings:
            if name not in setting_names(cls):
                raise RankPolicyError(_where_it_belongs(cls, name))
        return super().__new__(cls)


def _where_it_belongs(cls: type, name: str) -> str:
    from rankpolicy.bandits.members import BANDITS, INDICES

    kind = str(getattr(cls, "name", cls.__name__))
    bandits = [owner for owner, member in BANDITS.items() if name in setting_names(member)]
    indices = [owner for owner, member in INDICES.items() if name in setting_names(member)]
    begin = f"{kind} would not read {name}: it is a setting of"
    if indices and kind not in BANDITS and kind != "query":
        hint = f" Give it to the index: index={INDICES[indices[0]].__name__}({name}=...)." if kind == "index" else ""
        return f"{begin} the {'index' if len(indices) == 1 else 'indices'} {', '.join(indices)}.{hint}"
    if bandits:
        hint = f" Give it in bandit_settings={{{name!r}: ...}}." if kind == "query" else ""
        return f"{begin} the {'bandit' if len(bandits) == 1 else 'bandits'} {', '.join(bandits)}.{hint}"
    return unknown_name(f"setting of {kind}:", name, setting_names(cls))
