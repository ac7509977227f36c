"""Azure's Personalizer: Microsoft's clients, unchanged, against a server process; what is learned, and what is refused."""

import json
import random
import signal
import subprocess

import numpy as np
import pytest

from rankpolicy.service.domain.messages import Item, RankRequest, Slot
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.policies import SERVED
from tests.service.parts import Parts, events, ranked
from tests.service.test_end_to_end import Server, command
from tests.service.test_http import client_of, post
from tests.waits import wait_until

CONFIG = """
window_seconds = {window}
list_seconds = 60

[policies.home]
kind = "personalizer"
epsilon = 0.2

[policies.random]
kind = "uniform"
"""
RANK = "/personalizer/v1.0/rank"
SLOTS = "/personalizer/v1.1-preview.1/multislot"
ACTIONS = [{"id": name, "features": [{"taste": taste, "grams": 100}]} for name, taste in
           [("pasta", "salty"), ("cake", "sweet"), ("juice", "sour"), ("soup", "salty")]]  # fmt: skip
LIKED = {("monday", "salty"): 0.8, ("sunday", "sweet"): 0.8}  # everything else: 0.2
TASTE = {action["id"]: action["features"][0]["taste"] for action in ACTIONS}
POLICIES = {"home": {"kind": "personalizer"}, "any": {"kind": "uniform"}}


def chance(day, action):
    return LIKED.get((day, TASTE[action]), 0.2)


@pytest.fixture
def http(tmp_path):
    reports = []
    with client_of(tmp_path / "service.db", policies=POLICIES, reports=reports, window_seconds=2) as made:
        yield made
    assert reports == []


def rank(http, **more):
    return post(http, RANK, {"actions": ACTIONS, "contextFeatures": [{"day": "monday"}]} | more)


def logged(http, event_id):
    return http.get(f"/v1/rankings/{event_id}").json()


def test_microsofts_client_learns_what_users_like(tmp_path):
    personalizer = pytest.importorskip("azure.cognitiveservices.personalizer")
    from msrest.authentication import CognitiveServicesCredentials
    from msrest.exceptions import HttpOperationError

    models = personalizer.models
    server = Server(tmp_path, config=CONFIG.format(window=0.5))
    try:
        client = personalizer.PersonalizerClient(server.url, CognitiveServicesCredentials("key"))
        actions = [models.RankableAction(id=action["id"], features=action["features"]) for action in ACTIONS]
        users, gains = random.Random(0), []
        for number in range(500):
            day = users.choice(["monday", "sunday"])
            request = models.RankRequest(actions=actions, context_features=[{"day": day}], event_id=f"event {number}")
            answer = client.rank(request)
            assert sum(action.probability for action in answer.ranking) == pytest.approx(1)
            assert answer.ranking[0].id == answer.reward_action_id
            liked = chance(day, answer.reward_action_id)
            client.events.reward(answer.event_id, value=float(users.random() < liked))
            gains.append(liked - np.mean([chance(day, action["id"]) for action in ACTIONS]))
        late = np.array(gains[250:])  # the expected reward of what was shown against that of a random action
        assert late.mean() > 4 * late.std(ddof=1) / len(late) ** 0.5
        client.events.activate(answer.event_id)
        with pytest.raises(models.ErrorResponseException, match="different ids"):
            client.rank(models.RankRequest(actions=[actions[0], actions[0]]))
        with pytest.raises(HttpOperationError, match="Not Found"):
            client.events.reward("nobody", value=1)
        wait_until(lambda: _learned(tmp_path) == 500)
    finally:
        server.end(signal.SIGTERM)
    words = ["--policy", "home", "--against", "random", "--event", "reward", "--json"]
    judged = json.loads(_run("evaluate", *words, "--db", tmp_path / "service.db"))
    assert judged["lists"] == 500
    against = judged["against"]
    # Two of four actions are liked on mondays, one on sundays; the mean square of the weights times rewards is below .6.
    assert against["value"] == pytest.approx((0.5 + 0.35) / 2, abs=4 * (0.6 / 500) ** 0.5)
    assert against["interval"][0] > 0


