"""Policies made of others, contextual bandits, splits, caps: lists, propensities, verdicts, and states that replay finds again."""

import math
import threading
from collections import Counter

import numpy as np
import pytest

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.messages import Item, RankRequest
from rankpolicy.service.domain.records import Lesson
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.replay import replay, replay_choices
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.policies import SERVED
from rankpolicy.service.policies.policy_settings import policy_of_version
from rankpolicy.types import RankPolicyError
from tests.service.logs import written_log
from tests.service.models import BEST_FIRST, ITEMS, saved_ranker
from tests.service.parts import live_policies, request_of
from tests.service.test_http import client_of, post
from tests.waits import LONGEST_WAIT, wait_until

NUM_DRAWS = 4000
BANDIT = {"kind": "bandit", "bandit": "dcm-ts"}
REQUEST = {"query": "q", "items": ITEMS, "cutoff": 3}
RANKED = RankRequest(query="q", items=[Item(**item) for item in ITEMS], cutoff=3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(saved_ranker(tmp_path_factory.mktemp("models") / "up.rp"))


def learners(model):
    ranker = {"kind": "ranker", "model": model}
    contextual = {"kind": "contextual", "num_features": 2}
    return {
        "contextual": contextual,
        "contextual ucb": {"kind": "contextual", "bandit": "cascade-lin-ucb", "num_features": 2},
        "safe gradient": {"kind": "safe-gradient", "num_features": 2, "settings": {"cutoff": 3}},
        "capped": {**BANDIT, "max_queries": 3},
        "apprentice": {"kind": "apprentice", "of": BANDIT},
        "contextual apprentice": {"kind": "apprentice", "of": contextual},
        "team draft": {"kind": "interleaved", "of": [BANDIT, ranker]},
        "probabilistic": {"kind": "interleaved", "method": "probabilistic", "of": [contextual, {"kind": "given"}]},
    }


LEARNERS = list(learners(""))


def made(given):
    return SERVED.named(given["kind"])(**{name: value for name, value in given.items() if name != "kind"})


def lessons_of(policy, number=60, seed=0):
    """Lessons on lists that the policy shows."""
    rng = np.random.default_rng(seed)
    lessons = []
    for seq in range(1, number + 1):
        request = RankRequest(query=f"q{rng.integers(6)}", items=RANKED.items, cutoff=3)
        ordered = policy.order(request, generator=generator_of(b"s", str(seq)))
        clicks = rng.integers(0, 2, len(ordered.items)).astype(np.int8).tobytes()
        lessons.append(
            Lesson(seq=seq, version=1, query=request.query, items=ordered.items, clicks=clicks, memo=ordered.memo)
        )
    return lessons


@pytest.mark.parametrize("name", LEARNERS)
def test_states_do_not_depend_on_how_lessons_are_cut_into_blocks(name, model):
    whole, parts, again = (made(learners(model)[name]) for _ in range(3))
    lessons = lessons_of(whole)
    whole.learn(lessons)
    for start, end in ((0, 1), (1, 2), (2, 9), (9, 10), (10, 43), (43, 60)):
        parts.learn(lessons[start:end])
    assert parts.state() == whole.state()
    again.restore(whole.state())
    assert again.state() == whole.state()
    assert again.report() == whole.report()
    more = lessons_of(whole, 20, seed=1)
    whole.learn(more)
    again.learn(more)
    assert again.state() == whole.state()
    for damaged in (b"", whole.state()[:-1], whole.state() + b"x", b"x" + whole.state()):
        with pytest.raises(DamagedStoreError):
            again.restore(damaged)


@pytest.mark.parametrize("name", LEARNERS)
def test_ordering_changes_nothing_and_can_be_repeated(name, model):
    policy = made(learners(model)[name])
    policy.learn(lessons_of(policy))
    state = policy.state()
    orders = [policy.order(RANKED, generator=generator_of(b"s", "r")) for _ in range(3)]
    assert orders[0] == orders[1] == orders[2]
    assert policy.state() == state


@pytest.mark.parametrize("name", LEARNERS)
def test_replay_equals_the_live_state_bit_for_bit(name, model, tmp_path):
    policies = {"learns": learners(model)[name], "any": {"kind": "uniform"}}
    rng = np.random.default_rng(0)
    visits = [("learns" if number % 3 else "any", REQUEST | {"query": f"q{rng.integers(6)}"}) for number in range(700)]

    def clicks(number, shown):
        return [item for place, item in enumerate(shown) if (number * 7 + place) % 3 == 0]

    path = written_log(tmp_path / "service.db", policies, visits, clicks)
    store = SqliteStore(path)
    store.check()
    (found,) = replay(store, lambda version: policy_of_version(version, store.model))
    assert found.is_equal
    assert (found.lessons, len(found.snapshots)) == (466, 1)
    assert replay_choices(store).is_equal
    live = live_policies(store, policies).named("learns")
    assert live.state_hash() == (found.last_lesson, found.state_sha256)
    store.close()


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "swaps", "pairs": "any"},
        {"kind": "swaps", "pairs": "first"},
        {"kind": "swaps", "depth": 2},
        {"kind": "interleaved", "method": "probabilistic", "of": [{"kind": "given"}, {"kind": "ranker"}]},
    ],
)
def test_lists_come_as_often_as_propensities_say(given, model):
    for one in given.get("of", ()):
        if one["kind"] == "ranker":
            one["model"] = model
    policy = made(given)
    drawn, expected = Counter(), {}
    for number in range(NUM_DRAWS):
        ordered = policy.order(RANKED, generator=generator_of(b"secret", str(number)))
        drawn[tuple(ordered.items)] += 1
        expected[tuple(ordered.items)] = math.prod(ordered.propensities)
    assert sum(expected.values()) == pytest.approx(1)
    for key, probability in expected.items():
        error = math.sqrt(probability * (1 - probability) / NUM_DRAWS)
        assert abs(drawn[key] / NUM_DRAWS - probability) < 4.5 * error
    if given["kind"] == "swaps":
        lists = [list(key) for key in expected]
        steps = policy.step_probabilities([RANKED] * len(lists), lists)
        assert [math.prod(one) for one in steps] == pytest.approx(list(expected.values()))


