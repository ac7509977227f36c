"""Settings by name, as scikit-learn's estimators have them: get_params, set_params and clone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from rankpolicy.arguments import checked_kinds
from rankpolicy.display import short
from rankpolicy.settings import changed_settings, check_names, check_settings, plain, setting_names
from rankpolicy.types import RankPolicyError


class NamedSettings:
    """A dataclass whose settings are declared with ``rankpolicy.settings.setting``, checked when it is made, and changed by name."""

    def __post_init__(self) -> None:
        self._check_settings()

    def _check_settings(self) -> None:
        """Refuse settings of a wrong kind or range, or that nothing would read."""
        check_settings(self)

    def _plain_settings(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in self.get_params(deep=False).items()}

    @checked_kinds
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name (scikit-learn's protocol).

        Parameters
        ----------
        deep
            Whether to give also the settings of the model, as ``model__hidden``.
        """
        settings = {name: getattr(self, name) for name in self.setting_names()}
        if deep:
            for name, value in self._nested_settings().items():
                settings |= {f"{name}__{each}": getattr(value, each) for each in setting_names(type(value))}
        return settings

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name (scikit-learn's protocol); nothing changes if one of them is refused.

        Parameters
        ----------
        settings
            New values by name; ``model__hidden=(32,)`` changes a setting of the model.
        """
        own = {name: value for name, value in settings.items() if "__" not in name}
        check_names(type(self), own)
        changed = copy.copy(self)
        for name, value in own.items():
            setattr(changed, name, value)
        for name, values in _by_owner(settings).items():
            if name not in self.setting_names():
                check_names(type(self), [name])
            nested = changed._nested_settings().get(name)
            if nested is None:
                raise RankPolicyError(
                    f"{type(self).__name__}: {name}={getattr(changed, name)!r:.60} has no settings; "
                    f"got {', '.join(f'{name}__{each}' for each in values)}."
                )
            check_names(type(nested), values)
            setattr(changed, name, replace(nested, **values))
        changed._check_settings()
        for name in self.setting_names():
            setattr(self, name, getattr(changed, name))
        return self

    def _nested_settings(self) -> Mapping[str, Any]:
        """Settings that have settings themselves, as the values they stand for."""
        return {}

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The names of the settings, in order."""
        return setting_names(cls)

    def __repr__(self) -> str:
        changed = (f"{name}={short(value)}" for name, value in changed_settings(self).items())
        return f"{type(self).__name__}({', '.join(changed)})"


def _by_owner(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """``{"model__hidden": value}`` as ``{"model": {"hidden": value}}``; names without two underscores are left out."""
    by_owner: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        owner, nested, rest = name.partition("__")
        if nested:
            by_owner.setdefault(owner, {})[rest] = value
    return by_owner