def _learned(folder):
    replayed = json.loads(_run("replay", "--db", folder / "service.db", "--json"))
    return replayed["policies"][0]["lessons"]


def _run(*words):
    return subprocess.run(command("service", *words), capture_output=True, text=True, check=True).stdout


def test_microsofts_second_client_fills_slots(tmp_path):
    second = pytest.importorskip("azure.ai.personalizer")
    from azure.core.credentials import AzureKeyCredential
    from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

    server = Server(tmp_path, config=CONFIG.format(window=60))
    try:
        client = second.PersonalizerClient(server.url, AzureKeyCredential("key"))
        slots = [{"id": "top", "baselineAction": "cake", "features": [{"size": "large"}], "excludedActions": ["soup"]},
                 {"id": "side", "baselineAction": "pasta"}]  # fmt: skip
        body = {"actions": ACTIONS, "slots": slots, "contextFeatures": [{"day": "monday"}], "eventId": "mine"}
        answer = client.rank_multi_slot(body)
        assert (answer["eventId"], [slot["id"] for slot in answer["slots"]]) == ("mine", ["top", "side"])
        assert len({slot["rewardActionId"] for slot in answer["slots"]} | {"soup"}) == 3 or (
            answer["slots"][1]["rewardActionId"] == "soup"
        )
        client.reward_multi_slot("mine", {"reward": [{"slotId": "side", "value": 1.0}]})
        client.activate_multi_slot("mine")
        assert client.rank({"actions": ACTIONS})["rewardActionId"] in TASTE
        with pytest.raises(ResourceNotFoundError):
            client.reward("nobody", {"value": 1.0})
        with pytest.raises(HttpResponseError, match="slotId must be one of top, side"):
            client.reward_multi_slot("mine", {"reward": [{"slotId": "none", "value": 1.0}]})
    finally:
        server.end(signal.SIGTERM)


def test_rewards_are_logged_and_learned_and_the_default_where_none_came(http):
    answer = rank(http, eventId="a").json()
    assert rank(http, eventId="a").json() == answer
    assert [post(http, "/personalizer/v1.0/events/a/reward", {"value": value}).status_code for value in (0.5, -1)] == [
        204,
        204,
    ]
    rank(http, eventId="b")
    wait_until(lambda: logged(http, "a")["learned"] and logged(http, "b")["learned"])
    assert logged(http, "a")["rewards"] == {answer["rewardActionId"]: 0.5}  # the first counts
    assert list(logged(http, "b")["rewards"].values()) == [0.0]
    assert post(http, "/personalizer/v1.0/events/a/reward", {"value": 1}).status_code == 204  # too late
    assert http.get("/v1/policies").json()["policies"][0]["report"]["lists"] == 2
    assert logged(http, "a")["shown"]["propensities"] == [answer["ranking"][0]["probability"]]


def test_a_deferred_event_is_learned_only_after_it_was_activated(http):
    for name in ("shown", "unseen"):
        rank(http, eventId=name, deferActivation=True)
        post(http, f"/personalizer/v1.0/events/{name}/reward", {"value": 1})
    assert http.post("/personalizer/v1.0/events/shown/activate").status_code == 204
    wait_until(lambda: logged(http, "shown")["learned"] and logged(http, "unseen")["learned"])
    assert [logged(http, name)["activated"] for name in ("shown", "unseen")] == [True, False]
    assert http.get("/v1/policies").json()["policies"][0]["report"]["lists"] == 1


def test_excluded_actions_stay_where_they_are_and_nested_features_are_read(http):
    more = [{"nested": {"deeper": [1, True, {"x": "y"}]}, "no": None}]
    answer = rank(http, excludedActions=["cake"], contextFeatures=more).json()
    assert answer["ranking"][1] == {"id": "cake", "probability": 0.0}
    assert sum(action["probability"] for action in answer["ranking"]) == pytest.approx(1)
    shown = logged(http, answer["eventId"])["shown"]
    assert len(shown["memo"]["context"][0]) == 3