def test_interleaving_finds_the_better_policy(model):
    for method in ("team-draft", "probabilistic"):
        verdicts = {}
        for name, members in {
            "better": [{"kind": "ranker", "model": model}, {"kind": "given"}],
            "worse": [{"kind": "given"}, {"kind": "ranker", "model": model}],
            "same": [{"kind": "given"}, {"kind": "given"}],
        }.items():
            policy = made({"kind": "interleaved", "method": method, "of": members})
            rng = np.random.default_rng(0)
            for number in range(400):
                ordered = policy.order(RANKED, generator=generator_of(b"s", str(number)))
                wants = [rng.random() < {"a": 0.1, "b": 0.5, "c": 0.3, "d": 0.7}[item] for item in ordered.items]
                lesson = Lesson(
                    seq=number, version=1, query="q", items=ordered.items, clicks=bytes(wants), memo=ordered.memo
                )
                policy.learn([lesson])
            verdicts[name] = policy.report()["verdict"]
        assert verdicts == {"better": "first", "worse": "second", "same": "undecided"}, method
    assert made({"kind": "interleaved", "of": [BANDIT, BANDIT]}).report()["verdict"] == "too few lists"


def test_an_apprentice_shows_the_callers_order_and_comes_to_agree_with_good_ones():
    policy = made({"kind": "apprentice", "of": {"kind": "bandit", "bandit": "mp-ts"}})
    first = policy.order(request_of("q", "abc"), generator=generator_of(b"s", "r"))
    assert (first.items, first.propensities, first.mode) == (["a", "b", "c"], [1.0] * 3, "apprentice")
    assert policy.report() == {"lists": 0, "match_rate": None, "same_list_rate": None}
    rates = []
    for part in range(2):
        before = policy.report()
        for number in range(150):
            ordered = policy.order(request_of("q", "abc"), generator=generator_of(b"s", f"{part} {number}"))
            clicks = bytes([1, number % 4 == 0, 0])
            policy.learn([Lesson(seq=1, version=1, query="q", items=ordered.items, clicks=clicks, memo=ordered.memo)])
        after = policy.report()
        matches = after["match_rate"] * after["lists"] - (before["match_rate"] or 0) * before["lists"]
        rates.append(matches / 150)
    assert rates[1] > 0.8
    assert rates[1] >= rates[0]


