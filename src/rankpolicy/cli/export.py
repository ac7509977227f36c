"""rankpolicy export

Next to the file for an engine stands what it has to be told about the features, such as a feature set. AutoRanker, most networks and
fair policies become trees first: rankpolicy distil.

In an ONNX file scaling is included: the input is the features as they are in the data, NaN where one is missing, and the output is
scores. If onnxruntime is installed, the scores of the file are compared with the model's before it is written.

Parameters
----------
out
    The file of the model; its name ends in .json, or in .onnx for onnx and vespa-onnx.
format
    onnx; opensearch, opensearch-ranklib (the Learning to Rank plugin, also of Elasticsearch); elasticsearch, xgboost (a model file of
    XGBoost, which eland imports); vespa, vespa-onnx; solr.

Examples
--------
rankpolicy export model.rp --out model.onnx
rankpolicy export model.rp --out model.onnx --json
rankpolicy export trees.rp --format opensearch --out model.json
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import check_can_write, note, print_json, show
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import is_special


def export(
    model: options.Model,
    *,
    out: Path,
    format: str = "onnx",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Write a model as files that a search engine reads, or as an ONNX file, which other programs and languages run."""
    if format == "onnx" and out.suffix != ".onnx":
        raise RankPolicyError(f"--out must end in .onnx; got {out.name!r}.")
    check_can_write(out, option="--out", inputs={"the model": model})
    ranker = options.load_ranker(model)
    paths = ranker.export(out, format=format)
    if format != "onnx":
        written = [str(path) for path in paths]
        if as_json:
            print_json({"model": str(model), "method": ranker.name, "format": format, "files": written})
        else:
            show(f"{ranker.name} for {format}: {', '.join(written)}", soft_wrap=True)
        return
    is_checked = importlib.util.find_spec("onnxruntime") is not None
    described: dict[str, Any] = {"model": str(model), "method": ranker.name, "out": str(out), "checked": is_checked}
    if not is_special(out):  # a pipe cannot be read again
        described |= _interface(out)
    if as_json:
        print_json(described)
        return
    inputs = [f"{name} ({', '.join(map(str, shape))})" for name, shape in described.get("inputs", {}).items()]
    show(f"{', '.join([ranker.name, *inputs])}: {out}", soft_wrap=True)
    if not is_checked:
        note("The file was not compared with the model: pip install onnxruntime, then export again.")


def _interface(path: Path) -> dict[str, Any]:
    """Inputs and outputs of an ONNX file with the sizes of their axes; an axis of any size has a name."""
    import onnx

    graph = onnx.load(path).graph

    def shapes(values: Any) -> dict[str, list[int | str]]:
        return {
            value.name: [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
            for value in values
        }

    return {"inputs": shapes(graph.input), "outputs": shapes(graph.output)}
