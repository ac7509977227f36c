"""Policies that are served: their lists come as often as their propensities say."""

import itertools
import math

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.service.config import DEFAULT_POLICY, ServiceConfig
from rankpolicy.service.domain.messages import Item, RankRequest
from rankpolicy.service.domain.records import Lesson
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.policies import SERVED
from rankpolicy.types import RankPolicyError
from tests.service.parts import request_of
from tests.service.test_replay import SERVED_BANDITS

NUM_DRAWS = 4000
FEATURES = {"a": [1.0, 0.5], "b": [0.2, 0.1], "c": [-0.5, 2.0], "d": [0.4, 0.4]}
RANKED = RankRequest(query="q", items=[Item(id=name, features=row) for name, row in FEATURES.items()], cutoff=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(float) + (X[:, 1] > 0.5)
    path = tmp_path_factory.mktemp("models") / "model.rp"
    ranker = rp.Regression(model="linear").fit(X, y, qid=np.repeat(np.arange(12), 5), progress=False)
    ranker.save(path)
    return str(path)


def policy_for(name, model):
    if name == "epsilon-greedy":
        policy = SERVED.named("bandit")(bandit=name, settings={"epsilon": 0.4})
        lesson = Lesson(seq=1, version=1, query="q", items=list("abcd"), clicks=bytes([0, 1, 1, 0]))
        policy.learn([lesson] * 3)
        return policy, request_of("q", "abcd", cutoff=2)
    if name == "random lists":
        policy = SERVED.named("bandit")(bandit="epsilon-greedy", settings={"epsilon": 0.2}, random_lists=0.3)
        policy.learn([Lesson(seq=1, version=1, query="q", items=list("abcd"), clicks=bytes([0, 1, 1, 0]))])
        return policy, request_of("q", "abcd", cutoff=2)
    if name == "random":
        return SERVED.named("bandit")(bandit="random"), request_of("q", "abcd", cutoff=2)
    if name == "uniform":
        return SERVED.named("uniform")(), request_of("q", "abcd", cutoff=2)
    return SERVED.named("ranker")(model=model, order_by="sampled", temperature=0.5), RANKED


@pytest.mark.parametrize("name", ["epsilon-greedy", "random lists", "random", "uniform", "ranker"])
def test_lists_come_as_often_as_propensities_say(name, model):
    policy, request = policy_for(name, model)
    drawn, expected = {}, {}
    for number in range(NUM_DRAWS):
        ordered = policy.order(request, generator=generator_of(b"secret", str(number)))
        key = tuple(ordered.items)
        drawn[key] = drawn.get(key, 0) + 1
        expected[key] = math.prod(ordered.propensities)
    assert len(expected) == 12  # every list of two of four items has a chance here
    assert sum(expected.values()) == pytest.approx(1)
    for key, probability in expected.items():
        error = math.sqrt(probability * (1 - probability) / NUM_DRAWS)
        assert abs(drawn[key] / NUM_DRAWS - probability) <= 4.5 * error


def test_propensities_of_long_lists_do_not_underflow():
    """Of the default policy; nothing is learned yet, so its own lists are random too, and both kinds are equally likely."""
    settings = {name: value for name, value in DEFAULT_POLICY.items() if name != "kind"}
    policy = SERVED.named("bandit")(**settings)
    request = request_of("q", [str(number) for number in range(2_000)], cutoff=2_000)
    expected = [1 / (2_000 - position) for position in range(2_000)]
    for number in range(20):  # one in twenty lists is of the random kind
        ordered = policy.order(request, generator=generator_of(b"secret", str(number)))
        assert ordered.propensities == pytest.approx(expected)


def test_random_lists_mix_with_lists_of_the_bandit():
    policy = SERVED.named("bandit")(bandit="epsilon-greedy", settings={"epsilon": 0.0}, random_lists=0.25)
    policy.learn([Lesson(seq=1, version=1, query="q", items=list("ab"), clicks=bytes([0, 1]))])
    steps = {}
    for number in range(100):
        ordered = policy.order(request_of("q", "ab"), generator=generator_of(b"secret", str(number)))
        steps["".join(ordered.items)] = ordered.propensities
    assert steps["ba"] == pytest.approx([0.75 + 0.25 / 2, 1.0])
    assert steps["ab"] == pytest.approx([0.25 / 2, 1.0])
    with pytest.raises(RankPolicyError, match="random_lists must be 0 for dcm-ts"):
        SERVED.named("bandit")(bandit="dcm-ts", random_lists=0.1)


def test_the_log_of_the_default_policy_can_be_evaluated():
    """Every list, before and after learning, has a propensity that is neither unknown nor certain."""
    ((policy, _),) = ServiceConfig().made_policies().values()
    request = request_of("q", "abcdef", cutoff=3)
    for _ in range(2):
        for number in range(50):
            ordered = policy.order(request, generator=generator_of(b"secret", str(number)))
            assert math.prod(ordered.propensities) >= 0.05 / (6 * 5 * 4)
            assert min(ordered.propensities) < 1
        policy.learn([Lesson(seq=1, version=1, query="q", items=list("abcdef"), clicks=bytes([0, 1, 1, 0, 0, 0]))])


def test_a_sampled_ranker_has_the_probabilities_of_plackett_luce(model):
    policy = SERVED.named("ranker")(model=model, order_by="sampled", temperature=0.5)
    scores = rp.load(model).predict(np.array(list(FEATURES.values())))
    reference = rp.policies.PlackettLuce(torch.from_numpy(scores / 0.5)[None], torch.ones(1, 4, dtype=torch.bool))
    names = list(FEATURES)
    for number in range(20):
        ordered = policy.order(RANKED, generator=generator_of(b"s", str(number)))
        ranking = torch.tensor([[names.index(item) for item in ordered.items]])
        assert sum(map(math.log, ordered.propensities)) == pytest.approx(float(reference.log_prob(ranking)[0]))
        assert ordered.scores == [scores[names.index(item)] for item in ordered.items]


def test_a_sorted_ranker_shows_what_the_ranker_ranks(model):
    ranker = rp.load(model)
    policy = SERVED.named("ranker")(model=model)
    ordered = policy.order(RANKED, generator=generator_of(b"s", "r"))
    (best_first,) = ranker.rank(np.array(list(FEATURES.values())), group=[4])
    assert ordered.items == [list(FEATURES)[place] for place in best_first[:2]]
    assert ordered.propensities == [1.0, 1.0]
    assert len(policy.model_sha256) == 64
    empty = RankRequest(query="q", items=[])
    assert policy.order(empty, generator=generator_of(b"s", "r")).items == []


def test_features_come_by_name_where_the_model_knows_names(tmp_path):
    import polars

    frame = polars.DataFrame({"price": [1.0, 2.0, 3.0, 4.0], "stars": [0.0, 1.0, 0.0, 1.0]})
    rp.Regression(model="linear").fit(frame, [0, 1, 0, 1], qid=[0, 0, 1, 1], progress=False).save(tmp_path / "model.rp")
    policy = SERVED.named("ranker")(model=str(tmp_path / "model.rp"))
    named = RankRequest(query="q", items=[Item(id="a", features={"stars": 1.0, "price": 2.0, "more": 3.0})])
    plain = RankRequest(query="q", items=[Item(id="a", features=[2.0, 1.0])])
    shown = [policy.order(request, generator=generator_of(b"s", "r")).scores for request in (named, plain)]
    assert shown[0] == shown[1]
    with pytest.raises(RankPolicyError, match="must have the feature 'price'"):
        policy.order(
            RankRequest(query="q", items=[Item(id="a", features={"prize": 1.0, "star": 1})]),
            generator=generator_of(b"s", "r"),
        )


@pytest.mark.parametrize(
    ("features", "message"),
    [(None, "must have 2 features; it has none"), ([1.0], "it has 1"), ({"x": 1.0}, "have no names: send lists of 2")],
)
def test_features_that_do_not_fit_are_refused(model, features, message):
    request = RankRequest(query="q", items=[Item(id="a", features=features)])
    with pytest.raises(RankPolicyError, match=message):
        SERVED.named("ranker")(model=model).order(request, generator=generator_of(b"s", "r"))


def test_what_cannot_be_served_is_refused_at_once(tmp_path, model):
    rp.bandits.DcmTS(num_items=2, cutoff=1).save(tmp_path / "bandit.rp")
    with pytest.raises(RankPolicyError, match="must be a ranker; it is a DcmTS"):
        SERVED.named("ranker")(model=str(tmp_path / "bandit.rp"))
    with pytest.raises(RankPolicyError, match=r"temperature=2\.0 would not be read"):
        SERVED.named("ranker")(model=model, temperature=2.0)
    with pytest.raises(RankPolicyError, match="counts clicks and observations"):
        SERVED.named("bandit")(bandit="top-rank")


@pytest.mark.parametrize("bandit", SERVED_BANDITS)
def test_a_bandit_has_propensities_or_says_why_not(bandit):
    policy = SERVED.named("bandit")(bandit=bandit)
    ordered = policy.order(request_of("q", "abcd"), generator=generator_of(b"s", "r"))
    assert len(ordered.items) == 3
    if bandit in ("epsilon-greedy", "random"):
        assert ordered.propensities == pytest.approx([1 / 4, 1 / 3, 1 / 2])
        assert ordered.no_propensities is None
    else:
        assert ordered.propensities is None
        assert ordered.no_propensities.startswith(bandit)


@pytest.mark.parametrize("kind", ["bandit", "contextual"])
def test_the_best_item_goes_where_positions_say(kind):
    names = {"bandit": "dcm-kl-ucb", "contextual": "dcm-lin-ucb"}

    def shown(**settings):
        features = {} if kind == "bandit" else {"num_features": 2}
        policy = SERVED.named(kind)(bandit=names[kind], settings=settings, **features)
        clicks = bytes([1, 1, 0, 0])
        memo = {"features": list(FEATURES.values())}
        policy.learn([Lesson(seq=1, version=1, query="q", items=list("abcd"), clicks=clicks, memo=memo)] * 30)
        items = [Item(id=name, features=row) for name, row in FEATURES.items()]
        request = RankRequest(query="q", items=items, cutoff=4)
        return policy.order(request, generator=generator_of(b"s", "r")).items

    best_first = shown()
    assert shown(positions=[0.1, 0.9, 0.5]) == [best_first[k] for k in (2, 0, 1, 3)]
    assert shown(positions=[1, 2, 0]) == [best_first[k] for k in (2, 0, 1, 3)]


@pytest.mark.parametrize("bandit", SERVED_BANDITS)
def test_ordering_changes_nothing_and_can_be_repeated(bandit):
    policy = SERVED.named("bandit")(bandit=bandit)
    policy.learn([Lesson(seq=1, version=1, query="q", items=["a", "b"], clicks=b"\1\0")])
    state = policy.state()
    lists = [policy.order(request_of("q", "abcdef"), generator=generator_of(b"s", "r")).items for _ in range(3)]
    assert lists[0] == lists[1] == lists[2]
    assert policy.state() == state


@pytest.mark.parametrize("bandit", SERVED_BANDITS)
def test_states_do_not_depend_on_how_lessons_are_cut_into_blocks(bandit):
    rng = np.random.default_rng(0)
    lessons = [
        Lesson(
            seq=number,
            version=1,
            query=f"q{number % 3}",
            items=rng.permutation(list("abcdef"))[: 1 + number % 5].tolist(),
            clicks=rng.integers(0, 2, 1 + number % 5).astype(np.int8).tobytes(),
        )
        for number in range(60)
    ]
    whole, parts = (SERVED.named("bandit")(bandit=bandit) for _ in range(2))
    whole.learn(lessons)
    for start, end in itertools.pairwise([0, 1, 2, 7, 30, 60]):
        parts.learn(lessons[start:end])
    assert whole.state() == parts.state()
    again = SERVED.named("bandit")(bandit=bandit)
    again.restore(whole.state())
    assert again.state() == whole.state()


def test_the_callers_order_stays():
    ordered = SERVED.named("given")().order(request_of("q", "cab", cutoff=2), generator=generator_of(b"s", "r"))
    assert (ordered.items, ordered.propensities) == (["c", "a"], [1.0, 1.0])
