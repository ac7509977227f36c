"""rankpolicy export

Scaling is included: the input is the features as they are in the data, NaN where one is missing, and the output is scores. If
onnxruntime is installed, the scores of the file are compared with the model's before it is written.

Parameters
----------
out
    The file to write; its name ends in .onnx.

Examples
--------
rankpolicy export model.rp --out model.onnx
rankpolicy export model.rp --out model.onnx --json
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
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Write a model as an ONNX file, which other programs and languages run without rankpolicy."""
    if out.suffix != ".onnx":
        raise RankPolicyError(f"--out must end in .onnx; got {out.name!r}.")
    check_can_write(out, option="--out", inputs={"the model": model})
    ranker = options.load_ranker(model)
    ranker.export_onnx(out)
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
