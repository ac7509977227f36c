"""The methods of a run by name, ``--methods a,b`` and ``--variant NAME=METHOD``, and their settings from text: ``--set name=value`` and
the [settings] of a run.toml.

``--set model.hidden=64,64`` is a setting of the method's model; in Python it is ``set_params(model__hidden=(64, 64))``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from rankpolicy.cli.support.options import pairs_in
from rankpolicy.declarations.members import Members
from rankpolicy.declarations.setting_texts import parse_setting
from rankpolicy.declarations.settings import check_names, setting_names
from rankpolicy.types import RankPolicyError, check_name, unknown_name

if TYPE_CHECKING:
    from rankpolicy.rankers import Ranker

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MODEL = "model"
_EXAMPLES = {"--set": "epochs=50", "--space": "num_leaves=7:127:log"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMethods:
    """The methods of a run by their names in it, in order: what ``--methods``, ``--variant`` and ``--set`` say."""

    methods: dict[str, str]  # another name than that in the run for a variant
    classes: dict[str, Any]
    settings: dict[str, dict[str, Any]]

    def for_experiment(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """The method and its settings by name, as experiments take them."""
        return {name: (method, self.settings[name]) for name, method in self.methods.items()}

    def all_settings(self) -> dict[str, dict[str, Any]]:
        """The settings of each method, defaults included."""
        return {
            name: {
                field.name: field.default
                for field in (fields(self.classes[name]) if is_dataclass(self.classes[name]) else ())
                if field.init and field.default is not MISSING
            }
            | settings
            for name, settings in self.settings.items()
        }


def parse_methods(
    text: str,
    variants: Sequence[str] | None,
    assignments: Sequence[str] | None,
    members: Members[Any],
    *,
    kind: str = "method",
) -> NamedMethods:
    """The methods that the options name: those listed, then the variants that are not listed."""
    method_of = _parse_variants(variants or (), members)
    listed = [name for name in (word.strip() for word in text.split(",")) if name]
    names = dict.fromkeys([*listed, *method_of])
    if not names:
        raise RankPolicyError(f"--{kind}s must name at least one {kind}; see: rankpolicy methods.")
    methods = {name: method_of.get(name, name) for name in names}
    classes = {name: members.named(method) for name, method in methods.items()}
    settings = settings_of_methods(classes, parse_assignments(assignments or ()))
    return NamedMethods(methods=methods, classes=classes, settings=settings)


def parse_by_method(texts: Sequence[str], methods: Mapping[str, Any], *, option: str) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dict by the name of a method of the run.

    >>> parse_by_method(["deltr=0,100"], {"deltr": None}, option="--strengths-of")
    {'deltr': '0,100'}
    """
    values = dict(pairs_in(texts, option, "METHOD=VALUE"))
    for name in values:
        check_name(f"method in {option}:", name, methods)
    return values


def _parse_variants(texts: Sequence[str], members: Members[Any]) -> dict[str, str]:
    method_of: dict[str, str] = {}
    form = "NAME=METHOD, such as wide=pg-rank, NAME of letters, digits, - and _"
    for name, method in pairs_in(texts, "--variant", form, name=_NAME):
        if name in method_of or name in members:
            raise RankPolicyError(f"--variant {name}={method}: {name} is taken already; choose another name.")
        members.named(method)
        method_of[name] = method
    return method_of


def parse_assignments(texts: Sequence[str], *, option: str = "--set") -> dict[str, str]:
    """``name=value`` texts as a dict; the last one of a name counts.

    >>> parse_assignments(["epochs=50", "model.hidden=64,64"])
    {'epochs': '50', 'model.hidden': '64,64'}
    """
    assignments = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise RankPolicyError(f"{option} must be name=value, such as {_EXAMPLES[option]}; got {text!r}.")
        assignments[name.strip().replace("-", "_")] = value.strip()
    return assignments


def parse_settings(ranker_class: type[Ranker], texts: Mapping[str, str]) -> dict[str, Any]:
    """Settings as ``set_params`` takes them, each text read as the kind of its setting.

    >>> from rankpolicy.rankers import PGRank
    >>> parse_settings(PGRank, {"epochs": "50", "model.hidden": "64,64", "patience": "none", "reward": "ap"})
    {'epochs': 50, 'model__hidden': (64, 64), 'patience': None, 'reward': 'ap'}
    """
    settings = {}
    for name, text in texts.items():
        owner, dot, nested = name.partition(".")
        if owner not in ranker_class.setting_names():
            _refuse_setting({ranker_class.name: ranker_class}, owner, kind=f"setting of {ranker_class.name}:")
        if not dot:
            settings[name] = parse_setting(ranker_class, name, text)
            continue
        if owner not in _owners(ranker_class):
            raise RankPolicyError(f"the setting {owner!r} has no settings of its own; got {name!r}.")
        value_class = _value_class(ranker_class, owner, texts)
        check_names(value_class, [nested])
        settings[f"{owner}__{nested}"] = parse_setting(value_class, nested, text)
    return settings