def test_a_contextual_bandit_learns_about_items_that_it_has_never_shown():
    policy = made({"kind": "contextual", "features": ["good", "bad"]})
    rng = np.random.default_rng(0)
    for number in range(300):
        items = [Item(id=str(place), features={"good": float(rng.random()), "bad": 1.0}) for place in range(6)]
        request = RankRequest(query=f"q{number}", items=items, cutoff=3)
        ordered = policy.order(request, generator=generator_of(b"s", str(number)))
        value = {item.id: item.features["good"] for item in items}
        clicks = bytes(rng.random() < value[name] * 0.8 for name in ordered.items)
        policy.learn([Lesson(seq=1, version=1, query="q", items=ordered.items, clicks=clicks, memo=ordered.memo)])
    new = [Item(id=f"new {place}", features={"good": place / 5, "bad": 1.0}) for place in range(6)]
    firsts = Counter(
        policy.order(RankRequest(query="new", items=new), generator=generator_of(b"t", str(number))).items[0]
        for number in range(100)
    )
    assert firsts["new 5"] > 60


@pytest.mark.parametrize(
    ("features", "message"),
    [(None, "a list of 2 features"), ([1.0], "a list of 2 features"), ([1.0, 1e9], "between -1000 and 1000")],
)
def test_features_that_a_contextual_bandit_cannot_read_are_refused(features, message):
    policy = made({"kind": "contextual", "num_features": 2})
    with pytest.raises(RankPolicyError, match=message):
        policy.order(RankRequest(query="q", items=[Item(id="a", features=features)]), generator=generator_of(b"s", "r"))


def test_a_cap_forgets_the_queries_that_were_learned_from_least_recently():
    policy = made({**BANDIT, "max_queries": 20})
    for number in range(21):
        policy.learn([Lesson(seq=number, version=1, query=f"q{number}", items=["a", "b"], clicks=b"\1\0")])
        policy.learn([Lesson(seq=number, version=1, query="q0", items=["a"], clicks=b"\1")])  # asked all the time
    counts = {number: policy._bandit.counts_of(f"q{number}", ["a"]).tolist()[0] for number in range(21)}
    assert policy.report()["queries"] == 19
    assert [number for number, (clicks, _) in counts.items() if clicks == 0] == [1, 2]
    assert counts[0] == [22, 22]
    assert policy.num_keys == 19 + 2 * 19


def test_thompson_sampling_has_propensities_when_asked_for_and_says_how_many_draws(tmp_path):
    with client_of(tmp_path / "service.db", policies={"default": {"kind": "bandit", "bandit": "mp-ts"}}) as http:
        plain = post(http, "/v1/rank", REQUEST).json()
        assert plain["list_log_propensity"] is None
        assert "no closed form" in plain["no_propensities"]
        answer = post(http, "/v1/rank", REQUEST | {"propensity_draws": 900}).json()
        assert (answer["propensity_draws"], answer["no_propensities"]) == (900, None)
        # Nothing is known yet: every list is equally likely, 1/24.
        assert math.exp(answer["list_log_propensity"]) == pytest.approx(1 / 24, abs=4 * math.sqrt(23 / 24**2 / 900))
        assert answer["items"][0]["propensity"] == pytest.approx(1 / 4, abs=4 * math.sqrt(3 / 16 / 900))
        assert post(http, "/v1/rank", REQUEST | {"propensity_draws": 1001}).status_code == 422


