"""Trees as a model file of XGBoost, which XGBoost itself loads, and with it eland, which brings models into Elasticsearch.

XGBoost compares float32 numbers with <. eland takes a name such as f3 for the number of a column.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.rankers.exporting.engine_formats import EngineFormat, Files, only_trees
from rankpolicy.rankers.exporting.engine_models import Tree, Trees, below_32
from rankpolicy.rankers.exporting.opensearch import field_query

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

_NO_PARENT = 2**31 - 1


def _xgboost(ranker: Ranker, names: Sequence[str], name: str) -> Files:
    return {".json": _model_file(only_trees(ranker._engine_model(names), "XGBoost"), names)}


def _elasticsearch(ranker: Ranker, names: Sequence[str], name: str) -> Files:
    extractors = [{"query_extractor": {"feature_name": feature, "query": field_query(feature)}} for feature in names]
    config = {"learning_to_rank": {"feature_extractors": extractors}}
    return _xgboost(ranker, names, name) | {".features.json": json.dumps(config, indent=1)}


def _model_file(model: Trees, names: Sequence[str]) -> str:
    trees = [_tree(tree, number, len(names)) for number, tree in enumerate(model.trees)]
    booster = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(len(trees) + 1)),
        "tree_info": [0] * len(trees),
        "trees": trees,
    }
    learner = {
        "attributes": {"scikit_learn": json.dumps({"_estimator_type": "ranker"})},
        "feature_names": list(names),
        "feature_types": ["float"] * len(names),
        "gradient_booster": {"model": booster, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "num_class": "0",
            "num_feature": str(len(names)),
            "num_target": "1",
        },
        "objective": {"name": "rank:ndcg", "lambdarank_param": {}},
    }
    return json.dumps({"learner": learner, "version": [2, 1, 0]})


def _tree(tree: Tree, number: int, num_features: int) -> dict[str, Any]:
    num_inner, num_nodes = len(tree.feature), len(tree.feature) + len(tree.leaves)
    no_children = np.full(len(tree.leaves), -1)
    conditions = np.concatenate([below_32(tree.threshold), tree.leaves.astype(np.float32)])
    order = _siblings_together(tree)
    is_leaf, number_of = order >= num_inner, np.argsort(order)
    parents = np.full(num_nodes, _NO_PARENT)
    parents[number_of[tree.left]] = parents[number_of[tree.right]] = number_of[:num_inner]

    def of_nodes(of_inner: NDArray[Any], of_leaves: NDArray[Any]) -> list[Any]:
        return np.concatenate([of_inner, of_leaves])[order].tolist()

    return {
        "id": number,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(num_features),
            "num_nodes": str(num_nodes),
            "size_leaf_vector": "1",
        },
        "left_children": of_nodes(number_of[tree.left], no_children),
        "right_children": of_nodes(number_of[tree.right], no_children),
        "parents": parents.tolist(),
        "split_indices": of_nodes(tree.feature, 0 * no_children),
        "split_conditions": conditions[order].tolist(),
        "base_weights": np.where(is_leaf, conditions[order], 0).tolist(),
        "default_left": of_nodes(tree.missing_left.astype(np.int64), 0 * no_children),
        "split_type": [0] * num_nodes,
        "sum_hessian": [1.0] * num_nodes,
        "loss_changes": [0.0] * num_nodes,
        **{name: [] for name in ("categories", "categories_nodes", "categories_segments", "categories_sizes")},
    }


def _siblings_together(tree: Tree) -> NDArray[np.int64]:
    """The nodes, level by level: XGBoost takes the node after a left child for the right one."""
    order = [0]
    for node in order:
        if node < len(tree.feature):
            order += [int(tree.left[node]), int(tree.right[node])]
    return np.array(order)


_NAMES = {"feature_name": r"[^\x00-\x1f\x7f\[\]<]+", "names_in_words": "without [, ] and <"}
XGBOOST = EngineFormat(engine="XGBoost", write=_xgboost, **_NAMES)
ELASTICSEARCH = EngineFormat(
    engine="eland, which brings models into Elasticsearch,",
    write=_elasticsearch,
    feature_name=r"(?!f[0-9]+$)" + _NAMES["feature_name"],
    names_in_words="without [, ] and <, and other than f0, f1, ..., which it reads as numbers of columns",
)