def unfitted_ranker(method: str, texts: Mapping[str, str], seed: int) -> Ranker:
    """The ranker of a method with settings from text; ``seed`` is its random state unless a setting says another."""
    from rankpolicy.rankers import ranker_class_named

    ranker_class = ranker_class_named(method)
    return ranker_class().set_params(**{"random_state": seed, **parse_settings(ranker_class, texts)})


def settings_of_methods(
    classes: Mapping[str, type[Ranker]], assignments: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Settings by method: ``pg_rank.epochs`` is for one method, ``epochs`` or ``model.hidden`` for every method that has it."""
    by_attribute = {method.replace("-", "_"): method for method in classes}
    texts: dict[str, dict[str, str]] = {method: {} for method in classes}
    shared: dict[str, str] = {}
    for full_name, text in assignments.items():
        method, dot, name = full_name.partition(".")
        if dot and method in by_attribute:
            texts[by_attribute[method]][name] = text
        elif dot and not any(method in _owners(ranker_class) for ranker_class in classes.values()):
            raise RankPolicyError(unknown_name("method in --set:", method.replace("_", "-"), classes))
        else:
            shared[full_name] = text
    for name, text in shared.items():
        readers = [method for method in classes if _has_setting(classes[method], name, shared | texts[method])]
        if not readers:
            _refuse_setting(classes, name)
        for method in readers:
            texts[method].setdefault(name, text)
    return {method: parse_settings(ranker_class, texts[method]) for method, ranker_class in classes.items()}


def as_texts(table: Mapping[str, Any]) -> dict[str, str]:
    """The [settings] of a run.toml as ``--set`` would have them; a table [settings.model] holds the model's name and settings.

    >>> as_texts({"epochs": 5, "model": {"name": "mlp", "hidden": [8, 8]}})
    {'epochs': '5', 'model': 'mlp', 'model.hidden': '8,8'}
    """
    texts = {}
    for name, value in table.items():
        name = name.replace("-", "_")
        if isinstance(value, Mapping):
            for nested, nested_value in value.items():
                key = name if nested == "name" else f"{name}.{nested.replace('-', '_')}"
                texts[key] = as_text(nested_value)
        else:
            texts[name] = as_text(value)
    return texts


def as_text(value: Any) -> str:
    """A TOML value as one would write it after ``--set name=``."""
    if isinstance(value, list):
        return ",".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _owners(ranker_class: type[Ranker]) -> set[str]:
    """The settings of a ranker that have settings themselves."""
    return {_MODEL, *ranker_class.value_settings} & set(ranker_class.setting_names())


def _value_class(ranker_class: type[Ranker], owner: str, texts: Mapping[str, str]) -> type:
    """The class of the value that a setting has in a ranker of these settings."""
    default = str(getattr(ranker_class, owner))
    if owner == _MODEL:
        from rankpolicy.models.members import MODELS

        return MODELS.named(texts.get(_MODEL, default))
    kind = ranker_class.value_settings[owner]
    return type(kind.of(parse_setting(ranker_class, owner, texts.get(owner, default))))


def _has_setting(ranker_class: type[Ranker], name: str, texts: Mapping[str, str]) -> bool:
    owner, dot, nested = name.partition(".")
    if owner not in ranker_class.setting_names() or (dot and owner not in _owners(ranker_class)):
        return False
    return not dot or nested in setting_names(_value_class(ranker_class, owner, texts))


def _refuse_setting(classes: Mapping[str, type[Ranker]], name: str, *, kind: str = "setting") -> NoReturn:
    """Refuse a name that is no setting of these methods, and say where it belongs: to a model, to another value or to other methods."""
    for ranker_class in classes.values():
        owner, bare = _owner_of(ranker_class, name)
        if owner:
            raise RankPolicyError(f"{ranker_class.name} has no setting {bare!r}; it belongs to {owner}.{bare}=...")
    belongs = next(iter(classes.values())).where_setting_belongs(name)
    methods = ", ".join(classes)
    if belongs is not None:
        raise RankPolicyError(f"{methods} {'have' if len(classes) > 1 else 'has'} no setting {name!r}; {belongs}.")
    names = dict.fromkeys(setting for ranker_class in classes.values() for setting in ranker_class.setting_names())
    raise RankPolicyError(unknown_name(kind, name, names))


def _owner_of(ranker_class: type[Ranker], name: str) -> tuple[str, str]:
    """How a model, or another value among the settings, is given the setting of this name; empty where none has it."""
    from rankpolicy.models.members import models_with_setting

    # Bandits have no settings that have settings.
    kind = ranker_class.value_with_setting(name) if hasattr(ranker_class, "value_settings") else None
    if kind is not None:
        return f"{kind.setting}: --set {kind.setting}", name.removeprefix(f"{kind.setting}__")
    name = name.removeprefix("model__")  # as set_params has it in Python
    models = models_with_setting(name) if _MODEL in ranker_class.setting_names() else []
    if not models:
        return "", name
    is_default = getattr(ranker_class, _MODEL) in [model.name for model in models]
    return f"the model: {'' if is_default else f'--set model={models[0].name} '}--set model", name
