"""Settings that have settings themselves: a value such as ``fairness=GroupExposure(merit="exp2")``, or its name for the defaults.

A ranker that has such a setting lists its kind in ``value_settings``; ``get_params`` (``fairness__merit``),
``--set fairness.merit=...``, saving and loading follow.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from rankpolicy.declarations.members import Members
from rankpolicy.declarations.settings import changed_settings, check_settings, plain, setting_names
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsValue:
    """Settings with a name, checked when they are made. Subclasses are frozen dataclasses whose fields are declared with ``setting``."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        self._convert()
        numpy = sys.modules.get("numpy")
        for field in fields(self):
            value = getattr(self, field.name)
            # Lists become tuples and numpy numbers Python's, so that equal settings are equal values.
            if isinstance(value, list | tuple):
                object.__setattr__(self, field.name, tuple(map(plain, value)))
            elif numpy is not None and isinstance(value, numpy.generic):
                object.__setattr__(self, field.name, value.item())
        check_settings(self)
        self._check_together()

    def _convert(self) -> None:
        """Bring what may be given in several forms into one, before it is checked."""

    def _check_together(self) -> None:
        """Refuse settings that are allowed one by one but not together."""

    def to_dict(self) -> dict[str, Any]:
        """The name and all settings, as JSON can hold them."""
        return {"name": self.name} | {field.name: plain(getattr(self, field.name)) for field in fields(self)}


Value = TypeVar("Value", bound=SettingsValue)


def with_defaults(kind: type[Value]) -> Value:
    """The value with default settings; it is frozen, so that all who ask for it can have the same."""
    of_kind: Any = kind
    value: Value = _made_once(of_kind)
    return value


@cache
def _made_once(kind: Any) -> Any:
    return kind()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueKind(Generic[Value]):
    """A setting whose values have settings."""

    setting: str
    members: Members[type[Value]]
    package: str
    read: Callable[[Any], Value | None] = lambda setting: None
    restore: Callable[[dict[str, Any]], Value] | None = None
    shorten: Callable[[Value], Any] | None = None

    def of(self, setting: Any) -> Value:
        """The value that a setting stands for."""
        if isinstance(setting, str):
            return with_defaults(self.members.named(setting))
        if isinstance(setting, dict) and "name" in setting:
            return self.members.named(setting["name"])(
                **{key: value for key, value in setting.items() if key != "name"}
            )
        classes = [self.members[name] for name in self.members]
        if isinstance(setting, tuple(classes)):
            return setting  # type: ignore[return-value]  # an instance of one of the classes
        converted = self.read(setting)
        if converted is not None:
            return converted
        if isinstance(setting, type) and setting in classes:
            raise RankPolicyError(
                f"{self.setting} must be a value, with parentheses: {self.package}.{setting.__name__}(); got the class."
            )
        raise RankPolicyError(
            f"{self.setting} must be a name ({', '.join(self.members)}) or a value such as {self.package}.{classes[0].__name__}(); "
            f"got {setting!r:.80}."
        )

    def restored(self, saved: Any) -> Any:
        """What a ranker has as its setting after it was loaded: a value, or its name where all settings have their defaults."""
        if not isinstance(saved, dict):
            return saved
        value = self.of(saved) if self.restore is None else self.restore(saved)
        return shortest(value) if self.shorten is None else self.shorten(value)

    def with_setting(self, name: str) -> list[type[Value]]:
        """The classes that have a setting of this name."""
        bare = name.removeprefix(f"{self.setting}__")
        return [member for member in self.members.installed().values() if bare in setting_names(member)]  # type: ignore[arg-type]

    def owner_in_words(self, name: str) -> str:
        """Where a setting that a ranker does not have belongs, for error messages."""
        bare = name.removeprefix(f"{self.setting}__")
        return f"it belongs to {self.setting}: {self.setting}={self.package}.{self.with_setting(name)[0].__name__}({bare}=...)"


def shortest(value: SettingsValue) -> Any:
    """The value, or its name where all settings have their defaults."""
    return value if changed_settings(value) else value.name


def settings_from(given: Any, *, name: str, example: str) -> dict[str, Any]:
    """Settings as a dict, from a dict, None, or the text of a dict."""
    try:
        settings = ast.literal_eval(given) if isinstance(given, str) else given
    except (ValueError, SyntaxError):
        settings = given
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    raise RankPolicyError(f"{name} must be a dict such as {example}; got {given!r:.80}.")


def settings_by_method(
    given: Any, methods: Sequence[str], *, name: str, of: str, example: str
) -> dict[str, dict[str, Any]]:
    """The settings of each method, empty where none are given; refuses a method that is not there.

    >>> settings_by_method("{'pg-rank': {'epochs': 3}}", ["pg-rank", "regression"], name="settings", of="methods", example="{}")
    {'pg-rank': {'epochs': 3}, 'regression': {}}
    """
    by_method = settings_from(given, name=name, example=example)
    for method, settings in by_method.items():
        if method not in methods or not isinstance(settings, Mapping):
            raise RankPolicyError(
                f"{name} must hold settings by the names of {of}, {', '.join(methods)}, such as {example}; "
                f"got {method!r}: {settings!r:.60}."
            )
    return {method: dict(by_method.get(method, {})) for method in methods}
