"""Settings that several models share, each declared once."""

from __future__ import annotations

from typing import Any

from rankpolicy.declarations.settings import ReadWhen, setting

HAS_LAYERS = ReadWhen(condition="hidden has at least one layer", holds=lambda model: len(model.hidden) > 0)


def hidden_layers(default: tuple[int, ...], help: str, *, read_when: ReadWhen | None = None) -> Any:
    """The widths of a network's layers."""
    return setting(default, help, at_least=1, read_when=read_when)


def dropout_rate(default: float, *, read_when: ReadWhen | None = None) -> Any:
    """The dropout rate."""
    help = """Share of activations set to 0 at random in each training step. Raise it when the validation score peaks early and then
    drops; 0 switches dropout off."""
    return setting(default, help, at_least=0, below=1, read_when=read_when)


def initial_range() -> Any:
    """The range of initial weights."""
    help = """Initial weights and biases are drawn uniformly from (-r, r), such as 0.001 (Singh & Joachims 2019, appendix B.4); None: from
    (-1 / sqrt(inputs), 1 / sqrt(inputs)) of each layer."""
    return setting(None, help, above=0)


def dropout_after_projection(*, read_when: ReadWhen | None = None) -> Any:
    """Whether dropout follows the first layer of a highway network."""
    help = "Whether dropout also follows the projection to the width of the highway layers (Gampa & Fujita 2019: all layers)."
    return setting(False, help, read_when=read_when)


def context_of_query(*, read_when: ReadWhen | None = None) -> Any:
    """What a network of single items reads of the query."""
    help = """What an item's score knows of the other items of its query: "none", or "mean", with which each feature's difference from
    its mean over the query is a further feature. The cheap form of ListTransformer, for labels that are relative to the query."""
    return setting("none", help, choices=("none", "mean"), read_when=read_when)


def longest_text(at_least: int) -> Any:
    """The number of tokens after which a text is cut."""
    return setting(200, "How many tokens of a text are read; the rest is cut off.", at_least=at_least)


def recurrent_width() -> Any:
    """The width of an LSTM."""
    return setting(300, "Width of the LSTM (of each direction where it is bidirectional).", at_least=1)


def encoder_folder() -> Any:
    """The folder of a pretrained language model."""
    help = """Folder of a pretrained language model as Hugging Face lays it out: config.json, tokenizer.json and model.safetensors. It
    must be given before training; nothing is downloaded."""
    return setting(None, help)
