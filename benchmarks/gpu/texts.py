"""Epochs of text networks on a CUDA device, for `python -m benchmarks.gpu`: those of the tables 4 and 2 of BanditRank's reproduction.

The texts are random words, as many and as long as in WikiQA (873 questions, 8,700 answers of about 21 words) and in InsuranceQA (12,889
questions with 10 answers of about 90 words each, some of which are timed). The language model has the shape of MiniLM and random weights.

Measured on an H200 and left out, because steps got slower: products in bfloat16 (BiLSTM 68 ms in place of 61, MCAN 29 in place of 24,
MiniLM 236 in place of 68, where attention in bfloat16 seems to be planned anew for every length) and ``torch.compile`` for shapes that
change (compiling had not ended after a minute).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.gpu.training import seconds_per_epoch
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.metrics import parse_metric
from rankpolicy.models.average import Average
from rankpolicy.models.bilstm import BiLSTMNetwork
from rankpolicy.models.encoder import FineTunedEncoder
from rankpolicy.models.mcan import MCANNetwork
from rankpolicy.objectives import Hybrid
from rankpolicy.training import NetworkFit, TrainingSettings, device_texts

EPOCHS = 3
NUM_WIKI = 873
NUM_WORDS, NUM_PIECES = 20_000, 30_522
NUM_INSURANCE, NUM_TIMED = 12_889, 640


def lengths(generator: np.random.Generator, count: int, *, median: float, spread: float, most: int) -> Any:
    """Numbers of words, log-normal."""
    return np.clip(generator.lognormal(np.log(median), spread, count).round(), 1, most).astype(np.int64)


def table_of(sizes: Any, *, num_words: int, seed: int) -> TokenTable:
    tokens = torch.randint(
        1, num_words, (int(sizes.sum()),), generator=torch.Generator("cuda").manual_seed(seed), device="cuda"
    )
    return TokenTable.end_to_end(tokens, sizes.tolist()).to("cuda")


def pairs_of(sizes: Any, queries: TokenTable | None, items: TokenTable) -> RaggedTensors:
    """One pair per item, one relevant item per query."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    labels = torch.zeros(int(offsets[-1]), device="cuda")
    labels[torch.from_numpy(offsets[:-1]).cuda()] = 1.0
    of_query = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).cuda()
    return RaggedTensors(TextPairs(queries, items, of_query, torch.arange(len(labels), device="cuda")), labels, offsets)


def like_wikiqa(*, pieces_per_word: float = 1.0, num_words: int = NUM_WORDS) -> RaggedTensors:
    generator = np.random.default_rng(0)
    sizes = lengths(generator, NUM_WIKI, median=8, spread=0.65, most=30)
    of_queries = lengths(generator, NUM_WIKI, median=6 * pieces_per_word, spread=0.3, most=128)
    of_items = lengths(generator, int(sizes.sum()), median=20 * pieces_per_word, spread=0.55, most=128)
    queries, items = (table_of(own, num_words=num_words, seed=seed) for seed, own in enumerate((of_queries, of_items)))
    return pairs_of(sizes, queries, items)


def like_insuranceqa() -> RaggedTensors:
    generator = np.random.default_rng(0)
    sizes = np.full(NUM_TIMED, 10)
    of_queries = lengths(generator, NUM_TIMED, median=7, spread=0.3, most=30)
    of_items = lengths(generator, 10 * NUM_TIMED, median=90, spread=0.6, most=100)
    queries, items = (table_of(own, num_words=NUM_WORDS, seed=seed) for seed, own in enumerate((of_queries, of_items)))
    return pairs_of(sizes, queries, items)


def features_like_wikiqa() -> RaggedTensors:
    """Token features of a frozen language model that has read question and answer together: four layers of 384."""
    texts = like_wikiqa(pieces_per_word=1.3)
    items = texts.features.items  # type: ignore[union-attr]
    generator = torch.Generator("cuda").manual_seed(0)
    features = torch.randn(len(items.tokens), 4 * 384, generator=generator, device="cuda", dtype=torch.float16)
    sizes = np.diff(texts.offsets)
    return pairs_of(sizes, None, TokenTable(features, items.starts, items.lengths))


