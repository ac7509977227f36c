"""Search engines as their documentation and parsers describe them: each reads the files of an export and scores rows (row, feature).

OpenSearch, Elasticsearch, Solr and Vespa are archives outside the registries of packages, so their grammar stands here a second time.
"""

import json
import xml.etree.ElementTree as ET

import numpy as np

FLOAT = np.float32


def plugin(model, features, rows):
    """The Learning to Rank plugin: a model is read together with the feature set it belongs to."""
    names = [feature["name"] for feature in features["featureset"]["features"]]
    model = model["model"]["model"]
    definition = model["definition"]
    if model["type"] == "model/linear":
        weights = json.loads(definition)
        missing = [
            f["template"]["function_score"]["field_value_factor"]["missing"] for f in features["featureset"]["features"]
        ]
        rows = np.where(np.isnan(rows), np.array(missing), rows)
        return rows @ np.array([weights[name] for name in names])
    if model["type"] == "model/ranklib":
        return ranklib(definition, rows)
    assert model["type"] == "model/xgboost+json"
    trees = json.loads(definition)
    assert isinstance(trees, list)
    assert trees
    return np.array([sum((_dumped(tree, names, row) for tree in trees), FLOAT(0)) for row in rows.astype(FLOAT)])


def _dumped(node, names, row):
    while "leaf" not in node:
        assert set(node) == {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
        left, right = node["children"]
        assert (node["yes"], node["no"]) == (left["nodeid"], right["nodeid"])
        value = row[names.index(node["split"])]
        goes_left = node["missing"] == node["yes"] if np.isnan(value) else FLOAT(node["split_condition"]) > value
        node = left if goes_left else right
    return FLOAT(node["leaf"])


def ranklib(text, rows):
    """RankLib: the first line names the ranker, lines with # are left out, features are counted from 1, a missing value is 0."""
    assert text.startswith("## LambdaMART\n")
    assert text.endswith("</ensemble>\n")
    ensemble = ET.fromstring("".join(line for line in text.splitlines() if not line.startswith("#")))
    rows = np.nan_to_num(rows.astype(FLOAT))

    def value(split, row):
        while split.find("output") is None:
            feature, threshold, left, right = split
            assert (left.get("pos"), right.get("pos")) == ("left", "right")
            split = left if row[int(feature.text) - 1] <= FLOAT(threshold.text) else right
        return FLOAT(split.find("output").text)

    return np.array([sum(FLOAT(tree.get("weight")) * value(tree[0], row) for tree in ensemble) for row in rows])


def solr(model, store, rows):
    """Solr: features come from the store with their default values and are normalized; numbers of trees are texts."""
    names = [feature["name"] for feature in model["features"]]
    defaults = {feature["name"]: FLOAT(feature["params"]["defaultValue"]) for feature in store}
    rows = np.where(np.isnan(rows), np.array([defaults[name] for name in names]), rows).astype(FLOAT)
    for column, feature in enumerate(model["features"]):
        if "norm" in feature:
            assert feature["norm"]["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
            params = feature["norm"]["params"]
            rows[:, column] = (rows[:, column] - FLOAT(params["avg"])) / FLOAT(params["std"])
    params, kind = model["params"], model["class"].removeprefix("org.apache.solr.ltr.model.")
    if kind == "LinearModel":
        return rows @ np.array([params["weights"][name] for name in names], FLOAT)
    if kind == "NeuralNetworkModel":
        for layer in params["layers"]:
            rows = rows @ np.array(layer["matrix"], FLOAT).T + np.array(layer["bias"], FLOAT)
            rows = {"relu": lambda x: np.maximum(x, 0), "identity": lambda x: x}[layer["activation"]](rows)
        return rows[:, 0]
    assert kind == "MultipleAdditiveTreesModel"
    if params.get("isNullSameAsZero", True):
        assert not np.isnan(rows).any()
    trees = params["trees"]
    return np.array(
        [sum(FLOAT(tree["weight"]) * _solr_leaf(tree["root"], names, row) for tree in trees) for row in rows]
    )


def _solr_leaf(node, names, row):
    while "value" not in node:
        value, threshold = row[names.index(node["feature"])], FLOAT(node["threshold"]) + FLOAT(1e-6)
        goes_left = node["missing"] == "left" if np.isnan(value) else value <= threshold
        node = node["left" if goes_left else "right"]
    return FLOAT(node["value"])


def vespa(dumped, rows):
    """Vespa's reader of LightGBM models: < in float64, !(>=) where a missing value goes left."""
    assert dumped["objective"] == "regression"
    assert dumped["pandas_categorical"] == []
    assert len(dumped["feature_names"]) == rows.shape[1]

    def leaf(node, row):
        while "leaf_value" not in node:
            assert node["decision_type"] == "<="
            value, threshold = row[node["split_feature"]], float(node["threshold"])
            goes_left = not value >= threshold if node["default_left"] else value < threshold
            node = node["left_child" if goes_left else "right_child"]
        return node["leaf_value"]

    return np.array(
        [sum(leaf(tree["tree_structure"], row) for tree in dumped["tree_info"]) for row in rows.astype(float)]
    )


def elasticsearch(ensemble, rows):
    """Elasticsearch's inference: nodes with lt, and a direction for missing values."""

    def leaf(nodes, row):
        node = nodes[0]
        while "leaf_value" not in node:
            assert node["decision_type"] == "lt"
            value = row[node["split_feature"]]
            goes_left = node["default_left"] if np.isnan(value) else value < FLOAT(node["threshold"])
            node = nodes[node["left_child" if goes_left else "right_child"]]
        return np.ravel(node["leaf_value"])[0]

    trees = [model["tree"]["tree_structure"] for model in ensemble["trained_models"]]
    trees = [{node["node_index"]: node for node in tree} for tree in trees]
    return np.array([sum(leaf(tree, row) for tree in trees) for row in rows.astype(FLOAT)])
