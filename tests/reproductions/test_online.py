"""Users of the literature, and smoke runs of what is learned online."""

import os
from pathlib import Path

import numpy as np
import pytest

from reproductions.online import learning, safety
from reproductions.online.users import users_of
from reproductions.target import Setup

GRADES = np.tile([2, 0, 1, -1], (20_000, 1))


@pytest.mark.parametrize("kind", ["perfect", "navigational", "position-based"])
def test_users_click_as_often_as_they_say(kind):
    users = users_of(kind, 3, 4)
    clicks = users.clicks(GRADES, np.random.default_rng(0))
    reading, expected = 1.0, []
    for position, grade in enumerate((2, 0, 1)):
        chance = users.click[grade] * users.examination[position]
        expected.append(reading * chance)
        reading *= 1 - chance * users.stop[grade]
    np.testing.assert_allclose(clicks.mean(0), [*expected, 0.0], atol=4 * 0.5 / np.sqrt(len(GRADES)))


def test_reversed_users_prefer_the_worst():
    users = users_of("perfect", 5, 10).reversed()
    assert users.click.tolist() == [1.0, 0.8, 0.4, 0.2, 0.0]


@pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)
@pytest.mark.parametrize("target", [learning, safety], ids=("learning", "safety"))
def test_smoke(target):
    outcome = target.run(Setup(data=Path(os.environ["RANKPOLICY_DATA"]), is_smoke=True))
    rows = outcome.rows
    if target is learning:
        assert {row["method"] for row in rows} == {learning.SERVES, learning.CANDIDATE, "pdgd", "dbgd"}
        assert all(0 < row["ndcg"] < 1 for row in rows)
    else:
        assert all(0 <= row["largest_loss"] < safety.BUDGET for row in rows)


def test_claims_are_of_paired_differences():
    rows = [
        {"dataset": dataset, "users": users, "run": run, "clicks": clicks, "method": method}
        | {"logger": 0.4, "labels": 0.5, "lists": 1, "promotions": 0}
        | {"ndcg": 0.4 + 0.01 * run + (0.095 if method == learning.SERVES else 0.05)}
        for dataset in learning.DATASETS
        for users in learning.USERS
        for run in range(2)
        for clicks in (100, 1000)
        for method in (learning.SERVES, learning.CANDIDATE, "pdgd")
    ]
    verdicts = {claim.claim: claim.verdict for claim in learning._claims(rows, (100, 1000))}
    assert verdicts["perfect users: at least 90 % of the gap to labels after 1,000 clicks"] == "holds"
    assert verdicts["informational users: the policy that serves, ahead of PDGD after 100 clicks"] == "holds"
    assert verdicts["informational users: the candidate, ahead of PDGD after 100 clicks"] == "contradicted"
