"""Disks that lose power or fail at every write and sync: what was acknowledged is there, what was refused leaves nothing behind.

``python -m tests.service.faults.test_faults 20000`` tries at least so many points.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from rankpolicy.service.log.sqlite import SqliteStore, checkpoints
from rankpolicy.service.log.sqlite.high_water_mark import HighWaterMark
from tests.service.faults.disk import DiskImage, FailingDisk, Operation, Recording, watched
from tests.service.faults.story import Story

KINDS = ("error", "full")


@pytest.fixture(autouse=True)
def _frequent_checkpoints(monkeypatch):
    monkeypatch.setattr(checkpoints, "PAGES_PER_CHECKPOINT", 12)


def lose_power_everywhere(folder: Path, *, seed: int, turns: int, losses: int, every: int = 1) -> int:
    """Live a story, then cut it off after every ``every``-th operation, each in several ways; the number of points."""
    recording = Recording()
    (folder / "alive").mkdir()
    path = folder / "alive" / "service.db"
    SqliteStore(path).close()  # a new file is there whole or not at all
    image = DiskImage({each.name: bytearray(each.read_bytes()) for each in (path, Path(f"{path}.mark"))})
    story = Story(path, seed, num_operations=lambda: len(recording.operations))
    with watched(recording), _recorded_mark(recording):
        story.live(turns)
        story.check_live_state()
        story.close()
    points, rng = 0, random.Random(seed)
    for number, operation in enumerate(recording.operations):
        if number % every == 0:
            for loss in range(losses):
                found = folder / "found"
                found.mkdir()
                image.write(found, None if loss == 0 else rng)
                story.check(found / "service.db", operations=number)
                shutil.rmtree(found)
                points += 1
        image.apply(operation)
    shutil.rmtree(folder / "alive")
    return points


@contextmanager
def _recorded_mark(recording: Recording) -> Iterator[None]:
    """Writes of the high-water mark, which is never synced, are operations too."""
    raise_to = HighWaterMark.raise_to

    def recorded(mark: HighWaterMark, kind: int, number: int) -> None:
        raise_to(mark, kind, number)
        recording(Operation("write", mark.path.name, 0, mark.path.read_bytes()))

    with mock.patch.object(HighWaterMark, "raise_to", recorded):
        yield


def fail_everywhere(folder: Path, *, seed: int, turns: int, every: int = 1, start: int = 1) -> int:
    """Live a story again and again, each time with a disk that fails later; the number of points."""
    points, first = 0, start
    while True:
        rng = random.Random(first)
        disk = FailingDisk(first, rng.choice([1, 1, 2, 5]), KINDS[first % 2])
        home = folder / "alive"
        home.mkdir()
        story = Story(home / "service.db", seed)
        with watched(disk):
            story.live(turns)
            story.check_live_state()
            story.close()
        story.check(home / "service.db")
        shutil.rmtree(home)
        points += disk.num_failures > 0
        if disk.num_failures == 0:
            return points
        first += every


def test_power_may_go_at_any_write_or_sync(tmp_path):
    assert lose_power_everywhere(tmp_path, seed=1, turns=6, losses=2, every=2) > 60


def test_any_write_or_sync_may_fail(tmp_path):
    assert fail_everywhere(tmp_path, seed=2, turns=3, every=4) > 15


if __name__ == "__main__":
    checkpoints.PAGES_PER_CHECKPOINT = 12
    wanted, done, seed, failed = int(sys.argv[1]), 0, 0, 0
    while done + failed < wanted:
        seed += 1
        with tempfile.TemporaryDirectory() as made:
            done += lose_power_everywhere(Path(made), seed=seed, turns=25, losses=6)
        with tempfile.TemporaryDirectory() as made:
            failed += fail_everywhere(Path(made), seed=seed, turns=5)
        print(f"{done} power losses, {failed} failures", flush=True)
    print(f"{done} points of power loss, {failed} of failing writes and syncs: committed or cleanly refused at each")