def mcan(size: int, *, dropout: float) -> MCANNetwork:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(NUM_WORDS, size, generator=generator)
    return MCANNetwork(vectors, recurrent=100, hidden=(200, 200), dropout=dropout, generator=generator)


def fine_tuned() -> FineTunedEncoder:
    import transformers

    config = transformers.BertConfig(
        vocab_size=NUM_PIECES,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        max_position_embeddings=512,
    )
    torch.manual_seed(0)
    return FineTunedEncoder(transformers.BertModel(config, add_pooling_layer=False), 384, encoding="apart")


def bilstm() -> BiLSTMNetwork:
    generator = torch.Generator().manual_seed(0)
    return BiLSTMNetwork(4 * 384, recurrent=384, hidden=(256,), dropout=0.4, reads_together=True, generator=generator)


def new_fit(train: RaggedTensors, network: nn.Module, *, batch_queries: int, **of_objective: Any) -> NetworkFit:
    return NetworkFit(
        network=Average([network]).to("cuda"),
        train=train,
        objective=Hybrid(reward=parse_metric("mean(ap, rr)"), gamma=0.75, **of_objective),
        settings=TrainingSettings(epochs=EPOCHS, batch_queries=batch_queries, learning_rate=1e-4),
        generator=torch.Generator("cuda").manual_seed(0),
    )


def only(train: RaggedTensors, num_queries: int) -> RaggedTensors:
    """The first queries."""
    offsets = train.offsets[: num_queries + 1]
    return replace(train, offsets=offsets, labels=train.labels[: offsets[-1]])


def fits() -> Iterator[tuple[str, int, NetworkFit]]:
    """Name, how many queries there are, and the fit, which has a part of them."""
    lists: dict[str, Any] = {"num_samples": 20, "max_positions": 5}
    questions = like_wikiqa()
    yield (
        "table 4, MCAN",
        NUM_WIKI,
        new_fit(questions, mcan(50, dropout=0.3), batch_queries=16, num_samples=20, max_positions=3),
    )
    pieces = only(like_wikiqa(pieces_per_word=1.3, num_words=NUM_PIECES), 320)
    yield "table 4, MiniLM fine-tuned", NUM_WIKI, new_fit(pieces, fine_tuned(), batch_queries=8, **lists)
    features = only(features_like_wikiqa(), 160)
    yield "table 4, BiLSTM", NUM_WIKI, new_fit(features, bilstm(), batch_queries=4, **lists)
    whole: dict[str, Any] = {"num_samples": 100, "max_positions": 20, "control": "leave_one_out"}
    yield "table 2, MCAN", NUM_INSURANCE, new_fit(like_insuranceqa(), mcan(100, dropout=0.2), batch_queries=16, **whole)


@contextmanager
def without_graphs() -> Iterator[None]:
    """Batches of the host, operation by operation."""
    serve = vars(device_texts.DeviceTexts)["serve"]
    device_texts.DeviceTexts.serve = staticmethod(lambda *_: False)  # type: ignore[method-assign]
    try:
        yield
    finally:
        device_texts.DeviceTexts.serve = serve  # type: ignore[method-assign]


def rows() -> Iterator[dict[str, Any]]:
    for name, num_queries, fit in fits():
        timed = len(fit.train.offsets) - 1
        num_steps = -(-timed // fit.settings.batch_queries)
        seconds, first, reward = seconds_per_epoch([replace(fit)])
        row = {
            "name": f"{name}: epoch",
            "epoch_s": round(seconds * num_queries / timed, 3),
            "step_ms": round(1000 * seconds / num_steps, 2),
            "until_first_epoch_s": round(first, 2),
            "reward": round(reward, 4),
            "measured": f"on {timed} of {num_queries} questions",
        }
        if device_texts.DeviceTexts.serve(fit.network, fit.train.features):
            with without_graphs():
                eager, _, _ = seconds_per_epoch([replace(fit)])
            row["step_ms_without_graphs"] = round(1000 * eager / num_steps, 2)
        yield row
