"""One call from a fitted ranker to an ONNX file: build, compare with the ranker, write."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.arrays import from_arrays
from rankpolicy.files import atomic_write
from rankpolicy.rankers.exporting.graph import FEATURES, QUERY, SCORES, Graph
from rankpolicy.types import RankPolicyError
from rankpolicy.version import __version__
from rankpolicy.writing import checked_target

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

TOLERANCE = 1e-5  # allowed difference from the ranker's scores: absolute, or relative to the largest of them
_NUM_ROWS, _ROWS_PER_QUERY = 1000, 10


def export_features_ranker(ranker: Ranker, path: str | Path) -> None:
    """Write a ranker of features as an ONNX file."""
    checked_target(path)
    content = onnx_content(ranker)
    with atomic_write(path) as file:
        file.write(content)


def onnx_content(ranker: Ranker) -> bytes:
    """The ONNX file of a ranker of features; if onnxruntime is installed, its scores are compared with the ranker's."""
    graph = Graph(ranker.num_features_)
    model = graph.model(ranker._onnx_scores(graph), file_facts(ranker))
    content = model.SerializeToString()
    if importlib.util.find_spec("onnxruntime") is not None:
        check_scores(content, ranker, graph)
    return content


def file_facts(ranker: Ranker) -> dict[str, str]:
    """What the metadata of the file says about the ranker; lists and dicts are JSON."""
    facts: dict[str, Any] = {"rankpolicy_version": __version__, "method": ranker.name}
    if ranker.feature_names_ is not None:
        facts["feature_names"] = json.dumps(ranker.feature_names_, ensure_ascii=False)
    if ranker.categories_:
        facts["categories"] = json.dumps(ranker.categories_, ensure_ascii=False)
    return facts


def check_scores(content: bytes, ranker: Ranker, graph: Graph) -> None:
    """Refuse a file whose scores differ from the ranker's on random rows, some values missing, many of them at edges."""
    import onnxruntime

    rows = _rows_to_check(ranker, graph)
    query = np.arange(len(rows)) // _ROWS_PER_QUERY
    inputs = {FEATURES: rows, QUERY: query} if graph.reads_queries else {FEATURES: rows}
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (exported,) = session.run([SCORES], inputs)
    dataset = from_arrays(rows, qid=query, feature_names=ranker.feature_names_)
    if ranker.categories_:
        dataset = replace(dataset, categories={name: tuple(names) for name, names in ranker.categories_.items()})
    expected = ranker.predict(dataset)
    difference = np.abs(exported - expected)
    if not (difference <= TOLERANCE * max(1.0, float(np.abs(expected).max()))).all():
        raise RankPolicyError(
            f"the exported scores must be the ranker's within {TOLERANCE:g}; they differ by up to {difference.max():.3g}, and no file is "
            "written. Try other versions of onnx and onnxruntime, or use save(path)."
        )


def _rows_to_check(ranker: Ranker, graph: Graph) -> NDArray[np.float32]:
    """Rows (row, feature): normal values, values at and beside edges, zeros, missing values; categories where a feature has them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(_NUM_ROWS, graph.num_features)).astype(np.float32)
    names = ranker.feature_names_ or []
    for feature in range(graph.num_features):
        if ranker.categories_ and names[feature] in ranker.categories_:
            rows[:, feature] = rng.integers(0, max(1, len(ranker.categories_[names[feature]])), _NUM_ROWS)
            continue
        edges = [np.zeros(1, np.float32), *graph.edges.get(feature, [])]
        with np.errstate(over="ignore"):
            at = np.concatenate(edges).astype(np.float32)
        at = at[np.isfinite(at)]
        other_inputs = np.concatenate([at, np.nextafter(at, np.float32(-np.inf)), np.nextafter(at, np.float32(np.inf))])
        chosen = rng.random(_NUM_ROWS) < 0.7
        rows[chosen, feature] = rng.choice(other_inputs[np.isfinite(other_inputs)], chosen.sum())
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows
