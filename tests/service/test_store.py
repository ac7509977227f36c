"""What is stored, what is refused, and what is learned from it."""

import pytest

from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.errors import ConflictError
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, WINDOW, Parts, click, events, ranked, request_of, until_refused

POLICIES = {"default": BANDIT, "own": {"kind": "given"}}


@pytest.fixture
def parts(place):
    made = Parts(place, POLICIES)
    yield made
    made.store.close()


@pytest.fixture
def in_a_file(tmp_path):
    made = Parts(tmp_path / "service.db", POLICIES)
    yield made
    made.store.close()


def test_a_click_is_learned_when_the_window_ends(parts):
    stored = parts.show("r1")
    assert parts.do(events(click("e1", "r1", stored.shown.items[1]))) == ["accepted"]
    assert parts.counts("q", "abcd") == [[0, 0]] * 4  # the window is open
    parts.end_windows()
    found = dict(zip("abcd", parts.counts("q", "abcd"), strict=True))
    first, second, third = stored.shown.items
    assert (found[first], found[second], found[third]) == ([0, 1], [1, 1], [0, 1])
    assert parts.store.check() == {"rankings": 1, "events": 1, "attachments": 0, "lessons": 1}


def test_a_list_without_clicks_is_a_lesson_too(parts):
    parts.show("r1", items="ab")
    parts.end_windows()
    assert parts.counts("q", "ab") == [[0, 1], [0, 1]]


def test_the_same_event_twice_counts_once(parts):
    item = parts.show("r1").shown.items[0]
    assert parts.do(events(click("e1", "r1", item), click("e1", "r1", item))) == ["accepted", "duplicate"]
    assert parts.do(events(click("e1", "r1", item))) == ["duplicate"]
    assert parts.do(events(click("e2", "r1", item))) == ["accepted"]  # a second click on the same item
    parts.end_windows()
    assert parts.counts("q", item) == [[1, 1]]
    assert parts.do(events(click("e1", "r1", item))) == ["duplicate"]  # also after the window


@pytest.mark.parametrize("other", [{"item": "b"}, {"type": "view"}, {"value": 2.0}, {"ranking_id": "r2"}])
def test_the_same_id_with_another_body_is_a_conflict(parts, other):
    parts.show("r1", items="ab")
    assert parts.do(events(click("e1", "r1", "a"))) == ["accepted"]
    given = {"ranking_id": "r1", "item": "a"} | other
    assert parts.do(events(click("e1", **given))) == ["conflict"]
    parts.end_windows()
    assert parts.counts("q", "ab") == [[1, 1], [0, 1]]


def test_an_item_that_was_not_shown_is_refused_and_leaves_no_trace(parts):
    parts.show("r1", items="ab")
    assert parts.do(events(click("e1", "r1", "z"), click("e2", "r1", "a"))) == ["unknown_item", "accepted"]
    assert parts.do(events(click("e1", "r1", "b"))) == ["accepted"]  # the id was not used up


def test_other_types_of_events_are_logged_and_not_learned(parts):
    parts.show("r1", items="ab")
    assert parts.do(events(click("e1", "r1", "a", type="purchase", value=9.5))) == ["accepted"]
    parts.end_windows()
    assert parts.counts("q", "ab") == [[0, 1], [0, 1]]
    parts.store.check()


def test_an_event_before_its_list_waits_for_it(parts):
    assert parts.do(events(click("e1", "r1", "a"), click("e2", "r1", "z"))) == ["orphan", "orphan"]
    parts.clock.time += WINDOW  # the last moment
    parts.show("r1", items="ab")
    assert parts.do(events(click("e1", "r1", "a"))) == ["duplicate"]
    parts.end_windows()
    assert parts.counts("q", "abz") == [[1, 1], [0, 1], [0, 0]]
    assert parts.store.check()["attachments"] == 1


def test_an_event_whose_list_never_comes_is_let_go(parts):
    parts.do(events(click("e1", "r1", "a")))
    parts.end_windows()
    parts.show("r1", items="ab")
    parts.end_windows()
    assert parts.counts("q", "ab") == [[0, 1], [0, 1]]
    assert parts.do(events(click("e1", "r1", "a"))) == ["duplicate"]  # it is in the log


def test_a_late_event_is_logged_and_not_learned(parts):
    parts.show("r1", items="ab")
    parts.clock.time += WINDOW
    assert parts.do(events(click("e1", "r1", "a"))) == ["accepted"]  # the last moment
    parts.clock.time += 1
    assert parts.do(events(click("e2", "r1", "b"))) == ["late"]
    assert parts.counts("q", "ab") == [[1, 1], [0, 1]]
    assert parts.store.check()["events"] == 2


