"""Networks over scaled features in an ONNX graph; their own layers node by node, a user's module as torch exports it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankpolicy.models.average import Average
from rankpolicy.models.highway import HighwayLayer, HighwayNetwork
from rankpolicy.models.layers import ByteDropout
from rankpolicy.models.linear import LinearNetwork
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.own import OwnModule
from rankpolicy.rankers.exporting.graph import Graph, require_onnx
from rankpolicy.types import RankPolicyError


def add_network(graph: Graph, features: str, network: nn.Module, *, num_columns: int) -> str:
    """Scores (row, 1) of scaled features (row, num_columns): the mean over networks."""
    members = list(network.members) if isinstance(network, Average) else [network]
    scores = [_add_member(graph, features, member, num_columns) for member in members]
    return scores[0] if len(scores) == 1 else graph.add("Mean", *scores)


def _add_member(graph: Graph, features: str, network: nn.Module, num_columns: int) -> str:
    if isinstance(network, LinearNetwork):
        return _linear(graph, features, network.output)
    if isinstance(network, MLPNetwork) and all(
        type(part) in (nn.Linear, nn.ReLU, ByteDropout) for part in network.hidden
    ):
        return _linear(graph, _sequence(graph, features, network.hidden), network.output)
    if isinstance(network, HighwayNetwork):
        first = graph.add("Relu", _linear(graph, features, network.projection))
        return _linear(graph, _sequence(graph, first, network.layers), network.output)
    return _traced(graph, features, network, num_columns)


def _sequence(graph: Graph, values: str, parts: Iterable[nn.Module]) -> str:
    for part in parts:
        if isinstance(part, nn.Linear):
            values = _linear(graph, values, part)
        elif isinstance(part, nn.ReLU):
            values = graph.add("Relu", values)
        elif isinstance(part, HighwayLayer):
            values = _highway(graph, values, part)
        else:
            assert isinstance(part, ByteDropout), "which changes nothing outside training"
    return values


def _linear(graph: Graph, values: str, layer: nn.Linear) -> str:
    return graph.add("Gemm", values, _array(layer.weight), _array(layer.bias), transB=1)


def _highway(graph: Graph, values: str, layer: HighwayLayer) -> str:
    gate = graph.add("Sigmoid", _linear(graph, values, layer.gate))
    changed = graph.add("Mul", gate, graph.add("Relu", _linear(graph, values, layer.transform)))
    carried = graph.add("Mul", graph.add("Sub", np.float32(1), gate), values)
    return graph.add("Add", changed, carried)


def _array(weight: Tensor) -> Any:
    return weight.detach().cpu().float().numpy()


def _traced(graph: Graph, features: str, network: nn.Module, num_columns: int) -> str:
    """Scores (row, 1) of a user's module, by torch's exporter."""
    require_onnx("onnxscript")
    from rankpolicy.rankers.networks.onnx_export import quiet_exporter

    module = copy.deepcopy(network.module if isinstance(network, OwnModule) else network).cpu().eval()
    try:
        with quiet_exporter():
            program = torch.onnx.export(
                module,
                (torch.zeros(3, num_columns),),
                input_names=["rows"],
                output_names=["scores"],
                dynamic_shapes=[{0: "row"}],
                dynamo=True,
                verbose=False,
                opset_version=graph.opsets[""],
            )
    except Exception as error:  # torch raises many kinds
        raise RankPolicyError(
            f"torch cannot export this network, {type(module).__name__}, to ONNX: {str(error).strip().splitlines()[0]:.200}. "
            "Use save(path), or operations that torch.onnx.export knows."
        ) from None
    assert program is not None, "the program is returned where no file is named"
    return graph.add("Reshape", graph.include(program.model_proto, features), np.array([-1, 1]))
