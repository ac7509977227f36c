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
from rankpolicy.models.list_transformer import AttentionBlock, ListTransformerNetwork
from rankpolicy.models.mlp import MLPNetwork
from rankpolicy.models.user_network import OwnModule
from rankpolicy.rankers.exporting.graph import QUERY, Graph, require_onnx
from rankpolicy.types import RankPolicyError


def add_network(graph: Graph, features: str, network: nn.Module, *, num_columns: int) -> str:
    """Scores (row, 1) of scaled features (row, num_columns): the mean over networks."""
    members = list(network.members) if isinstance(network, Average) else [network]
    scores = [_add_member(graph, features, member, num_columns) for member in members]
    return scores[0] if len(scores) == 1 else graph.add("Mean", *scores)


def add_deviations(graph: Graph, features: str, *, num_columns: int) -> str:
    """Features (row, 2 * num_columns): scaled features, then the difference of each from its mean over the query."""
    query = graph.query()
    num_queries = graph.add("Add", graph.add("ReduceMax", query, keepdims=1), np.int64(1))
    column = graph.add("Unsqueeze", query, np.array([1]))
    rows = graph.add("Expand", column, graph.add("Shape", features))
    values = graph.cast(features, np.float64)
    zeros = graph.add("Expand", np.float64(0), graph.add("Concat", num_queries, np.array([num_columns]), axis=0))
    sums = graph.add("ScatterElements", zeros, rows, values, axis=0, reduction="add")
    ones = graph.add("Expand", np.float64(1), graph.add("Shape", column))
    none = graph.add("Expand", np.float64(0), graph.add("Concat", num_queries, np.array([1]), axis=0))
    sizes = graph.add("ScatterElements", none, column, ones, axis=0, reduction="add")
    means = graph.cast(graph.add("Gather", graph.add("Div", sums, sizes), query, axis=0), np.float32)
    return graph.add("Concat", features, graph.add("Sub", features, means), axis=1)


def _add_member(graph: Graph, features: str, network: nn.Module, num_columns: int) -> str:
    if isinstance(network, MLPNetwork) and all(
        type(part) in (nn.Linear, nn.ReLU, ByteDropout) for part in network.hidden
    ):
        return _linear(graph, _sequence(graph, features, network.hidden), network.output)
    if isinstance(network, HighwayNetwork):
        first = graph.add("Relu", _linear(graph, features, network.projection))
        return _linear(graph, _sequence(graph, first, network.layers), network.output)
    if isinstance(network, ListTransformerNetwork):
        return _list_transformer(graph, features, network)
    return _traced(graph, features, network, num_columns)


def _list_transformer(graph: Graph, features: str, network: ListTransformerNetwork) -> str:
    items = _linear(graph, features, network.projection)
    column, row = graph.add("Unsqueeze", graph.query(), np.array([1])), graph.add("Unsqueeze", QUERY, np.array([0]))
    # All rows attend to all, with a weight of 0 for those of other queries.
    hidden = graph.add("Where", graph.add("Equal", column, row), np.float32(0), np.float32(-np.inf))
    for block in network.blocks:
        assert isinstance(block, AttentionBlock)
        width, heads = block.heads_output.in_features, block.num_heads
        projected = _linear(graph, _layer_norm(graph, items, block.attention_norm), block.query_key_value)
        by_head = graph.add("Reshape", projected, np.array([-1, 3, heads, width // heads]))
        query, key, value = (
            graph.add("Gather", graph.add("Transpose", by_head, perm=[1, 2, 0, 3]), np.int64(part), axis=0)
            for part in range(3)
        )  # each (head, row, width of a head)
        products = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 2, 1]))
        scaled = graph.add("Mul", products, np.float32((width // heads) ** -0.5))
        weights = graph.add("Softmax", graph.add("Add", scaled, hidden), axis=-1)
        attended = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[1, 0, 2])
        attended = graph.add("Reshape", attended, np.array([-1, width]))
        items = graph.add("Add", items, _linear(graph, attended, block.heads_output))
        wide = graph.add("Relu", _linear(graph, _layer_norm(graph, items, block.norm), block.wide))
        items = graph.add("Add", items, _linear(graph, wide, block.narrow))
    return _linear(graph, _layer_norm(graph, items, network.norm), network.output)


def _layer_norm(graph: Graph, values: str, norm: nn.LayerNorm) -> str:
    return graph.add(
        "LayerNormalization", values, _array(norm.weight), _array(norm.bias), axis=-1, epsilon=float(norm.eps)
    )


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
