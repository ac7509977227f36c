"""Files under stress: many processes save and load one path, and processes are killed while they train and save.

    python -m benchmarks.files_under_stress --processes 16 --seconds 60 --kills 200

Counts what went wrong: failed loads, files that are not whole, and resumed trainings that end otherwise than a run that was never killed.
Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import safetensors

import rankpolicy as rp

# Loaded before processes are forked, so that each starts at once.
from rankpolicy.rankers.networks.pg_rank import PGRank
from rankpolicy.rankers.networks.regression import Regression

_FORK = multiprocessing.get_context("fork")


def _data() -> rp.RankingDataset:
    return rp.make_web_search(12, items_per_query=(3, 5), num_features=8, random_state=0)


def _save_and_load(path: Path, seconds: float, number: int, all_ready: Any, answer: Connection) -> None:
    data = _data()
    mine = Regression(random_state=number).fit(data)
    counts = {"saved": 0, "loaded": 0, "failed": 0, "first": ""}
    mine.save(path)
    all_ready.wait()
    until = time.time() + seconds
    while time.time() < until:
        mine.save(path)
        counts["saved"] += 1  # type: ignore[operator]
        try:
            rp.load(path).predict(data)
            counts["loaded"] += 1  # type: ignore[operator]
        except Exception as error:
            counts["failed"] += 1  # type: ignore[operator]
            counts["first"] = counts["first"] or f"{type(error).__name__}: {error}"
    answer.send(counts)


def save_and_load_together(processes: int, seconds: float) -> dict[str, Any]:
    """Several processes save to and load from one path: how often each, and how often loading failed.

    Parameters
    ----------
    processes
        How many.
    seconds
        For how long.
    """
    with tempfile.TemporaryDirectory() as folder:
        all_ready = _FORK.Barrier(processes)
        pipes = [_FORK.Pipe(duplex=False) for _ in range(processes)]
        running = [
            _FORK.Process(target=_save_and_load, args=(Path(folder) / "model.rp", seconds, number, all_ready, pipe[1]))
            for number, pipe in enumerate(pipes)
        ]
        for process in running:
            process.start()
        found = [receiver.recv() for receiver, _ in pipes]
        for process in running:
            process.join()
        left = sorted(os.listdir(folder))
    counts = {name: sum(each[name] for each in found) for name in ("saved", "loaded", "failed")}
    return counts | {"first": next((each["first"] for each in found if each["first"]), ""), "files": left}


def _train_and_save(folder: Path, epochs: int, answer: Connection) -> None:
    warnings.simplefilter("ignore")
    data = _data()
    ranker = PGRank(epochs=epochs, num_networks=1, model=rp.models.MLP(hidden=(64, 64)))
    answer.send("ready")
    ranker.fit(data, checkpoint=folder / "state", resume=True, progress=False)
    answer.send(ranker.predict(data).tolist())
    parent = os.getppid()
    while os.getppid() == parent:  # until it is killed, or nobody is left to do so
        ranker.save(folder / "model.rp")


def kill_at_random_moments(kills: int, *, seed: int = 0, epochs: int = 30) -> dict[str, Any]:
    """Training with checkpoints, and saving, killed by ``kill -9`` at random moments and resumed.

    Parameters
    ----------
    kills
        How many times to kill.
    seed
        Seed of the moments.
    epochs
        Epochs of the training; after a training that ended, the next often starts from the beginning.
    """
    rng = random.Random(seed)
    counts = {"killed": 0, "in training": 0, "trainings ended": 0, "ended otherwise": 0, "files not whole": 0}
    expected: list[float] | None = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while counts["killed"] < kills:
            receiver, sender = _FORK.Pipe(duplex=False)
            process = _FORK.Process(target=_train_and_save, args=(folder, epochs, sender))
            process.start()
            assert receiver.recv() == "ready"
            if expected is None:  # the first training is not disturbed
                started = time.time()
                expected = receiver.recv()
                duration = time.time() - started
                (folder / "state").unlink()
            else:
                time.sleep(rng.uniform(0, 1.2 * duration))
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            counts["killed"] += 1
            if receiver.poll():
                counts["trainings ended"] += 1
                counts["ended otherwise"] += receiver.recv() != expected
                if rng.random() < 0.7:
                    (folder / "state").unlink(missing_ok=True)
            else:
                counts["in training"] += 1
            counts["files not whole"] += not _are_whole(folder)
    return counts


def _are_whole(folder: Path) -> bool:
    try:
        if (folder / "model.rp").exists():
            rp.load(folder / "model.rp")
        if (folder / "state").exists():
            with safetensors.safe_open(folder / "state", framework="pt") as file:
                json.loads(file.metadata()["state"])
    except Exception as error:
        print(f"not whole: {error}", file=sys.stderr)
        return False
    return True


def main() -> None:
    """Run both and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args()
    together = save_and_load_together(options.processes, options.seconds)
    print(json.dumps({"together": together, "killed": kill_at_random_moments(options.kills)}))


if __name__ == "__main__":
    main()
