"""Models of the Learning to Rank plugin of OpenSearch and Elasticsearch, and the feature set that they read.

The model's file is the body of ``POST _ltr/_featureset/NAME/_createmodel``, the other that of ``PUT _ltr/_featureset/NAME``. The plugin
computes in float32 and compares with <; RankLib compares with <=, and numbers features from 1 in the order of the feature set.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.rankers.exporting.engine_formats import EngineFormat, Files, only_trees
from rankpolicy.rankers.exporting.engine_models import Layers, Tree, Trees, at_most_32, below_32, trees_needed
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


def _opensearch(ranker: Ranker, names: Sequence[str], name: str) -> Files:
    model = ranker._engine_model(names)
    if isinstance(model, Trees):
        trees = [xgboost_dump(tree, names) for tree in model.trees]
        return _bodies(name, "model/xgboost+json", json.dumps(trees), names)
    if len(model.layers) > 1:
        raise trees_needed(f"{_PLUGIN} reads trees and weighted sums, no networks with hidden layers")
    weights = {name: float(weight) for name, weight in zip(names, folded_weights(model), strict=True)}
    return _bodies(name, "model/linear", json.dumps(weights), names, model.center)


def _ranklib(ranker: Ranker, names: Sequence[str], name: str) -> Files:
    trees = only_trees(ranker._engine_model(names), "RankLib")
    if not trees.missing_is_zero:
        raise RankPolicyError(
            "RankLib reads a missing value as 0, and these trees were trained on missing values and treat them differently. Fill them "
            "with 0 in the training data, or use the format opensearch."
        )
    return _bodies(name, "model/ranklib", _ranklib_text(trees), names)


def folded_weights(model: Layers) -> NDArray[np.floating[Any]]:
    """The weights (feature,) of a linear model for features that are not scaled; scores lack a constant, the same for all items."""
    (weights, _), *_ = model.layers
    return weights[0] / model.spread


def xgboost_dump(tree: Tree, names: Sequence[str]) -> dict[str, Any]:
    """A tree as XGBoost dumps it to JSON."""
    thresholds, depth = below_32(tree.threshold).tolist(), np.zeros(len(tree.feature), np.int64)
    for node in range(len(depth)):
        children = np.array([tree.left[node], tree.right[node]])
        depth[children[children < len(depth)]] = depth[node] + 1

    def split(node: int, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {
            "nodeid": node,
            "depth": int(depth[node]),
            "split": names[tree.feature[node]],
            "split_condition": thresholds[node],
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": (left if tree.missing_left[node] else right)["nodeid"],
            "children": [left, right],
        }

    return tree.nested(split, lambda node, value: {"nodeid": node, "leaf": float(np.float32(value))})


def _ranklib_text(model: Trees) -> str:
    """The text of a LambdaMART model of RankLib; its reader wants each tag in a line, and nothing before it."""
    lines = ["## LambdaMART", f"## No. of trees = {len(model.trees)}", "", "<ensemble>"]
    for number, tree in enumerate(model.trees, 1):
        thresholds = at_most_32(tree.threshold)

        def split(node: int, left: str, right: str, tree: Tree = tree, thresholds: Any = thresholds) -> str:
            comparison = (
                f"<feature> {tree.feature[node] + 1} </feature>\n<threshold> {float(thresholds[node])} </threshold>"
            )
            return f'{comparison}\n<split pos="left">\n{left}\n</split>\n<split pos="right">\n{right}\n</split>'

        root = tree.nested(split, lambda _, value: f"<output> {float(np.float32(value))} </output>")
        lines += [f'<tree id="{number}" weight="1.0">', "<split>", root, "</split>", "</tree>"]
    return "\n".join([*lines, "</ensemble>", ""])


def _bodies(name: str, kind: str, definition: str, names: Sequence[str], missing: Any = None) -> Files:
    model = {"model": {"name": name, "model": {"type": kind, "definition": definition}}}
    templates = [field_query(feature, None if missing is None else missing[i]) for i, feature in enumerate(names)]
    features = [
        {"name": feature, "params": [], "template_language": "mustache", "template": template}
        for feature, template in zip(names, templates, strict=True)
    ]
    featureset = {"featureset": {"features": features}}
    return {".json": json.dumps(model, indent=1), ".features.json": json.dumps(featureset, indent=1)}


def field_query(field: str, missing: float | None = None) -> dict[str, Any]:
    """A query whose score is a field of the document; without the field it does not match, or has the score ``missing``."""
    value = {"field": field} if missing is None else {"field": field, "missing": float(missing)}
    query: dict[str, Any] = {"exists": {"field": field}} if missing is None else {"match_all": {}}
    return {"function_score": {"query": query, "field_value_factor": value, "boost_mode": "replace"}}


_PLUGIN = "the Learning to Rank plugin of OpenSearch and Elasticsearch"
OPENSEARCH = EngineFormat(engine=_PLUGIN, write=_opensearch)
RANKLIB = EngineFormat(engine=_PLUGIN, write=_ranklib)
