"""Users: draws against enumerated probabilities, rewards against enumeration of all click vectors, best lists against all lists."""

import itertools

import numpy as np
import pytest

from rankpolicy.clicks import CLICK_MODELS, make_click_model
from rankpolicy.simulation import (
    User,
    best_list,
    cascade_user,
    ccm_user,
    dbn_user,
    dcm_user,
    draw_clicks,
    expected_reward,
    pbm_user,
    random_user,
    sdbn_user,
    ubm_user,
)
from rankpolicy.types import RankPolicyError

ATTRACTION = np.array([0.5, 0.2, 0.9, 0.35, 0.6])
SATISFACTION = np.array([0.3, 0.9, 0.4, 0.8, 0.5])
EXAMINATION = [[1.0, 0.0, 0.0, 0.0], [0.6, 0.9, 0.0, 0.0], [0.2, 0.5, 0.7, 0.0]]
USERS = {
    "cascade": cascade_user(ATTRACTION),
    "dcm": dcm_user(ATTRACTION, [0.3, 0.9, 0.5]),
    "pbm": pbm_user(ATTRACTION, [0.5, 0.9, 0.3]),
    "ubm": ubm_user(ATTRACTION, EXAMINATION),
    "ccm": ccm_user(ATTRACTION, [0.8, 0.6, 0.3]),
    "dbn": dbn_user(ATTRACTION, SATISFACTION, 0.85),
    "sdbn": sdbn_user(ATTRACTION, SATISFACTION),
}
RANKING = np.array([4, 1, 2])


def sessions(name, user, ranking):
    """Every way a session can go: clicks, whether the user was satisfied by a click, and its probability."""
    a = user.attraction[ranking]

    def walk(k, clicks, satisfied, probability):
        if k == len(ranking) or probability == 0:
            yield clicks + (0,) * (len(ranking) - k), satisfied, probability
            return
        last = max((p + 1 for p in range(k) if clicks[p]), default=0)
        examination = user.parameters.get("examination")
        seen = examination[k] if name == "pbm" else examination[k, last] if name == "ubm" else 1.0
        clicked = probability * seen * a[k]
        skipped = probability - clicked
        match name:
            case "pbm" | "ubm":
                yield from walk(k + 1, (*clicks, 1), False, clicked)
                yield from walk(k + 1, (*clicks, 0), False, skipped)
            case "cascade" | "dcm":
                stops = 1.0 if name == "cascade" else user.parameters["stop"][k]
                yield (*clicks, 1) + (0,) * (len(ranking) - k - 1), True, clicked * stops
                yield from walk(k + 1, (*clicks, 1), False, clicked * (1 - stops))
                yield from walk(k + 1, (*clicks, 0), False, skipped)
            case "ccm":
                tau_1, tau_2, tau_3 = user.parameters["continuation"]
                go = tau_2 * (1 - a[k]) + tau_3 * a[k]
                for mark, mass, goes in ((1, clicked, go), (0, skipped, tau_1)):
                    yield from walk(k + 1, (*clicks, mark), False, mass * goes)
                    yield (*clicks, mark) + (0,) * (len(ranking) - k - 1), False, mass * (1 - goes)
            case _:
                gamma = user.parameters["continuation"][0] if name == "dbn" else 1.0
                s = user.parameters["satisfaction"][ranking[k]]
                rest = (0,) * (len(ranking) - k - 1)
                yield (*clicks, 1, *rest), True, clicked * s
                for mark, mass in ((1, clicked * (1 - s)), (0, skipped)):
                    yield from walk(k + 1, (*clicks, mark), False, mass * gamma)
                    yield (*clicks, mark, *rest), False, mass * (1 - gamma)

    yield from walk(0, (), False, 1.0)


@pytest.mark.parametrize("name", USERS)
def test_draws_match_enumerated_probabilities(name):
    user, num_draws = USERS[name], 8000
    expected = np.zeros((2, 2, 2))
    for clicks, _, probability in sessions(name, user, RANKING):
        expected[clicks] += probability
    assert expected.sum() == pytest.approx(1)
    generator, counts = np.random.default_rng(0), np.zeros((2, 2, 2))
    for _ in range(num_draws):
        counts[tuple(draw_clicks(user, RANKING, generator))] += 1
    error = np.sqrt(expected * (1 - expected) / num_draws)
    assert (np.abs(counts / num_draws - expected) <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("name", USERS)
def test_rewards_match_enumeration(name):
    counts_clicks = name in ("pbm", "ubm", "ccm")
    for ranking in ([4, 1, 2], [2, 0], [3], []):
        items = np.array(ranking, int)
        total = sum(
            probability * (sum(clicks) if counts_clicks else satisfied)
            for clicks, satisfied, probability in sessions(name, USERS[name], items)
        )
        assert expected_reward(USERS[name], items) == pytest.approx(total)


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_every_click_model_can_be_simulated(name):
    """Of a model that no kind of user above is: rewards, draws and the best list by enumeration."""
    user = make_click_model(name, random_state=1).user_of("0", range(6))
    best = best_list(user, np.arange(6), 3)
    highest = max(expected_reward(user, ranking) for ranking in itertools.permutations(range(6), 3))
    assert expected_reward(user, best) == pytest.approx(highest, abs=1e-12)
    assert set(draw_clicks(user, best, np.random.default_rng(0)).tolist()) <= {0, 1}


@pytest.mark.parametrize("name", USERS)
def test_no_list_is_better_than_the_best(name):
    for seed in range(8):
        user = USERS[name] if seed == 0 else random_user(name, 5, 3, random_state=seed)
        for available in (np.arange(5), np.array([4, 0, 3]), np.array([1, 2])):
            best = best_list(user, available, 3)
            assert len(set(best.tolist())) == min(3, len(available))
            assert set(best.tolist()) <= set(available.tolist())
            highest = max(expected_reward(user, ranking) for ranking in itertools.permutations(available, len(best)))
            assert expected_reward(user, best) == pytest.approx(highest, abs=1e-12)


def test_exchanges_find_the_best_of_many_ubm_lists():
    """Lists by attraction are best where examination falls with position and distance: known without enumeration."""
    user = random_user("ubm", 30, 5, random_state=0)
    np.testing.assert_array_equal(best_list(user, np.arange(30), 5), np.argsort(-user.attraction)[:5])


def test_bad_users_are_refused():
    for call, text in [
        (lambda: User(kind="dcmm", num_items=1, parameters={"attraction": [0.5]}), "Did you mean 'dcm'"),
        (lambda: User(kind="dcm", num_items=1, parameters={"attraction": [0.5]}), "parameters attraction, stop; got"),
        (
            lambda: User(kind="rctr", num_items=2, parameters={"rate": [0.5]}).with_attraction([1, 1]),
            "rctr user has none",
        ),
        (lambda: cascade_user([]), r"\(item,\)"),
        (lambda: cascade_user([0.5, np.nan]), "probabilities"),
        (lambda: dbn_user([0.5], [0.5, 0.5], 0.9), "satisfaction must be"),
        (lambda: ubm_user([0.5], [[0.5]]), "position \\+ 1"),
        (lambda: ccm_user([0.5], [0.5, 0.5]), r"\(3,\)"),
        (lambda: random_user("dcmm", 3, 2, random_state=0), "Did you mean 'dcm'"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            call()
