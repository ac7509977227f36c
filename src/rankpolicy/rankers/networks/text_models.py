"""The networks that read texts: what each takes, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from rankpolicy.models.cross_models import CROSS_MODELS
from rankpolicy.models.encoder import ENCODINGS, FineTunedEncoder
from rankpolicy.models.mcan import MCAN
from rankpolicy.models.sequence import BiLSTM
from rankpolicy.models.text_and_side import TextAndSide
from rankpolicy.rankers.networks.network_settings import NetworkSettings
from rankpolicy.rankers.networks.text_inputs import SubwordInputs, TextInputs, TokenFeatureInputs, WordInputs
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.networks.match_inputs import MatchInputs


@dataclass(frozen=True, slots=True)
class TextModel:
    """A network over ``TextPairs`` that gives one score a pair."""

    reads: Callable[[], type[TextInputs]]  # loaded when it is asked for
    build: Callable[[Any, NetworkSettings], nn.Module]  # from these inputs and the settings


def _mcan(inputs: WordInputs, settings: NetworkSettings) -> nn.Module:
    return MCAN(
        inputs.word_vectors(),
        recurrent=settings.recurrent,
        hidden=tuple(map(int, settings.hidden)),
        compression=settings.compression,
        dropout=settings.dropout,
    )


def _bilstm(inputs: TokenFeatureInputs, settings: NetworkSettings) -> nn.Module:
    return BiLSTM(
        inputs.features.num_features,
        recurrent=settings.recurrent,
        hidden=tuple(map(int, settings.hidden)),
        dropout=settings.dropout,
        reads_together=inputs.reads_together,
    )


def _encoder(inputs: SubwordInputs, settings: NetworkSettings) -> nn.Module:
    if settings.encoding not in ENCODINGS:
        raise RankPolicyError(f"encoding must be one of {', '.join(ENCODINGS)}; got {settings.encoding!r}.")
    return FineTunedEncoder(
        inputs.encoder.new_network(with_weights="model.safetensors" in inputs.encoder.files),
        inputs.encoder.width,
        encoding=settings.encoding,
        hidden=tuple(map(int, settings.hidden)),
        dropout=settings.dropout,
        has_segments=inputs.encoder.has_segments(),
    )


def _match_inputs() -> type[TextInputs]:
    from rankpolicy.rankers.networks.match_inputs import MatchInputs

    return MatchInputs


def _text_and_side(inputs: MatchInputs, settings: NetworkSettings) -> nn.Module:
    core = CROSS_MODELS[settings.model](
        inputs.vector_size,
        inputs.num_numbers + len(inputs.num_categories) * settings.category_size,
        hidden=tuple(map(int, settings.hidden)),
        dropout=settings.dropout,
    )
    return TextAndSide(
        core, inputs.word_vectors(), inputs.num_categories, settings.category_size, num_numbers=inputs.num_numbers
    )


TEXT_MODELS: dict[str, TextModel] = {
    "mcan": TextModel(reads=lambda: WordInputs, build=_mcan),
    "bilstm": TextModel(reads=lambda: TokenFeatureInputs, build=_bilstm),
    "encoder": TextModel(reads=lambda: SubwordInputs, build=_encoder),
    **{name: TextModel(reads=_match_inputs, build=_text_and_side) for name in CROSS_MODELS},
}


def new_text_network(inputs: TextInputs, settings: NetworkSettings) -> nn.Module:
    """The network that ``settings`` describe."""
    if any(width < 1 for width in settings.hidden) or settings.recurrent < 1:
        raise RankPolicyError(
            f"hidden and recurrent must be widths of at least 1; got {settings.hidden} and {settings.recurrent}."
        )
    if settings.model == "mcan" and len(set(settings.hidden)) != 1:
        raise RankPolicyError(
            f"mcan ends in a highway network, whose widths must be equal; got hidden={settings.hidden}."
        )
    if not 0 <= settings.dropout < 1:
        raise RankPolicyError(f"dropout must be at least 0 and below 1; got {settings.dropout}.")
    return TEXT_MODELS[settings.model].build(inputs, settings)


def check_weights(network: nn.Module, weights: Mapping[str, Tensor], *, what: str) -> None:
    """Refuse weights of another network, or of another vocabulary."""
    expected = network.state_dict()
    differ = sorted(set(expected) ^ set(weights))
    if differ:
        raise RankPolicyError(
            f"the file says {what}, but holds the weights of another network: {differ[0]} is "
            f"{'missing' if differ[0] in expected else 'not part of it'}. Train the model again."
        )
    for name in expected:
        if name.endswith("words.weight") and expected[name].shape != weights[name].shape:
            raise RankPolicyError(
                f"the vocabulary must be the one the network was trained with: it has {expected[name].shape[0]} numbers, "
                f"the network vectors for {weights[name].shape[0]}. Copy or train the model again."
            )
