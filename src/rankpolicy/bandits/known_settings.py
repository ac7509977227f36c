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
                raise RankPolicyError(_where_it_belongs(cls, name))
        return super().__new__(cls)


def _where_it_belongs(cls: type, name: str) -> str:
    from rankpolicy.bandits.members import BANDITS, INDICES

    kind = str(getattr(cls, "name", cls.__name__))
    for table in (INDICES, BANDITS):
        owners = [owner for owner, member in table.items() if name in setting_names(member) and owner != kind]
        if owners and (table is BANDITS or kind not in BANDITS):
            what = "index" if table is INDICES else "bandit"
            hint = f" Give it to the index: index={INDICES[owners[0]].__name__}({name}=...)." if kind == "index" else ""
            return f"{kind} would not read {name}: it is a setting of the {what} {', '.join(owners)}.{hint}"
    return unknown_name(f"setting of {kind}:", name, setting_names(cls))
