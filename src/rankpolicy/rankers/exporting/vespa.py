"""Models for Vespa: trees as LightGBM dumps them, or an ONNX file, and the rank profile that reads them.

Vespa compares with <, where LightGBM has <=, and sends a missing value (NaN) left where ``default_left`` says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankpolicy.rankers.exporting.engine_formats import EngineFormat, Files, only_trees
from rankpolicy.rankers.exporting.engine_models import Tree, trees_needed

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

# A rank feature or a function of a rank profile: attribute(price), fieldMatch(title).completeness, popularity.
_RANK_FEATURE = r"[A-Za-z_]\w*(\([^()]*\))?(\.[\w.]+)?"
_MOST = float(np.finfo(np.float64).max)


def _vespa(ranker: Ranker, names: Sequence[str], name: str) -> Files:
    trees = only_trees(ranker._engine_model(names), "Vespa's reader of LightGBM models").trees
    dumped = {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "max_feature_idx": len(names) - 1,
        "objective": "regression",
        "feature_names": list(names),
        "feature_infos": {},
        "tree_info": [
            {"tree_index": number, "num_cat": 0, "tree_structure": _root(tree)} for number, tree in enumerate(trees)
        ],
        "pandas_categorical": [],
    }
    return {".json": json.dumps(dumped), ".sd": _profile(name, names, f"lightgbm('{name}.json')")}


def _root(tree: Tree) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        thresholds = np.minimum(np.nextafter(tree.threshold, np.inf), _MOST).tolist()

    def split(node: int, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {
            "split_index": node,
            "split_feature": int(tree.feature[node]),
            "threshold": thresholds[node],
            "decision_type": "<=",
            "default_left": bool(tree.missing_left[node]),
            "missing_type": "NaN",
            "left_child": left,
            "right_child": right,
        }

    return tree.nested(split, lambda node, value: {"leaf_index": node - len(tree.feature), "leaf_value": value})


def _vespa_onnx(ranker: Ranker, names: Sequence[str], name: str) -> Files:
    from rankpolicy.rankers.exporting.export import onnx_content

    if ranker._reads_texts or ranker._needs_queries:
        what = "texts" if ranker._reads_texts else "all items of a query"
        raise trees_needed(f"Vespa scores each document by its features; this {type(ranker).__name__} reads {what}")
    values = ", ".join(names)
    model = f"""    onnx-model {_word(name)} {{
        file: models/{name}.onnx
        input "features": features
        output "scores": scores
    }}
    function features() {{
        expression: tensor<float>(row[1],feature[{len(names)}]):[[{values}]]
    }}
"""
    profile = _profile(name, names, f"sum(onnx({_word(name)}).scores)", model)
    return {".onnx": onnx_content(ranker), ".sd": profile}


def _profile(name: str, names: Sequence[str], expression: str, model: str = "") -> str:
    """A rank profile for the schema; a feature with a plain name is a function, at first the attribute of that name."""
    functions = "".join(
        f"    function {feature}() {{\n        expression: attribute({feature})\n    }}\n"
        for feature in names
        if "(" not in feature and "." not in feature
    )
    return f"""# In the schema, after the document. {name} belongs into the folder models of the application.
rank-profile {_word(name)} inherits default {{
{functions}{model}    first-phase {{
        expression: {expression}
    }}
}}
"""


def _word(name: str) -> str:
    """A name of a model as an identifier."""
    return "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in f"model_{name}"[6 * name[:1].isalpha() :]
    )


_NAMES = {
    "feature_name": _RANK_FEATURE,
    "names_in_words": "that are rank features or functions, such as attribute(price) or price",
}
VESPA = EngineFormat(engine="Vespa", write=_vespa, **_NAMES)
VESPA_ONNX = EngineFormat(engine="Vespa", write=_vespa_onnx, suffix=".onnx", **_NAMES)
