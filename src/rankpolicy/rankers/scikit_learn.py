"""What scikit-learn asks of an estimator: settings by name, tags, fitted state, metadata routing. It is imported only when it asks."""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.declarations.settings import changed_settings, check_names, setting_names
from rankpolicy.declarations.values import ValueKind
from rankpolicy.display import short
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from sklearn.utils import Tags
    from sklearn.utils.metadata_routing import MetadataRequest

_ROWS = ("qid", "protected")  # arguments with one value per row, which nothing else in a pipeline or search reads
_OF_FIT = ("valid", "eval_set", "eval_qid", "eval_group", "eval_names", "init", "callbacks", "verbose", "progress")


class ScikitLearnEstimator(ABC):
    """The protocol of scikit-learn's estimators, version 1.6 and later, for a dataclass whose settings are declared with
    ``rankpolicy.declarations.settings.setting``. They are checked when it is made, and changed by name.

    With metadata routing (``sklearn.set_config(enable_metadata_routing=True)``), ``qid`` and ``protected`` reach ``fit``, ``predict`` and
    ``score`` without further ado; ``sample_weight`` is asked for as everywhere in scikit-learn: ``set_fit_request(sample_weight=True)``.
    """

    # Arguments of each method that metadata routing may pass on: True where it does by default, None where the user has to say so.
    _metadata_requests: ClassVar[dict[str, dict[str, bool | None]]] = {
        "fit": dict.fromkeys((*_ROWS, *_OF_FIT), True) | {"sample_weight": None, "group": None},
        "predict": dict.fromkeys(_ROWS, True) | {"group": None},
        "score": dict.fromkeys(_ROWS, True) | {"sample_weight": None, "group": None},
    }

    # Settings whose values have settings themselves, by name.
    value_settings: ClassVar[Mapping[str, ValueKind[Any]]] = {}

    num_features_: int
    feature_names_: list[str] | None

    @classmethod
    @abstractmethod
    def setting_names(cls) -> tuple[str, ...]: ...

    @abstractmethod
    def _check_settings(self) -> None: ...

    @checked_kinds
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name (scikit-learn's protocol).

        Parameters
        ----------
        deep
            Whether to give also the settings of values, such as those of the model as ``model__hidden``.
        """
        settings = {name: getattr(self, name) for name in self.setting_names()}
        if deep:
            for name, value in self._nested_settings().items():
                settings |= {f"{name}__{each}": getattr(value, each) for each in setting_names(type(value))}  # type: ignore[arg-type]
        return settings

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name (scikit-learn's protocol); nothing changes if one of them is refused.

        Parameters
        ----------
        settings
            New values by name; ``model__hidden=(32,)`` changes a setting of the model.
        """
        own_settings = {name: value for name, value in settings.items() if "__" not in name}
        check_names(type(self), own_settings)
        changed = copy.copy(self)
        for name, value in own_settings.items():
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
        return {name: kind.of(getattr(self, name)) for name, kind in self.value_settings.items()}

    @classmethod
    def value_with_setting(cls, name: str) -> ValueKind[Any] | None:
        """The kind of values among the settings that has a setting of this name; None if there is none.

        Parameters
        ----------
        name
            The name of the setting, such as "merit" or "fairness__merit".
        """
        return next((kind for kind in cls.value_settings.values() if kind.with_setting(name)), None)

    def __repr__(self) -> str:
        changed = (f"{name}={short(value)}" for name, value in changed_settings(self).items())
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def n_features_in_(self) -> int:
        """Number of features of the training data; there after ``fit``."""
        if "num_features_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has n_features_in_ only after fit.")
        return self.num_features_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features; there after ``fit`` on data whose columns have names."""
        names = vars(self).get("feature_names_")
        if names is None:
            raise AttributeError(f"{type(self).__name__} has feature_names_in_ only after fit on columns with names.")
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return "num_features_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,  # neither classifier nor regressor: scores are only compared within a query
            target_tags=TargetTags(required=True, positive_only=True),
            input_tags=InputTags(sparse=True, allow_nan=True),
            non_deterministic=False,
        )

    def get_metadata_routing(self) -> MetadataRequest:
        """Which arguments of ``fit``, ``predict`` and ``score`` scikit-learn's searches and pipelines pass on (its protocol)."""
        from sklearn.utils.metadata_routing import MetadataRequest

        stored: MetadataRequest | None = vars(self).get("_metadata_request")
        if stored is not None:
            return stored
        routing = MetadataRequest(owner=type(self).__name__)
        for method, requests in self._metadata_requests.items():
            for name, request in requests.items():
                getattr(routing, method).add_request(param=name, alias=request)
        return routing

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Which arguments metadata routing passes to ``fit`` (scikit-learn's protocol).

        Parameters
        ----------
        requests
            By name of the argument: True passes it on, False does not, None is an error if it is given, a text is its name outside.
        """
        return self._request("fit", requests)

    def set_predict_request(self, **requests: bool | str | None) -> Self:
        """Which arguments metadata routing passes to ``predict`` (scikit-learn's protocol).

        Parameters
        ----------
        requests
            By name of the argument, as for ``set_fit_request``.
        """
        return self._request("predict", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Which arguments metadata routing passes to ``score`` (scikit-learn's protocol).

        Parameters
        ----------
        requests
            By name of the argument, as for ``set_fit_request``.
        """
        return self._request("score", requests)

    def _request(self, method: str, requests: dict[str, Any]) -> Self:
        arguments = self._metadata_requests[method]
        for name in requests:
            if name not in arguments:
                raise RankPolicyError(f"{method} has no argument {name!r} to route. Known: {', '.join(arguments)}.")
        routing = copy.deepcopy(self.get_metadata_routing())  # copies of a ranker share the old one
        for name, request in requests.items():
            getattr(routing, method).add_request(param=name, alias=request)
        self._metadata_request = routing  # the name under which scikit-learn's clone copies it
        return self


def not_fitted_error(message: str) -> RankPolicyError:
    """The error of a ranker that is not fitted; where scikit-learn is loaded, it is a ``NotFittedError`` too."""
    exceptions = sys.modules.get("sklearn.exceptions")
    if exceptions is None:
        return RankPolicyError(message)
    kind = type("NotFittedError", (RankPolicyError, exceptions.NotFittedError), {"__module__": __name__})
    error: RankPolicyError = kind(message)
    return error


def _by_owner(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """``{"model__hidden": value}`` as ``{"model": {"hidden": value}}``; names without two underscores are left out."""
    by_owner: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        owner, nested, setting = name.partition("__")
        if nested:
            by_owner.setdefault(owner, {})[setting] = value
    return by_owner