@pytest.mark.parametrize(
    ("path", "change", "words"),
    [
        (RANK, {"actions": []}, "length >= 1"),
        (RANK, {"actions": [{"id": str(number)} for number in range(51)]}, "length <= 50"),
        (RANK, {"actions": [{"id": "x" * 257}]}, "length <= 256"),
        (RANK, {"actions": [{"id": "a", "features": [{str(number): 1 for number in range(65)}]}]}, "at most 64 features"),
        (RANK, {"contextFeatures": [{str(number): 1 for number in range(65)}]}, "at most 64 features"),
        (RANK, {"contextFeatures": [{"a": 10**400}]}, "double"),
        (RANK, {"contextFeatures": [{"a": [[[[[[[[[[1]]]]]]]]]]}]}, "nested"),
        (RANK, {"actions": [{"id": "a", "features": [{"a": "x" * 5000}]}]}, "4096"),
        (RANK, {"contextFeatures": "monday"}, "array"),
        (RANK, {"excludedActions": ["nobody"]}, "none of them"),
        (RANK, {"excludedActions": ["pasta", "cake", "juice", "soup"]}, "not excluded"),
        (RANK, {"eventId": "x" * 257}, "length <= 256"),
        (RANK, {"eventId": "a\0"}, "U+0000"),
        (f"{SLOTS}/rank", {"slots": []}, "length >= 1"),
        (f"{SLOTS}/rank", {"slots": [{"id": "s"}]}, "baselineAction"),
        (f"{SLOTS}/rank", {"slots": [{"id": "s", "baselineAction": "nobody"}]}, "none of them"),
        (f"{SLOTS}/rank", {"slots": [{"id": "s", "baselineAction": "cake"}] * 2}, "differ"),
        (f"{SLOTS}/rank", {"slots": [{"id": "s", "baselineAction": "cake", "excludedActions": list(TASTE)}]}, "must have an action"),
        ("/personalizer/v1.0/events/mine/reward", {"value": 1.5}, "<= 1"),
        ("/personalizer/v1.0/events/mine/reward", {"value": "good"}, "float"),
    ],
)  # fmt: skip
def test_what_breaks_a_limit_is_a_400_in_personalizers_form(http, path, change, words):
    rank(http, eventId="mine")
    refused = post(http, path, change if "events" in path else {"actions": ACTIONS} | change)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["code"] == "BadRequest"
    assert words in refused.json()["error"]["message"], refused.text


@pytest.mark.parametrize("path", ["reward", "activate"])
def test_an_unknown_event_is_a_404(http, path):
    refused = post(http, f"/personalizer/v1.0/events/nobody/{path}", {"value": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "ResourceNotFound")
    shown = post(http, "/v1/rank", {"query": "q", "items": [{"id": "a"}], "policy": "any"}).json()
    assert post(http, f"/personalizer/v1.0/events/{shown['ranking_id']}/{path}", {"value": 1}).status_code == 404


def test_a_service_without_such_a_policy_says_so(tmp_path):
    with client_of(tmp_path / "service.db", policies={"any": {"kind": "uniform"}}) as http:
        assert 'kind = "personalizer"' in rank(http).json()["error"]["message"]


REQUEST = RankRequest(
    query="q",
    items=[Item(id=name, features={"taste": taste}) for name, taste in TASTE.items()],
    context={"day": "monday", "hour": 9},
    slots=[Slot(id="top", features={"size": "large"}, excluded=["soup"]), Slot(id="side")],
)


@pytest.mark.parametrize("exploration", ["epsilon-greedy", "softmax"])
def test_actions_come_as_often_as_propensities_say(exploration):
    policy = SERVED.named("personalizer")(exploration=exploration)
    _teach(policy)
    drawn, expected = {}, {}
    for number in range(3000):
        ordered = policy.order(REQUEST, generator=generator_of(b"s", str(number)))
        drawn[tuple(ordered.items)] = drawn.get(tuple(ordered.items), 0) + 1
        expected[tuple(ordered.items)] = np.prod(ordered.propensities)
        assert policy.step_probabilities([REQUEST], [ordered.items]) == [pytest.approx(ordered.propensities)]
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) == 9
    for key, probability in expected.items():
        assert abs(drawn[key] / 3000 - probability) <= 4.5 * (probability * (1 - probability) / 3000) ** 0.5


