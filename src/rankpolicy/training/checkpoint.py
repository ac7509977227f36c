"""Checkpoints: a training state in one safetensors file, from which training continues as if it had never stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.training.fit import TrainingState


def write_checkpoint(path: Path, state: TrainingState, *, purpose: str) -> None:
    """Write a checkpoint, whole or not at all. ``purpose`` describes the run."""
    save_file = require("safetensors.torch", "A checkpoint").save_file
    optimizer = state.optimizer.state_dict()
    tensors: dict[str, torch.Tensor] = {"generator": state.generator.get_state()}
    tensors |= {f"network.{name}": weight for name, weight in state.network.state_dict().items()}
    tensors |= {f"best.{name}": weight for name, weight in state.best_weights.items()}
    for index, slots in optimizer["state"].items():
        tensors |= {f"optimizer.{index}.{slot}": torch.as_tensor(value) for slot, value in slots.items()}
    numbers = {
        "best_score": state.best_score,
        "best_epoch": state.best_epoch,
        "reports": state.reports,
        "parts": state.parts,
        "scores": state.scores,
        "other_scores": state.other_scores,
        "purpose": purpose,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    # clone: safetensors refuses tensors that share memory
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in tensors.items()}, beside, {"state": json.dumps(numbers)}
    )
    os.replace(beside, path)


def read_checkpoint(path: Path, state: TrainingState, *, purpose: str) -> None:
    """Put ``state``, a new one of the same network and optimizer, where the checkpoint left off, its generator included."""
    safetensors = require("safetensors", "A checkpoint")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            numbers = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - a handle, not a dict
        if numbers["purpose"] != purpose:
            raise KeyError(f"it was made by {numbers['purpose']}, this is {purpose}")
        state.network.load_state_dict(_under("network.", tensors))
        state.best_score, state.best_epoch = numbers["best_score"], numbers["best_epoch"]
        state.reports, state.parts, state.scores = numbers["reports"], numbers["parts"], numbers["scores"]
        state.other_scores = numbers.get("other_scores", {})
    except (safetensors.SafetensorError, RuntimeError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise RankPolicyError(
            f"cannot resume from {path}: it is not a checkpoint of this training ({str(error).splitlines()[0]}). "
            "Train without resume, or with the settings the checkpoint was made with."
        ) from None
    optimizer = state.optimizer.state_dict()
    slots: dict[int, dict[str, Any]] = {}
    for name, tensor in _under("optimizer.", tensors).items():
        index, slot = name.split(".", 1)
        slots.setdefault(int(index), {})[slot] = tensor
    state.optimizer.load_state_dict({"state": slots, "param_groups": optimizer["param_groups"]})
    state.best_weights = _under("best.", tensors)
    state.generator.set_state(tensors["generator"])


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
