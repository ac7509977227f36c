"""Token features of a pretrained language model, computed once and cached in a folder."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from rankpolicy.data.texts.pretrained import PretrainedEncoder
from rankpolicy.data.texts.text_pairs import TokenTable
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write

Text = str | tuple[str, str]  # a text, or two that are read together
_TEXTS_PER_FILE = 1024


class TextFeatures:
    """The last layers of a language model, concatenated, for every token of a text, in half precision.

    Parameters
    ----------
    encoder
        The language model, or its folder.
    num_layers
        Number of layers to concatenate, counted from the last.
    max_tokens
        Tokens to read per text at most.
    cache
        A folder in which the features of every text are kept, so that each is computed once and an interrupted run can continue; it has a
        subfolder for each model and setting. None: no cache.
    device
        Where the model runs.
    progress
        Show a progress bar on stderr; None: when it is a terminal.
    """

    def __init__(
        self,
        encoder: PretrainedEncoder | str | os.PathLike[str],
        *,
        num_layers: int = 4,
        max_tokens: int = 200,
        cache: str | os.PathLike[str] | None = None,
        device: torch.device | str = "cpu",
        progress: bool | None = None,
    ) -> None:
        self.encoder = encoder if isinstance(encoder, PretrainedEncoder) else PretrainedEncoder.from_folder(encoder)
        self.num_layers = num_layers
        self.max_tokens = max_tokens
        self.device = torch.device(device)
        self.progress = progress
        name = f"{self.encoder.fingerprint[:16]}-{num_layers}-layers-{max_tokens}-tokens"
        self.cache = None if cache is None else Path(cache) / name

    @property
    def num_features(self) -> int:
        """Number of features of a token."""
        return self.num_layers * self.encoder.width

    def of(self, texts: Sequence[Text]) -> TokenTable:
        """The features of texts, in their order, on the CPU.

        Parameters
        ----------
        texts
            Texts, or pairs of texts that are read together.
        """
        keys = [_key(text) for text in texts]
        features_of = self._read_cache(set(keys))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in features_of}
        for computed in self._computed(missing):
            features_of |= computed
            if self.cache is not None:
                self._write_cache(computed)
        features = [features_of[key] for key in keys]
        return TokenTable.end_to_end(torch.cat(features), [len(feature_rows) for feature_rows in features])

    def _computed(self, texts: dict[str, Text]) -> Iterator[dict[str, Tensor]]:
        """Features by key, about a thousand texts at a time."""
        if not texts:
            return
        network = self.encoder.new_network(with_weights=True).to(self.device).eval()
        layers = getattr(network.config, "num_hidden_layers", self.num_layers)
        if not 1 <= self.num_layers <= layers:
            raise RankPolicyError(
                f"num_layers must be from 1 to the {layers} layers of the model; got {self.num_layers}."
            )
        numbers = self.encoder.token_numbers(list(texts.values()), max_tokens=self.max_tokens)
        first_lengths = self._first_lengths(list(texts.values()), numbers)
        keys = list(texts)
        # Texts of similar length together, for little padding.
        order = sorted(range(len(keys)), key=lambda index: len(numbers[index]))
        with _progress_bar("Token features", len(order), enabled=self.progress) as advance, torch.inference_mode():
            for start in range(0, len(order), _TEXTS_PER_FILE):
                computed: dict[str, Tensor] = {}
                for batch in _batches(order[start : start + _TEXTS_PER_FILE], numbers):
                    table = TokenTable.of([numbers[index] for index in batch]).to(self.device)
                    tokens, mask = table.padded(torch.arange(len(batch), device=self.device))
                    inputs = {"input_ids": tokens, "attention_mask": mask.long()}
                    if self.encoder.has_segments():
                        firsts = torch.tensor([first_lengths[index] for index in batch], device=self.device)
                        columns = torch.arange(tokens.shape[1], device=self.device)
                        inputs["token_type_ids"] = ((columns >= firsts[:, None]) & mask).long()
                    states = network(**inputs, output_hidden_states=True).hidden_states[-self.num_layers :]
                    features = torch.cat(states, -1).half().cpu()
                    computed |= {keys[i]: features[row, : len(numbers[i])].clone() for row, i in enumerate(batch)}
                    advance(len(batch))
                yield computed

    def _first_lengths(self, texts: list[Text], numbers: list[list[int]]) -> list[int]:
        """Number of tokens of the first of two texts read together; of a single text, all its tokens."""
        firsts = self.encoder.token_numbers(
            [text if isinstance(text, str) else text[0] for text in texts], max_tokens=self.max_tokens
        )
        return [
            len(all_of) if isinstance(text, str) else len(first)
            for text, first, all_of in zip(texts, firsts, numbers, strict=True)
        ]

    def _read_cache(self, required_keys: set[str]) -> dict[str, Tensor]:
        if self.cache is None or not self.cache.is_dir():
            return {}
        safetensors = require("safetensors", "Cached text features")
        features_of: dict[str, Tensor] = {}
        for path in sorted(self.cache.glob("*.safetensors")):
            try:
                with safetensors.safe_open(path, framework="pt") as file:
                    keys, lengths = (json.loads(file.metadata()[name]) for name in ("keys", "lengths"))
                    if required_keys.isdisjoint(keys):
                        continue
                    tables = file.get_tensor("features").split(lengths)
            except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
                raise RankPolicyError(f"{path} is not a file of text features ({error}). Delete it.") from None
            features_of |= {key: table for key, table in zip(keys, tables, strict=True) if key in required_keys}
        return features_of

    def _write_cache(self, computed: dict[str, Tensor]) -> None:
        assert self.cache is not None
        self.cache.mkdir(parents=True, exist_ok=True)
        keys = list(computed)
        lengths = [len(features) for features in computed.values()]
        path = self.cache / f"{_key(' '.join(keys))[:32]}.safetensors"
        content = require("safetensors.torch", "Cached text features").save(
            {"features": torch.cat(list(computed.values()))},
            {"keys": json.dumps(keys), "lengths": json.dumps(lengths)},
        )
        with atomic_write(path) as file:
            file.write(content)


@contextmanager
def _progress_bar(description: str, total: int, *, enabled: bool | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr; yields the function that advances it. None shows it only on a terminal."""
    if enabled is None:
        enabled = sys.stderr.isatty() and find_spec("rich") is not None
    if not enabled:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)


def _key(text: Text) -> str:
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()


def _batches(
    order: Sequence[int], numbers: Sequence[Sequence[int]], tokens_per_batch: int = 8192
) -> Iterator[list[int]]:
    """Batches of consecutive texts with about as many tokens after padding to the longest text, which is the last."""
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * len(numbers[index]) > tokens_per_batch:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
