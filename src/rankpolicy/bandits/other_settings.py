"""Where a setting belongs that a bandit or an index does not have, for the error that refuses it."""

from __future__ import annotations

from rankpolicy.display import ShortRepr
from rankpolicy.settings import setting_names


class KnowsOtherSettings(ShortRepr):
    """Base of bandits and indices: the error about a setting that the class does not have names the classes that have it."""

    @classmethod
    def where_setting_belongs(cls, name: str) -> str | None:
        """Which bandits or indices have a setting; None if none has it.

        Parameters
        ----------
        name
            The name of the setting.
        """
        from rankpolicy.bandits.members import BANDITS, INDICES

        kind = str(getattr(cls, "name", cls.__name__))
        bandits = [owner for owner, member in BANDITS.items() if name in setting_names(member)]
        indices = [owner for owner, member in INDICES.items() if name in setting_names(member)]
        if indices and kind not in BANDITS and kind != "query":
            hint = (
                f". Give it to the index: index={INDICES[indices[0]].__name__}({name}=...)" if kind == "index" else ""
            )
            return f"it is a setting of the {'index' if len(indices) == 1 else 'indices'} {', '.join(indices)}{hint}"
        if bandits:
            hint = f". Give it in bandit_settings={{{name!r}: ...}}" if kind == "query" else ""
            return f"it is a setting of the {'bandit' if len(bandits) == 1 else 'bandits'} {', '.join(bandits)}{hint}"
        return None
