"""EM for UBM and DBN against the program one would first write: a plain Python loop over sessions, positions and iterations.

The loop is given its log as lists of pair numbers, so it needs no dictionary. Ours is the whole call of fit_click_model:
codes, counting of equal marks and lists, and EM. Both run the same number of iterations from the same start, and after each of the
first ones their parameters agree to 1e-6. The log is Yandex's sample where it is at hand, else a simulated one of its size: 35,064
sessions that share some 1000 lists. UBM's time hardly depends on how many lists differ; DBN's does: where no two sessions share a
list it gains tens, not hundreds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import speedup, use_two_threads
from rankpolicy.clicks import ClickLog, fit_click_model, make_click_log, make_click_model, read_click_log
from rankpolicy.clicks.log.log_pairs import pairs_of

ITERATIONS, COMPARED, TIMED = 100, 5, 5

Sessions = list[tuple[list[int], list[int]]]  # pair codes and clicks of each session


def click_log() -> ClickLog:
    path = Path(os.environ.get("RANKPOLICY_DATA", ""), "yandex_relpred_sample", "train.yandexlog.tsv.gz")
    if path.is_file():
        return read_click_log(path)
    return simulated_log(num_lists=1000)


def simulated_log(*, num_lists: int) -> ClickLog:
    """As many sessions of as many queries as the sample has, over this many distinct lists of ten (the sample: 951)."""
    users = make_click_model("dbn", num_queries=20, num_items=20, random_state=0)
    lists = make_click_log(users, num_lists, num_positions=10, random_state=1)
    rows = np.random.default_rng(2).integers(0, num_lists, 35_064)
    log = replace(lists, queries=lists.queries[rows], items=lists.items[rows], counts=np.ones(len(rows), np.int64))
    return log.with_clicks(users.sample_clicks(log, random_state=3))


def as_lists(log: ClickLog) -> tuple[Sessions, int]:
    table = pairs_of(log)
    view = table.view(log)
    lengths = view.is_shown.sum(1).tolist()
    rows = zip(view.pairs.tolist(), view.clicks.astype(int).tolist(), lengths, strict=True)
    return [(pairs[:n], clicks[:n]) for pairs, clicks, n in rows], len(table)


def ubm_loop(sessions: Sessions, num_pairs: int, num_positions: int, iterations: int) -> dict[str, Any]:
    attraction = [0.5] * num_pairs
    examination = [[0.5] * (num_positions + 1) for _ in range(num_positions)]
    for _ in range(iterations):
        clicks_of, examined_of = [1.0] * num_pairs, [2.0] * num_pairs
        examined_at = [[1.0] * (num_positions + 1) for _ in range(num_positions)]
        shown_at = [[2.0] * (num_positions + 1) for _ in range(num_positions)]
        for pairs, clicks in sessions:
            last_click = 0
            for position, (pair, click) in enumerate(zip(pairs, clicks, strict=True)):
                shown_at[position][last_click] += 1
                if click:
                    clicks_of[pair] += 1
                    examined_of[pair] += 1
                    examined_at[position][last_click] += 1
                    last_click = position + 1
                else:
                    a, e = attraction[pair], examination[position][last_click]
                    examined = e * (1 - a) / (1 - e * a)
                    examined_of[pair] += examined
                    examined_at[position][last_click] += examined
        attraction = [c / n for c, n in zip(clicks_of, examined_of, strict=True)]
        examination = [[c / n for c, n in zip(*rows, strict=True)] for rows in zip(examined_at, shown_at, strict=True)]
    return {"attraction": attraction, "examination": examination}


def dbn_loop(sessions: Sessions, num_pairs: int, num_positions: int, iterations: int) -> dict[str, Any]:
    attraction, satisfaction, continuation = [0.5] * num_pairs, [0.5] * num_pairs, 0.5
    for _ in range(iterations):
        clicks_of, examined_of = [1.0] * num_pairs, [2.0] * num_pairs
        satisfied_of, followed_of = [1.0] * num_pairs, [2.0] * num_pairs
        went_on, could_go_on = 1.0, 2.0
        for pairs, clicks in sessions:
            n = len(pairs)
            goes_on = [
                continuation * (1 - satisfaction[pair]) if click else continuation
                for pair, click in zip(pairs, clicks, strict=True)
            ]
            # Backwards: what is left of the list given that this position is examined, and whether a click is left.
            later, has_click = [1.0] * (n + 1), [False] * (n + 1)
            for k in range(n - 1, -1, -1):
                a = attraction[pairs[k]]
                onwards = goes_on[k] * later[k + 1] + (0.0 if has_click[k + 1] else 1 - goes_on[k])
                later[k] = (a if clicks[k] else 1 - a) * onwards
                has_click[k] = has_click[k + 1] or bool(clicks[k])
            examined = 1.0
            for k in range(n):
                pair = pairs[k]
                examined_of[pair] += examined
                if clicks[k]:
                    clicks_of[pair] += 1
                if k + 1 == n:
                    break
                on = goes_on[k] * later[k + 1]
                below = examined * on / (on + (0.0 if has_click[k + 1] else 1 - goes_on[k]))
                tried = examined
                if clicks[k]:
                    s = satisfaction[pair]
                    satisfied = (1 - below) * s / (s + (1 - s) * (1 - continuation))
                    satisfied_of[pair] += satisfied
                    followed_of[pair] += 1
                    tried = 1 - satisfied
                could_go_on += tried
                went_on += below
                examined = below
        attraction = [c / n for c, n in zip(clicks_of, examined_of, strict=True)]
        satisfaction = [c / n for c, n in zip(satisfied_of, followed_of, strict=True)]
        continuation = went_on / could_go_on
    return {"attraction": attraction, "satisfaction": satisfaction, "continuation": [continuation]}


LOOPS: dict[str, tuple[Callable[..., dict[str, Any]], int]] = {"ubm": (ubm_loop, 200), "dbn": (dbn_loop, 500)}


def measure(name: str, log: ClickLog) -> dict[str, object]:
    loop, floor = LOOPS[name]
    sessions, num_pairs = as_lists(log)
    for iterations in range(1, COMPARED + 1):
        wanted = loop(sessions, num_pairs, log.num_positions, iterations)
        model = fit_click_model(name, log, iterations=iterations, tolerance=0)
        for parameter, values in wanted.items():
            np.testing.assert_allclose(model.parameters[parameter], values, rtol=0, atol=1e-6)
    # All iterations of the loop take the same time, so a few of them suffice.
    ratio = speedup(
        lambda: loop(sessions, num_pairs, log.num_positions, TIMED),
        lambda: fit_click_model(name, log, iterations=ITERATIONS, tolerance=0),
        repeats=3,
    )
    return {
        "name": f"{name}-em",
        "ratio": round(ratio * ITERATIONS / TIMED),
        "floor": floor,
        "what": f"plain Python loop / ours, {ITERATIONS} iterations of EM, all preparation of ours included",
    }


if __name__ == "__main__":
    use_two_threads()
    log = click_log()
    for name in LOOPS:
        print(json.dumps(measure(name, log)))