def test_a_split_passes_requests_on_by_user_and_replay_finds_the_same(tmp_path):
    policies = {
        "search": {"kind": "split", "shares": {"learning": 0.7, "random": 0.3}},
        "learning": BANDIT,
        "random": {"kind": "uniform"},
    }
    path = tmp_path / "service.db"
    with client_of(path, policies=policies) as http:
        answers = [post(http, "/v1/rank", REQUEST | {"user": f"user {number % 200}"}).json() for number in range(400)]
        for number in range(200):
            assert answers[number]["policy"] == answers[number + 200]["policy"]
        chosen = Counter(answer["policy"] for answer in answers[:200])
        assert set(chosen) == {"learning", "random"}
        assert abs(chosen["random"] / 200 - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 200)
        direct = post(http, "/v1/rank", REQUEST | {"policy": "random"}).json()
        assert direct["policy"] == "random"
    store = SqliteStore(path, role="reader", check="none")
    choices = replay_choices(store)
    store.close()
    assert (choices.is_equal, choices.lists) == (True, 401)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"a": {"kind": "split"}}, "incomplete"),
        ({"a": {"kind": "split", "shares": {"b": 1.0}}}, "Unknown policy 'b'"),
        ({"a": {"kind": "split", "shares": {"a": 1.0}}}, "is a split itself"),
        ({"a": {"kind": "split", "shares": {"b": 0.5}}, "b": {"kind": "given"}}, "add up to 1"),
        ({"a": {"kind": "split", "shares": {"b": "1"}}, "b": {"kind": "given"}}, "shares"),
        ({"a": {"kind": "split", "shares": 3}}, "shares"),
        ({"a": {"kind": "apprentice", "of": [BANDIT, BANDIT]}}, r"1 table\(s\)"),
        ({"a": {"kind": "apprentice", "of": {"bandit": "dcm-ts"}}}, "each with a kind"),
        ({"a": {"kind": "apprentice", "of": {"kind": "apprentice", "of": BANDIT}}}, "cannot be inside another"),
        ({"a": {"kind": "apprentice", "of": {"kind": "bandit", "bandit": "magic"}}}, "Unknown"),
        ({"a": {"kind": "interleaved", "of": [BANDIT]}}, r"2 table\(s\)"),
        ({"a": {"kind": "interleaved", "of": [BANDIT, BANDIT], "method": "x"}}, "method"),
        ({"a": {"kind": "swaps", "of": BANDIT}}, "does not learn"),
        ({"a": {"kind": "swaps", "depth": 1}}, "depth"),
        ({"a": {"kind": "contextual"}}, "one of them"),
        ({"a": {"kind": "contextual", "num_features": 2, "features": ["x"]}}, "one of them"),
        ({"a": {"kind": "contextual", "num_features": 2, "settings": {"discount": 0.5}}}, "cannot forget|discount"),
        ({"a": {**BANDIT, "max_queries": 0}}, "max_queries"),
    ],
)
def test_settings_that_cannot_be_served_are_refused_before_anything_is_opened(policies, message):
    with pytest.raises(RankPolicyError, match=message):
        ServiceConfig(policies=policies).made_policies()


def test_a_policy_that_takes_too_long_is_replaced_by_the_callers_order(tmp_path, model, monkeypatch):
    from rankpolicy.service.policies.ranker import RankerPolicy

    quick, has_answered = RankerPolicy.order, threading.Event()

    def slow(self, request, *, generator):
        has_answered.wait(LONGEST_WAIT)
        return quick(self, request, generator=generator)

    policies = {"default": {"kind": "ranker", "model": model}}
    with client_of(tmp_path / "service.db", policies=policies, rank_budget_seconds=0.05) as http:
        post(http, "/v1/rank", REQUEST)  # whatever has to be loaded is
        monkeypatch.setattr(RankerPolicy, "order", slow)
        answer = post(http, "/v1/rank", REQUEST).json()
        assert ([item["id"] for item in answer["items"]], answer["mode"]) == (["a", "b", "c"], "fallback")
        assert "time budget" in answer["no_propensities"]
        monkeypatch.setattr(RankerPolicy, "order", quick)
        has_answered.set()
        wait_until(lambda: post(http, "/v1/rank", REQUEST).json()["mode"] == "served")
        answer = post(http, "/v1/rank", REQUEST).json()
        assert [item["id"] for item in answer["items"]] == BEST_FIRST[:3]
