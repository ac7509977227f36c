"""Tiny data, a small trained model, and a way to run the command line in this process."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rankpolicy as rp
from rankpolicy.cli.main import run

PROCESS_HOOKS = (
    (warnings, "showwarning"),
    (sys, "excepthook"),
    (threading, "excepthook"),
    (sys, "unraisablehook"),
)
SMALL = ["--set", "epochs=2", "--set", "model.hidden=4", "--set", "num_networks=1"]


@dataclass(frozen=True)
class Result:
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture
def rankpolicy(capsys, monkeypatch):
    """Run the command line: its exit status, stdout and stderr."""
    # `rankpolicy serve` takes over what its process logs: other tests get their own back.
    monkeypatch.setattr(logging.getLogger(), "handlers", logging.getLogger().handlers[:])
    for module, name in PROCESS_HOOKS:
        monkeypatch.setattr(module, name, getattr(module, name))

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return call


@pytest.fixture
def refused(rankpolicy):
    """Run the command line on input it cannot use: the one line it answers with."""

    def call(*arguments: object) -> str:
        result = rankpolicy(*arguments)
        assert result.status == 2
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return call


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """train.txt, vali.txt, test.txt, two folds of them, and a model."""
    root = tmp_path_factory.mktemp("cli")
    dataset = rp.make_web_search(60, items_per_query=(3, 8), num_features=8, random_state=1)
    parts = {"train": dataset[:30], "vali": dataset[30:45], "test": dataset[45:]}
    for place in (root, root / "folds" / "Fold1", root / "folds" / "Fold2"):
        place.mkdir(parents=True, exist_ok=True)
        for name, part in parts.items():
            rp.data.write_letor(part, place / f"{name}.txt")
    rp.PGRank(epochs=2, model=rp.models.MLP(hidden=(4,)), num_networks=1).fit(parts["train"], valid=parts["vali"]).save(
        root / "model.rp"
    )
    return root
