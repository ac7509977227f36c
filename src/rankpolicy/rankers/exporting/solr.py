"""Models of Solr's Learning to Rank module, and the feature store that they read.

The model's file is the body of ``PUT schema/model-store``, the other that of ``PUT schema/feature-store``. Solr computes in float32. It
adds 1e-6 to every threshold of a tree before it compares with <=; the thresholds of the file are so much lower. Numbers of trees are
texts there, and those of networks and weighted sums numbers with a decimal point, as Solr's setters take them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.rankers.exporting.engine_formats import EngineFormat, Files
from rankpolicy.rankers.exporting.engine_models import Layers, Tree, Trees, at_most_32

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

_CLASSES = "org.apache.solr.ltr"
_SLACK = np.float32(1e-6)


def _solr(ranker: Ranker, names: Sequence[str], name: str) -> Files:
    model = ranker._engine_model(names)
    features: list[dict[str, Any]] = [{"name": feature} for feature in names]
    defaults: NDArray[Any] = np.zeros(len(names))
    if isinstance(model, Trees):
        kind, params = "MultipleAdditiveTreesModel", _trees(model, names)
    else:
        defaults = model.center
        features = [_normalized(*values) for values in zip(names, model.center, model.spread, strict=True)]
        is_weighted_sum = len(model.layers) == 1 and not model.layers[0][1].any()  # LinearModel has no bias
        kind, params = ("LinearModel", _weights(model, names)) if is_weighted_sum else _network(model)
    body = {"class": f"{_CLASSES}.model.{kind}", "name": name, "features": features, "params": params}
    store = [_stored(feature, default, model) for feature, default in zip(names, defaults, strict=True)]
    return {".json": json.dumps(body, indent=1), ".features.json": json.dumps(store, indent=1)}


def _stored(feature: str, default: float, model: Trees | Layers) -> dict[str, Any]:
    """A feature that is a field of the document; where it is missing, trees that know missing values see it missing."""
    sees_missing = isinstance(model, Trees) and not model.missing_is_zero
    params = {"field": feature, "defaultValue": "NaN" if sees_missing else str(float(default))}
    return {"name": feature, "class": f"{_CLASSES}.feature.FieldValueFeature", "params": params}


def _trees(model: Trees, names: Sequence[str]) -> dict[str, Any]:
    trees = [{"weight": "1", "root": _root(tree, names)} for tree in model.trees]
    # Solr knows missing values from version 9.2 on; older versions would refuse the parameter.
    return {"trees": trees} | ({} if model.missing_is_zero else {"isNullSameAsZero": False})


def _root(tree: Tree, names: Sequence[str]) -> dict[str, Any]:
    thresholds = without_slack(at_most_32(tree.threshold))

    def split(node: int, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        direction = {} if tree.missing_is_zero else {"missing": "left" if tree.missing_left[node] else "right"}
        comparison = {"feature": names[tree.feature[node]], "threshold": str(float(thresholds[node]))}
        return comparison | direction | {"left": left, "right": right}

    return tree.nested(split, lambda _, value: {"value": str(float(np.float32(value)))})


def without_slack(thresholds: NDArray[np.float32]) -> NDArray[np.float32]:
    """The numbers that are nearest to the thresholds after Solr has added 1e-6: equal, or just below where no float32 number gives them.

    >>> bool(without_slack(np.float32([0.3]))[0] + np.float32(1e-6) == np.float32(0.3))
    True
    """
    lower = (thresholds.astype(np.float64) - 1e-6).astype(np.float32)
    best = np.nextafter(lower, np.float32(-np.inf))
    with np.errstate(over="ignore"):
        for candidate in (lower, np.nextafter(lower, np.float32(np.inf))):
            best = np.where(candidate + _SLACK <= thresholds, candidate, best)
    return best


def _weights(model: Layers, names: Sequence[str]) -> dict[str, Any]:
    ((weights, _),) = model.layers
    counted = np.where(np.isinf(model.spread), 0, weights[0])
    return {"weights": {name: float(weight) for name, weight in zip(names, counted, strict=True)}}


def _network(model: Layers) -> tuple[str, dict[str, Any]]:
    layers = []
    for number, (weights, bias) in enumerate(model.layers, 1):
        counted = np.where(np.isinf(model.spread), 0, weights) if number == 1 else weights
        activation = "identity" if number == len(model.layers) else "relu"
        layers.append({"matrix": counted.tolist(), "bias": bias.tolist(), "activation": activation})
    return "NeuralNetworkModel", {"layers": layers}


def _normalized(name: str, center: float, spread: float) -> dict[str, Any]:
    """A feature with the normalizer that scales it; a feature that was constant in training has weight 0 instead."""
    if np.isinf(spread) or (center, spread) == (0, 1):
        return {"name": name}
    params = {"avg": str(float(center)), "std": str(float(spread))}
    return {"name": name, "norm": {"class": f"{_CLASSES}.norm.StandardNormalizer", "params": params}}


SOLR = EngineFormat(
    engine="Solr",
    write=_solr,
    feature_name=r"[^\x00-\x1f\x7f,=]+",
    names_in_words="without commas and =, which separate the features that it logs",
)