def _teach(policy, number=30):
    from rankpolicy.service.domain.marks import fresh_marks, mark
    from rankpolicy.service.domain.messages import NewEvent
    from rankpolicy.service.domain.records import Lesson, ShownList

    rng = np.random.default_rng(0)
    lessons = []
    for seq in range(number):
        ordered = policy.order(REQUEST, generator=generator_of(b"t", str(seq)))
        shown = ShownList(
            ranking_id="r", policy="p", policy_version=1, query="q", items=ordered.items, rewards=ordered.rewards
        )
        marks = fresh_marks(shown)
        mark(
            marks,
            shown,
            NewEvent(event_id="e", ranking_id="r", item="i", type="reward", value=float(rng.random())),
            seq % 2,
        )
        lessons.append(
            Lesson(seq=seq + 1, version=1, query="q", items=ordered.items, clicks=bytes(marks), memo=ordered.memo)
        )
    policy.learn(lessons)
    return lessons


def test_the_state_is_the_fold_of_the_lessons_and_bounded():
    blocks, at_once = (SERVED.named("personalizer")(columns=12) for _ in range(2))
    lessons = _teach(at_once)
    for start, end in ((0, 1), (1, 7), (7, 30)):
        blocks.learn(lessons[start:end])
    assert blocks.state() == at_once.state()
    assert blocks.report()["features"] == 12
    assert blocks.report()["without_column"] > 0
    again = SERVED.named("personalizer")(columns=12)
    again.restore(blocks.state())
    assert again.state() == blocks.state()
    drawn = [policy.order(REQUEST, generator=generator_of(b"s", "r")) for policy in (blocks, again)]
    assert drawn[0] == drawn[1]


def test_weights_are_those_of_ridge_regression():
    """One numeric feature x, no context: constant and asinh(x), prior variance 1, noise variance 1/4."""
    policy = SERVED.named("personalizer")()
    request = RankRequest(query="q", items=[Item(id="a", features={"x": 2.0})], cutoff=1)
    ordered = policy.order(request, generator=generator_of(b"s", "r"))
    from rankpolicy.service.domain.records import Lesson

    marks = np.array([1.0], "<f8").tobytes() + b"\1"
    policy.learn([Lesson(seq=1, version=1, query="q", items=["a"], clicks=marks, memo=ordered.memo)] * 2)
    x = np.array([[1, np.arcsinh(2.0)]] * 2)
    expected = np.linalg.solve(x.T @ x / 0.25 + np.eye(2), x.T @ [1, 1] / 0.25)
    assert policy.order(request, generator=generator_of(b"s", "r")).scores == pytest.approx([x[0] @ expected])


def test_rewards_survive_a_crash_and_the_check_of_the_log(tmp_path):
    from rankpolicy.service.domain.messages import NewEvent

    parts = Parts(tmp_path / "service.db", {"home": {"kind": "personalizer", "several_rewards": "sum"}})
    shown = parts.do(ranked(parts.live, "a", REQUEST)).shown
    for number, value in enumerate((0.25, 0.5)):
        parts.do(
            events(NewEvent(event_id=str(number), ranking_id="a", item=shown.items[0], type="reward", value=value))
        )
    parts.store.close()
    parts.open()
    parts.end_windows()
    (lesson,) = parts.store.lessons(1)
    assert np.frombuffer(lesson.clicks[:-1], "<f8")[0] == 0.75
    parts.store.close()
    replayed = json.loads(_run("replay", "--db", tmp_path / "service.db", "--json"))
    assert replayed["policies"][0]["lessons"] == 1