def test_the_same_ranking_id_gives_the_same_list(parts):
    first = parts.show("r1")
    parts.end_windows()
    for _ in range(20):  # what would be shown now may differ
        again = parts.do(ranked(parts.live, "r1", request_of("q", "abcd")))
        assert again == first
    other = parts.do(ranked(parts.live, "r1", request_of("another", "abcd")))
    assert isinstance(other, ConflictError)
    assert parts.store.check()["rankings"] == 1


def test_lists_of_policies_that_do_not_learn_have_no_lessons(parts):
    assert parts.show("r1", policy="own").shown.items == ["a", "b", "c"]
    assert parts.do(events(click("e1", "r1", "a"))) == ["accepted"]
    parts.end_windows()
    assert parts.do(events(click("e2", "r1", "a"))) == ["late"]
    assert parts.store.check()["lessons"] == 0


def test_other_settings_are_another_version_that_learns_afresh(parts):
    parts.show("r1", items="ab")
    parts.end_windows()
    known = parts.state()
    parts.store.close()
    parts.policies = {"default": BANDIT | {"bandit": "dcm-ts"}}
    parts.open()
    assert parts.live.named(None).version.number == 2
    assert parts.counts("q", "ab") == [[0, 0], [0, 0]]
    parts.store.close()
    parts.policies = {"default": BANDIT}  # the first again, with what it knew
    parts.open()
    assert parts.live.named(None).version.number == 1
    assert parts.state() == known


def test_a_list_that_is_open_while_its_version_is_replaced_is_learned_by_that_version(parts):
    parts.show("r1", items="ab")
    parts.store.close()
    parts.policies = {"default": BANDIT | {"bandit": "dcm-ts"}}
    parts.open()
    parts.end_windows()
    assert parts.counts("q", "ab") == [[0, 0], [0, 0]]
    parts.store.close()
    parts.policies = {"default": BANDIT}
    parts.open()
    assert parts.counts("q", "ab") == [[0, 1], [0, 1]]


def test_a_second_server_is_kept_out_and_a_reader_is_not(in_a_file):
    with pytest.raises(RankPolicyError, match="in use by another server"):
        SqliteStore(in_a_file.path)
    in_a_file.show("r1")
    reader = SqliteStore(in_a_file.path, role="reader")
    assert reader.ranking("r1").shown.ranking_id == "r1"
    assert reader.ranking("r2") is None
    reader.close()


def test_a_full_disk_is_said_and_nothing_is_half_stored(in_a_file):
    in_a_file.show("r1", items="ab")
    pages = in_a_file.store._connection.pragma("page_count")
    in_a_file.store._connection.pragma("max_page_count", pages + 1)
    number, said = until_refused(lambda number: in_a_file.do(events(click(f"e{number}", "r1", "a", type="x" * 400))))
    assert "is full" in said
    in_a_file.store._connection.pragma("max_page_count", 1 << 30)
    assert in_a_file.do(events(click(f"e{number}", "r1", "a", type="x" * 400))) == ["accepted"]
    assert in_a_file.store.check()["events"] == number + 1


def test_a_foreign_database_is_refused(tmp_path):
    import apsw

    connection = apsw.Connection(str(tmp_path / "other.db"))
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(RankPolicyError, match="of another program"):
        SqliteStore(tmp_path / "other.db")


def test_time_never_runs_backwards_whatever_the_wall_clock_does():
    ticks = iter(range(0, 10**12, 10**9))
    clock = Clock(not_before=10**16, wall=lambda: 0, monotonic=lambda: next(ticks))  # set back by decades
    times = [clock.now() for _ in range(5)]
    assert times == sorted(times)
    assert times[0] > 10**16
    assert times[1] - times[0] == 1_000_000  # a second is a second


def test_time_goes_on_after_a_restart_with_a_clock_that_was_set_back(parts):
    parts.clock.time = 10**17
    parts.show("r1")
    assert Clock(not_before=parts.store.last_stamp(), wall=lambda: 0, monotonic=lambda: 0).now() == 10**17 + 1


def test_clocks_that_jump_by_ten_years_reorder_nothing(parts):
    decade = 10 * 365 * 86_400 * 10**6
    start, wall = 10**15, 0
    for turn, jump in enumerate([0, decade, -decade, -decade, decade, 0]):
        wall = start + jump
        clock = Clock(not_before=parts.store.last_stamp(), wall=lambda wall=wall: wall * 1000, monotonic=lambda: 0)
        parts.clock.time = clock.now()
        item = parts.show(f"r{turn}").shown.items[0]
        assert parts.do(events(click(f"e{turn}", f"r{turn}", item))) == ["accepted"]  # no window ends early
        parts.store.close()
        parts.open()
    parts.end_windows()
    for table in ("rankings", "events"):
        stamps = [stamp for (stamp,) in parts.store.rows(f"SELECT stamp FROM {table} ORDER BY seq")]
        assert stamps == sorted(stamps)
    learned = [lesson.seq for lesson in parts.store.lessons(1)]
    assert learned == sorted(learned)
    assert len(learned) == 6
    parts.store.check()
