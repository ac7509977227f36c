"""Checkpoints: a training state in one safetensors file, from which training continues as if it had never stopped."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import save

from rankpolicy.arrays import Array, generator_state, is_tensor, restore_generator
from rankpolicy.declarations.settings import setting_names
from rankpolicy.optional import require
from rankpolicy.training.network_fit import NetworkFit, TrainingSettings, TrainingState
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write, checked_target, is_special


def open_checkpoint(fit: NetworkFit, state: TrainingState) -> None:
    """Continue from the checkpoint of a fit if it is to be resumed; refuse, before training, a file that one cannot or must not replace."""
    assert fit.checkpoint is not None
    if fit.resume:
        if os.path.exists(fit.checkpoint):
            _read_checkpoint(fit, state)
        else:  # the same command may be meant to start and to continue
            warnings.warn(f"nothing to resume: {fit.checkpoint} does not exist. Training starts afresh.", stacklevel=6)
    _check_target(fit, fit.checkpoint)


def write_checkpoint(fit: NetworkFit, state: TrainingState) -> None:
    """Write a checkpoint, whole or not at all."""
    assert fit.checkpoint is not None
    optimizer = state.optimizer.state_dict()
    tensors: dict[str, Array] = {"generator": generator_state(state.generator)}
    tensors |= {f"network.{name}": weight for name, weight in state.network.state_dict().items()}
    tensors |= {f"best.{name}": weight for name, weight in state.best_weights.items()}
    for index, slots in optimizer["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": value for slot, value in slots.items()}
    numbers = {
        "best_score": state.best_score,
        "best_epoch": state.best_epoch,
        "reports": state.reports,
        "parts": state.parts,
        "scores": state.scores,
        "other_scores": state.other_scores,
        "purpose": _purpose(fit),
        "data": fit.data,
    }
    content = _packed(tensors, {"state": json.dumps(numbers)})
    with atomic_write(fit.checkpoint) as file:
        file.write(content)


def _packed(tensors: dict[str, Array], metadata: dict[str, str]) -> bytes:
    if not is_tensor(tensors["generator"]):
        return save({name: np.array(array, order="C") for name, array in tensors.items()}, metadata)
    import torch

    # clone: safetensors refuses tensors that share memory
    owned = {name: torch.as_tensor(tensor).clone().contiguous() for name, tensor in tensors.items()}
    content: bytes = require("safetensors.torch", "A checkpoint").save(owned, metadata)
    return content


def _purpose(fit: NetworkFit) -> str:
    """What must not change between a checkpoint and its resumption; how long to train may."""
    objective, settings = fit.objective, fit.settings
    reward = getattr(getattr(objective, "reward", None), "name", "")
    names = [name for name in setting_names(TrainingSettings) if name not in ("epochs", "patience")]
    values = {name: getattr(settings, name) for name in names}
    if is_dataclass(objective):
        of_objective = {field.name: getattr(objective, field.name) for field in fields(objective)}
        values |= {
            name: value
            for name, value in of_objective.items()
            if name not in ("epoch", "report_name") and (value is None or isinstance(value, int | float | str))
        }
    listed = ", ".join(f"{name}={value}" for name, value in values.items())
    return f"{type(objective).__name__}({reward}) with {listed}, validation {fit.validation.name if fit.validation else 'none'}"


def _check_target(fit: NetworkFit, path: Path) -> None:
    """Refuse a file that a checkpoint cannot or must not replace; make its folder where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankPolicyError(
            f"checkpoint must be in a folder that can be written; {path.parent} cannot be made ({error.strerror})."
        ) from None
    target = checked_target(path)
    writable = target if is_special(target) else target.resolve().parent
    if not os.access(writable, os.W_OK):
        raise RankPolicyError(f"checkpoint must be writable; {writable} is not. Choose another place.")
    if fit.resume or not target.is_file() or not target.stat().st_size:
        return
    made_by = _training_of(target)
    if made_by is None:
        raise RankPolicyError(
            f"checkpoint must not replace another file; {path} is there and is no checkpoint. Choose another name, or delete it."
        )
    if made_by != (_purpose(fit), fit.data):
        raise RankPolicyError(
            f"checkpoint must not replace that of another training; {path} was made with other settings or data. Choose another name, or "
            "delete it."
        )
    warnings.warn(f"{path} is replaced: training starts afresh. To continue from it, resume.", stacklevel=6)


def _training_of(path: Path) -> tuple[Any, Any] | None:
    """The training that a checkpoint belongs to; None for other files."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            numbers = json.loads((file.metadata() or {})["state"])
            return numbers.get("purpose"), numbers.get("data")
    except (safetensors.SafetensorError, OSError, LookupError, ValueError, AttributeError):
        return None


def _read_checkpoint(fit: NetworkFit, state: TrainingState) -> None:
    """Put ``state``, a new one of the same network and optimizer, where the checkpoint left off, its generator included."""
    assert fit.checkpoint is not None
    path, purpose = fit.checkpoint, _purpose(fit)
    framework = "np" if isinstance(state.generator, np.random.Generator) else "pt"
    try:
        with safetensors.safe_open(path, framework=framework) as file:
            numbers = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - a handle, not a dict
        if numbers["purpose"] != purpose:
            raise KeyError(f"it was made by {numbers['purpose']}, this is {purpose}")
        if numbers["data"] != fit.data:
            raise RankPolicyError(
                f"cannot resume from {path}: it was made with other training or validation data.",
                python="Resume with the data it was made with, or train without resume.",
                command_line="Resume with the data it was made with, or leave --resume out.",
            )
        state.network.load_state_dict(_under("network.", tensors))
        state.best_score, state.best_epoch = float(numbers["best_score"]), int(numbers["best_epoch"])
        state.reports, state.parts = list(numbers["reports"]), dict(numbers["parts"])
        state.epoch = len(state.reports)
        state.scores = list(numbers["scores"])
        state.other_scores = {name: list(scores) for name, scores in dict(numbers.get("other_scores", {})).items()}
        slots: dict[int, dict[str, Any]] = {}
        for name, tensor in _under("optimizer.", tensors).items():
            index, slot = name.split(".", 1)
            slots.setdefault(int(index), {})[slot] = tensor
        groups = state.optimizer.state_dict()["param_groups"]
        state.optimizer.load_state_dict({"state": slots, "param_groups": groups})
        state.best_weights = _under("best.", tensors)
        restore_generator(state.generator, tensors["generator"])
    except RankPolicyError:
        raise
    except (safetensors.SafetensorError, OSError, RuntimeError, LookupError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0][:1000] if str(error) else type(error).__name__
        raise RankPolicyError(
            f"cannot resume from {path}: it is not a checkpoint of this training ({reason}).",
            python="Train without resume, or with the settings the checkpoint was made with.",
            command_line="Leave --resume out, or use the settings the checkpoint was made with.",
        ) from None


def _under(prefix: str, tensors: dict[str, Array]) -> dict[str, Array]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
