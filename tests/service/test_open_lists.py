"""Lists that are remembered while their window is open: the log is the same however many of them are."""

import random

import pytest

from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.tables import OpenLists
from tests.service.parts import BANDIT, Parts, click, events
from tests.service.test_replay import live_for_a_while


def rows_after_a_while(path, most):
    parts = Parts(path, {"default": BANDIT})
    parts.store._open_lists = OpenLists(most)
    live_for_a_while(parts, random.Random(3), 40)
    kept = len(parts.store._open_lists)
    parts.end_windows()
    assert len(parts.store._open_lists) == 0
    rows = [parts.store.rows(f"SELECT * FROM {table} ORDER BY 1") for table in ("rankings", "events", "lessons")]
    parts.store.check()
    parts.store.close()
    return rows, kept


def test_the_log_does_not_depend_on_what_is_remembered(tmp_path):
    (none, kept_none), (few, kept_few), (all_of_them, kept_all) = (
        rows_after_a_while(tmp_path / f"{most}.db", most) for most in (0, 7, 1_000)
    )
    assert none == few == all_of_them
    assert kept_none == 0 < kept_few <= 2
    assert kept_all >= kept_few


def test_clicks_of_a_transaction_that_failed_are_forgotten(tmp_path, monkeypatch):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    first, second, _ = parts.show("r1").shown.items
    pages = parts.store._connection.pragma("page_count")
    parts.store._connection.pragma("max_page_count", pages)
    with pytest.raises(UnavailableError, match="is full"):
        parts.do(
            events(click("e1", "r1", first), *(click(f"x{turn}", "r1", second, type="y" * 500) for turn in range(99)))
        )
    parts.store.reopen()
    parts.do(events(click("e2", "r1", second)))
    parts.end_windows()
    (lesson,) = parts.store.lessons(1)
    assert list(lesson.clicks) == [0, 1, 0]
    parts.store.check()
    parts.store.close()


def test_a_list_that_is_read_again_and_one_that_is_remembered_are_the_same(tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    shown = parts.show("r1")
    remembered = parts.store._open_lists.named("r1")
    assert remembered == shown == parts.store.ranking("r1")
    parts.do(events(click("e1", "r1", shown.shown.items[1])))
    assert parts.store._open_lists.at(shown.seq) == (b"\0\1\0", shown)
    assert parts.store.clicks_of(shown) == (b"\0\1\0", False)
    parts.store.close()
