"""How a setting is declared: its kind, default, range, choices and help, once, beside its default.

    @documented
    @dataclass(kw_only=True)
    class Example:
        \"\"\"An example.\"\"\"

        epochs: int = setting(100, "Passes over the training data.", at_least=1)
        control: str = setting("mean", "What is subtracted from rewards.", choices=("mean", "none"))

Everything else is derived from the declaration: the check (``check_settings``), its error messages, the parameter section that
``help()`` shows (``documented``), ``rankpolicy methods`` and what ``--set name=value`` accepts
(setting_texts.py). The kind of a setting is its annotation. Rankers, models, bandits, click models and objectives all declare their
settings this way.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any, TypeVar

from rankpolicy.declarations.arguments import allows_none, kind_of
from rankpolicy.types import RankPolicyError, unknown_name

HIGHEST_SEED = 2**31 - 1  # LightGBM keeps seeds as 32-bit integers
_DECLARATION = "rankpolicy setting"
_BOUNDS: dict[str, Callable[[Any, float], bool]] = {"at_least": ge, "above": gt, "at_most": le, "below": lt}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWhen:
    """The condition under which a setting has an effect."""

    condition: str  # completes "read only when ..."
    holds: Callable[[Any], bool]  # called with the object whose setting it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What is declared about one setting, beside its kind and default."""

    help: str
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: Collection[str] | Callable[[], Collection[str]] | None = None
    read_when: ReadWhen | None = None
    is_seed: bool = False

    def known_choices(self) -> list[str]:
        """The names that the setting may have; empty where it is not a choice among names."""
        if self.choices is None:
            return []
        return list(self.choices() if callable(self.choices) else self.choices)

    def range_in_words(self) -> str:
        """The allowed range, such as "at least 1" or "above 0 and at most 1"; empty where there is none."""
        if self.is_seed:
            return f"a seed from 0 to {HIGHEST_SEED}"
        bounds = {name: getattr(self, name) for name in _BOUNDS}
        return " and ".join(
            f"{name.replace('_', ' ')} {bound:g}" for name, bound in bounds.items() if bound is not None
        )

    def allows(self, value: Any) -> bool:
        """Whether a number lies in the range."""
        for name, holds in _BOUNDS.items():
            bound = getattr(self, name)
            if bound is not None and not holds(value, bound):
                return False
        return True


def setting(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    choices: Collection[str] | Callable[[], Collection[str]] | None = None,
    read_when: ReadWhen | None = None,
) -> Any:
    """Declare a setting: a dataclass field with a default, a help text, and what values it may have.

    Parameters
    ----------
    default
        Its default; ``dataclasses.MISSING`` for a setting that must be given.
    help
        What it is, its unit, and when to change it: one or two plain sentences, shown by ``help()``.
    at_least, above, at_most, below
        Bounds of a number; for a list of numbers, of each of them. None has no bound.
    choices
        The names it may have, or a function that returns them (for tables that are not loaded yet).
    read_when
        The condition under which the setting has an effect; changed when it does not hold, it is an error. None: always.
    """
    declaration = Declaration(
        help=" ".join(help.split()),
        at_least=at_least,
        above=above,
        at_most=at_most,
        below=below,
        choices=choices,
        read_when=read_when,
    )
    metadata = {_DECLARATION: declaration}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def seed_setting(default: int | None, help: str) -> Any:
    """Declare a setting that seeds random numbers."""
    declaration = Declaration(help=help, at_least=0, at_most=HIGHEST_SEED, is_seed=True)
    return dataclasses.field(default=default, metadata={_DECLARATION: declaration})


def setting_of(
    cls: type,
    name: str,
    *,
    default: Any = dataclasses.MISSING,
    help: str | None = None,
    read_when: ReadWhen | None = None,
) -> Any:
    """A setting declared as that of another class, with another default, help text or condition."""
    field = next(field for field in dataclasses.fields(cls) if field.name == name)
    declared = declaration_of(cls, name)
    changed = dataclasses.replace(
        declared,
        help=declared.help if help is None else " ".join(help.split()),
        read_when=declared.read_when if read_when is None else read_when,
    )
    default = field.default if default is dataclasses.MISSING else default
    return dataclasses.field(default=default, metadata={_DECLARATION: changed})


def documented(cls: type[T]) -> type[T]:
    """Append a parameter section to the docstring of a dataclass, made from the declarations of its settings.

    Its constructor then refuses unknown settings with an error that lists the known ones, or says where the setting belongs.
    """
    from rankpolicy.declarations.setting_texts import parameter_section

    _refuse_unknown_settings(cls)
    cls.__doc__ = inspect.cleandoc(cls.__doc__ or "").rstrip() + "\n\n" + parameter_section(cls)
    return cls


@typing.dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(dataclasses.field,))
def settings_class(cls: type[T]) -> type[T]:
    """A documented dataclass of settings; objects are equal where they are the same."""
    # A repr that the classes above it have stays.
    has_repr = cls.__repr__ is not object.__repr__ and not hasattr(cls.__repr__, "__wrapped__")
    return documented(dataclasses.dataclass(kw_only=True, eq=False, repr=not has_repr)(cls))


@typing.dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen_settings(cls: type[T]) -> type[T]:
    """A documented dataclass of settings that never change; objects of equal settings are equal."""
    return documented(dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(cls))


def _refuse_unknown_settings(cls: type) -> None:
    construct = cls.__dict__.get("__init__")
    if construct is None:
        return

    @functools.wraps(construct)
    def checked(self: Any, *args: Any, **settings: Any) -> None:
        check_names(type(self), settings)
        construct(self, *args, **settings)

    cls.__init__ = checked  # type: ignore[misc]


