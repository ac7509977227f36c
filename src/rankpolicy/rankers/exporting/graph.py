"""An ONNX graph while it is built: nodes, constants, and the feature values at which rounding could change a score."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import MissingDependencyError

if TYPE_CHECKING:
    import onnx

FEATURES, QUERY, SCORES = "features", "query", "scores"
OPSETS = {"": 18, "ai.onnx.ml": 3}
_IR_VERSION = (
    8  # of the ONNX release that introduced these operator sets; newer files would be refused by older runtimes
)


class Graph:
    """Nodes from the input ``features`` (row, feature), float32, to the output ``scores`` (row,), float32."""

    def __init__(self, num_features: int) -> None:
        require_onnx()
        self.num_features = num_features
        self.features = FEATURES  # what scores are computed from: the input, or some of its columns
        self.nodes: list[Any] = []
        self.functions: list[Any] = []
        self.opsets = {"": OPSETS[""]}
        self.reads_queries = False
        # Of each feature, values where its score may jump: thresholds, knots. The finished file is checked there.
        self.edges: dict[int, list[NDArray[np.floating[Any]]]] = defaultdict(list)
        self._constants: list[Any] = []

    def constant(self, values: Any) -> str:
        """The name of an array of fixed numbers."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(_onnx().numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, operator: str, *inputs: Any, output: str | None = None, domain: str = "", **attributes: Any) -> str:
        """The output of a new node; an input is a name in the graph or an array of fixed numbers."""
        self.opsets.setdefault(domain, OPSETS[domain])
        names = [given if isinstance(given, str) else self.constant(given) for given in inputs]
        made = output or f"value_{len(self.nodes)}"
        self.nodes.append(_onnx().helper.make_node(operator, names, [made], domain=domain, **attributes))
        return made

    def cast(self, values: str, kind: type[np.generic]) -> str:
        """Values as another kind of number, such as ``np.float64``."""
        return self.add("Cast", values, to=_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def columns(self, values: str, places: NDArray[np.int64]) -> str:
        """Some columns of a matrix (row, column)."""
        return self.add("Gather", values, np.asarray(places, np.int64), axis=1)

    @contextmanager
    def reading(self, columns: NDArray[np.int64] | None) -> Iterator[None]:
        """Within it, features are these columns of the input, numbered from 0; None: all."""
        if columns is None:
            yield
            return
        outside = self.features, self.num_features, self.edges
        self.features, self.num_features = self.columns(self.features, columns), len(columns)
        self.edges = defaultdict(list)
        try:
            yield
        finally:
            found = self.edges
            self.features, self.num_features, self.edges = outside
            for feature, values in found.items():
                self.edges[int(columns[feature])] += values

    def query(self) -> str:
        """The input ``query`` (row,), int64: which rows belong to one query."""
        self.reads_queries = True
        return QUERY

    def include(self, model: onnx.ModelProto, features: str) -> str:
        """The only output of a model whose only input is ``features``; its nodes become part of this graph."""
        import onnx.compose

        prefix = f"part_{len(self.nodes)}_"
        model = onnx.compose.add_prefix(model, prefix)
        for opset in model.opset_import:
            self.opsets[opset.domain] = max(opset.version, self.opsets.get(opset.domain, 0))
        self.add("Identity", features, output=model.graph.input[0].name)
        self.nodes += model.graph.node
        self.functions += model.functions
        self._constants += model.graph.initializer
        return str(model.graph.output[0].name)

    def model(self, scores: str, facts: dict[str, str]) -> onnx.ModelProto:
        """The finished model; ``scores`` may be a column (row, 1) and of any kind of number, ``facts`` go into its metadata."""
        helper, kinds = _onnx().helper, _onnx().TensorProto
        self.add("Reshape", self.cast(scores, np.float32), np.array([-1]), output=SCORES)
        inputs = [helper.make_tensor_value_info(FEATURES, kinds.FLOAT, ["row", self.num_features])]
        if self.reads_queries:
            inputs.append(helper.make_tensor_value_info(QUERY, kinds.INT64, ["row"]))
        outputs = [helper.make_tensor_value_info(SCORES, kinds.FLOAT, ["row"])]
        graph = helper.make_graph(self.nodes, "ranker", inputs, outputs, initializer=self._constants)
        model: onnx.ModelProto = helper.make_model(
            graph,
            functions=self.functions,
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in self.opsets.items()],
            ir_version=_IR_VERSION,
            producer_name="rankpolicy",
            producer_version=facts["rankpolicy_version"],
        )
        helper.set_model_props(model, facts)
        return model


def require_onnx(*packages: str) -> None:
    """Refuse to go on where a package that ONNX export needs is missing."""
    for package in ("onnx", *packages):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(f"ONNX export needs {package}: pip install 'rankpolicy[onnx]'")


def _onnx() -> Any:
    import onnx.helper
    import onnx.numpy_helper

    return onnx
