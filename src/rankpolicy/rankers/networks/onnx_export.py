"""Networks of texts and side information as ONNX files, which run without torch."""

from __future__ import annotations

import copy
import importlib.util
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankpolicy.data.padding import Padding
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.files import atomic_write
from rankpolicy.models.average import Average
from rankpolicy.models.matches import PairTokens
from rankpolicy.models.text_and_side import TextAndSide
from rankpolicy.types import MissingDependencyError, RankPolicyError

# The axes of every input; the last axis of numbers and categories is as wide as the network was built for.
AXES: dict[str, tuple[str, ...]] = {
    "query_tokens": ("query", "query_token"),
    "item_tokens": ("query", "item", "item_token"),
    "numbers": ("query", "item"),
    "categories": ("query", "item"),
    "mask": ("query", "item"),
}
OUTPUT = "scores"
TOLERANCE = 1e-5  # allowed difference, absolute or relative, between the scores of the file and of torch
# Sizes of query, item, query_token, item_token. The first sizes are traced, where no two axes may be equal or 1.
CHECKED_SIZES = ((2, 3, 4, 5), (1, 1, 1, 1), (3, 7, 2, 9))


class PaddedScores(nn.Module):
    """The mean score of copies of ``networks`` for padded inputs; token 0 is padding, and items where the mask is False score -inf."""

    def __init__(self, networks: Sequence[TextAndSide]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(copy.deepcopy(network).cpu().eval() for network in networks)

    def forward(
        self,
        query_tokens: Tensor,  # (query, query token)
        item_tokens: Tensor,  # (query, item, item token)
        numbers: Tensor,  # (query, item, number)
        categories: Tensor,  # (query, item, category)
        mask: Tensor,  # (query, item)
    ) -> Tensor:  # (query, item)
        scores = []
        for network in self.networks:
            assert isinstance(network, TextAndSide)
            item = _means(network.words, item_tokens)
            query = _means(network.words, query_tokens)[:, None].expand_as(item)
            of_items = query_tokens[:, None].expand(-1, item_tokens.shape[1], -1)
            tokens = (PairTokens(of_items, item_tokens, network.words),) if network.reads_tokens else ()
            scores.append(network.core(query, item, network.side_vectors(numbers, categories), *tokens))
        return torch.stack(scores).mean(0).masked_fill(~mask, -torch.inf)


def _means(words: nn.Module, tokens: Tensor) -> Tensor:
    """tokens (..., token) -> mean vectors (..., size)"""
    is_token = tokens != 0
    sums: Tensor = (words(tokens) * is_token[..., None]).sum(-2)
    return sums / is_token.sum(-1, keepdim=True).clamp(min=1)


def export_onnx(
    network: nn.Module, path: str | os.PathLike[str], *, facts: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write the network as an ONNX file with the inputs of ``AXES`` and the output scores (query, item); ``facts`` go into its metadata.

    If onnxruntime is installed, the scores of the file are compared with torch's before it is written.
    """
    networks = exportable_networks(network)
    content = _onnx_bytes(networks)
    if importlib.util.find_spec("onnxruntime") is not None:
        _check(content, networks)
    if facts:
        content = _with_facts(content, facts)
    try:
        with atomic_write(path) as file:
            file.write(content)
    except OSError as error:
        raise RankPolicyError(f"cannot write {path}: {error.strerror or error}. Choose a writable folder.") from None


def padded_inputs(pairs: TextPairs, padding: Padding) -> dict[str, NDArray[Any]]:
    """The inputs of the exported network, from pairs on the CPU and their place in the padded arrays."""
    assert pairs.queries is not None, "query and item were read together"
    padding, (num_queries, longest) = padding.to("cpu"), padding.mask.shape

    def padded(flat: Tensor) -> NDArray[Any]:
        cells = flat.new_zeros(num_queries * longest, *flat.shape[1:])
        cells[padding.cells] = flat
        return cells.view(num_queries, longest, *flat.shape[1:]).numpy()

    text_of_query = torch.zeros(num_queries, dtype=torch.int64)
    text_of_query[padding.cells // longest] = pairs.query_of_pair
    side = pairs.side
    return {
        "query_tokens": _at_least_one_token(pairs.queries.padded(text_of_query)[0]).numpy(),
        "item_tokens": padded(_at_least_one_token(pairs.items.padded(pairs.item_of_pair)[0])),
        "numbers": padded(torch.zeros(len(pairs), 0) if side is None else side.numbers.float()),
        "categories": padded(torch.zeros(len(pairs), 0, dtype=torch.int64) if side is None else side.categories),
        "mask": padding.mask.numpy(),
    }


def _at_least_one_token(tokens: Tensor) -> Tensor:
    # onnxruntime does not sum over an axis of length 0.
    return tokens if tokens.shape[-1] else tokens.new_zeros(*tokens.shape[:-1], 1)


def exportable_networks(network: nn.Module) -> list[TextAndSide]:
    """The members of an average of networks of texts and side information."""
    members = list(network.members) if isinstance(network, Average) else [network]
    networks = [member for member in members if isinstance(member, TextAndSide)]
    if len(networks) != len(members):
        raise RankPolicyError(
            "ONNX export is for rankers of features and for networks of texts and side information, such as those of MatchingCross; "
            f"this ranker's network is {type(members[0]).__name__}. Use save(path), which every ranker has."
        )
    return networks


def _onnx_bytes(networks: Sequence[TextAndSide]) -> bytes:
    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(f"ONNX export needs {package}: pip install 'rankpolicy[onnx]'")
    with quiet_exporter():
        program = torch.onnx.export(
            PaddedScores(networks).eval(),
            tuple(_random_inputs(networks[0], CHECKED_SIZES[0]).values()),
            input_names=list(AXES),
            output_names=[OUTPUT],
            dynamic_shapes=[dict(enumerate(axes)) for axes in AXES.values()],
            dynamo=True,
            verbose=False,
        )
    assert program is not None, "the program is returned where no file is named"
    return bytes(program.model_proto.SerializeToString())


def _with_facts(content: bytes, facts: Mapping[str, str]) -> bytes:
    import onnx.helper

    model = onnx.load_from_string(content)
    onnx.helper.set_model_props(model, dict(facts))
    return bytes(model.SerializeToString())


def _check(content: bytes, networks: Sequence[TextAndSide]) -> None:
    import onnxruntime

    scored = PaddedScores(networks)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for sizes in CHECKED_SIZES:
        inputs = _random_inputs(networks[0], sizes)
        (theirs,) = session.run([OUTPUT], {name: values.numpy() for name, values in inputs.items()})
        with torch.no_grad():
            ours = scored(*inputs.values()).numpy()
        if not np.allclose(theirs, ours, rtol=TOLERANCE, atol=TOLERANCE):
            raise RankPolicyError(
                f"the exported scores must be torch's within {TOLERANCE:g}; for the sizes {sizes} they are not, and no file is "
                "written. Try other versions of onnxscript and onnxruntime."
            )


def _random_inputs(network: TextAndSide, sizes: tuple[int, int, int, int]) -> dict[str, Tensor]:
    """Inputs of these numbers of queries, items, tokens of a query and of an item."""
    queries, items, query_tokens, item_tokens = sizes
    generator = torch.Generator().manual_seed(0)

    def codes(count: int, *shape: int) -> Tensor:
        return torch.randint(0, count, shape, generator=generator)

    columns = [codes(count, queries, items) for count in network.num_categories]
    mask = torch.rand(queries, items, generator=generator) < 0.8
    mask[:, 0] = True
    return {
        "query_tokens": codes(network.words.num_embeddings, queries, query_tokens),
        "item_tokens": codes(network.words.num_embeddings, queries, items, item_tokens),
        "numbers": torch.randn(queries, items, network.num_numbers, generator=generator),
        "categories": torch.stack(columns, -1) if columns else codes(1, queries, items, 0),
        "mask": mask,
    }


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Silence the exporter's notes about packages that are not needed here."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