def check_names(cls: type, names: Iterable[str]) -> None:
    """Refuse names that are no settings of a class.

    The error says where a setting belongs if the class has a function ``where_setting_belongs(name)`` that knows; a text ``other_settings``
    of the class is appended to the list of known settings.
    """
    names_of_settings = setting_names(cls)
    for name in names:
        if name not in names_of_settings:
            belongs = getattr(cls, "where_setting_belongs", lambda name: None)(name)
            if belongs is not None:
                raise RankPolicyError(f"{cls.__name__} has no setting {name!r}; {belongs}.")
            close = (
                unknown_name("", name, names_of_settings).partition("'.")[2]
                if names_of_settings
                else " It has no settings."
            )
            raise RankPolicyError(f"{cls.__name__} has no setting {name!r}.{close}{getattr(cls, 'other_settings', '')}")


@functools.cache
def declaration_of(cls: type, name: str) -> Declaration:
    """What is declared about a setting; a field without a declaration has no help and no range."""
    for field in dataclasses.fields(cls):
        if field.name == name:
            return field.metadata.get(_DECLARATION) or Declaration(help="")
    raise RankPolicyError(unknown_name(f"setting of {cls.__name__}:", name, setting_names(cls)))


@functools.cache
def setting_fields(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    """The settings of a dataclass as its fields, in order."""
    return tuple(field for field in dataclasses.fields(cls) if field.init)


@functools.cache
def setting_names(cls: type) -> tuple[str, ...]:
    """The names of the settings of a dataclass, in order."""
    return tuple(field.name for field in setting_fields(cls))


def changed_settings(owner: Any) -> dict[str, Any]:
    """The settings of an object that differ from their defaults; those without a default are always there."""
    cls: type = type(owner)
    return {
        field.name: getattr(owner, field.name)
        for field in setting_fields(cls)
        if not _same(getattr(owner, field.name), field.default)
    }


def check_settings(owner: Any, *, name_of_owner: str | None = None) -> None:
    """Refuse a setting of the wrong kind, out of its range, not among its choices, or changed although nothing reads it."""
    cls: type = type(owner)
    # Most settings have their defaults, which need no check; a fit makes many objects.
    assigned = []
    for field in setting_fields(cls):
        if getattr(owner, field.name) is not field.default:
            check_setting(cls, field.name, getattr(owner, field.name))
            assigned.append(field)
    for field in assigned:
        value, read_when = getattr(owner, field.name), declaration_of(cls, field.name).read_when
        if read_when is not None and not _same(value, field.default) and not read_when.holds(owner):
            raise RankPolicyError(
                f"{name_of_owner or cls.__name__}: {field.name}={value!r:.60} would not be read: it is read only when "
                f"{read_when.condition}. Leave it out."
            )


def check_setting(cls: type, name: str, value: Any) -> None:
    """Refuse a value that one setting of a class cannot have."""
    annotation, declared = kinds_of(cls)[name], declaration_of(cls, name)
    kind = kind_of(annotation)
    if not kind.is_open and not kind.fits(value):
        is_single = typing.get_origin(annotation) is tuple and kind.fits((value,))
        hint = f" For a single one write ({value!r},)." if is_single else ""
        raise RankPolicyError(f"{name} must be {kind.words}; got {value!r:.80}.{hint}")
    for member in value if isinstance(value, tuple | list) else (value,):
        if isinstance(member, str) and declared.choices is not None and member not in declared.known_choices():
            raise RankPolicyError(unknown_name(name, member, declared.known_choices()))
        if isinstance(member, Real) and not isinstance(member, bool) and not declared.allows(member):
            or_none = " or None" if allows_none(annotation) and not declared.is_seed else ""
            raise RankPolicyError(f"{name} must be {declared.range_in_words()}{or_none}; got {value!r:.80}.")
        if isinstance(member, Integral) and abs(int(member)) > HIGHEST_SEED:
            raise RankPolicyError(f"{name} must be at most {HIGHEST_SEED}; got {value!r:.80}.")


def share_settings(target: Callable[..., T], source: Any, **changes: Any) -> T:
    """A ``target`` made from the settings of the same names that ``source`` has, and from ``changes``."""
    for name in setting_names(typing.cast(Any, target)):
        if name not in changes and hasattr(source, name):
            changes[name] = getattr(source, name)
    return target(**changes)


def plain(value: Any) -> Any:
    """A setting as JSON can hold it: numpy's numbers as Python's, a function or class by its name, a model as its ``to_dict()``."""
    if _is_numpy(value, "generic"):
        return value.item()
    if dataclasses.is_dataclass(value) and hasattr(value, "to_dict"):
        return value.to_dict()
    if _is_numpy(value, "ndarray"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(member) for member in value]
    if isinstance(value, Mapping):
        return {key: plain(member) for key, member in value.items()}
    if callable(value):
        return getattr(value, "name", None) or getattr(value, "__name__", type(value).__name__)
    return value


def _is_numpy(value: Any, kind: str) -> bool:
    # Not imported here: help pages read settings too, and no value is numpy's before it is loaded.
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, getattr(numpy, kind))


@functools.cache
def kinds_of(cls: type) -> dict[str, Any]:
    """The kinds of the settings of a class: their annotations, by name."""
    return typing.get_type_hints(cls)


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value is default or value == default)
    except Exception:  # arrays compare element by element, and other libraries refuse to compare in their own ways
        return False
