"""The Open Bandit Dataset, which is not part of the project: RANKPOLICY_DATA says where its small version is."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from rankpolicy.off_policy.estimates import estimate_policy_value
from rankpolicy.off_policy.table_file import read_open_bandit
from rankpolicy.off_policy.targets import TargetProbabilities
from rankpolicy.policies import PlackettLuce
from rankpolicy.types import RankPolicyError

FOLDER = Path(os.environ.get("RANKPOLICY_DATA", "nowhere"), "obd_small")

needs_data = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)

# The Beta parameters of Bernoulli Thompson sampling as it ran on the campaign "all", published with the data.
CLICKED = """
47 8 62 142 3 14 7 857 12 15 6 100 48 23 71 61 13 16 518 30 7 4 23 8 10 11 11 18 121 11 11 10 14 9 204 58 3 19 42 1013 2 328 15 31 14 138
45 55 23 38 10 401 52 6 3 6 5 32 35 133 52 820 43 195 8 42 40 4 32 30 9 22 6 23 5 54 8 22 65 246"""
NOT_CLICKED = """
12198 3566 15993 35522 2367 4609 3171 181745 4372 4951 3100 24665 13210 7061 18061 17449 5644 6787 111326 8776 3334 2271 7389 2659 3665
4724 3561 5085 27407 4601 4756 4120 4736 3788 45292 14719 2189 5589 11995 222255 2308 70034 4801 8274 5421 31912 12213 13576 6230 10382
4141 85731 12811 2707 2250 2668 2886 9581 9465 28336 12062 162793 12107 41240 3162 11604 10818 2923 8897 8654 4000 6580 3174 6766 2602
14506 3968 7523 16532 51964"""


def thompson_marginals(num_draws=100_000):
    """P(item at position) (position, item) as the dataset's authors estimate it: from this many draws of this generator."""
    parameters = [np.array(text.split(), float) for text in (CLICKED, NOT_CLICKED)]
    generator = np.random.RandomState(12345)  # the published figures come from this old generator
    counts = np.zeros((3, 80))
    for _ in range(10):
        tops = np.argsort(-generator.beta(*parameters, size=(num_draws // 10, 80)), axis=1)[:, :3]
        counts += [np.bincount(tops[:, position], minlength=80) for position in range(3)]
    return counts / num_draws


@needs_data
def test_documented_estimate_of_thompson_sampling_from_random_lists():
    """The quickstart of the authors' package gives, on these files: ipw 0.004553, 95 % bootstrap interval 0.001531 to 0.009254."""
    log = read_open_bandit(FOLDER, behavior="random", campaign="all")
    probabilities = thompson_marginals()[log.contexts[:, None], log.items]
    target = TargetProbabilities(steps=probabilities, marginals=probabilities)
    for name in ("ips", "iips", "rips"):
        assert estimate_policy_value(log, target, estimator=name).value == pytest.approx(0.004553, abs=5e-7)
    drawn = estimate_policy_value(log, target, interval="bootstrap", num_resamples=2000)
    # A quantile of 2000 skewed draws is known to some 5 %.
    np.testing.assert_allclose(drawn.interval, (0.001531, 0.009254), rtol=0.1)
    on_policy = read_open_bandit(FOLDER, behavior="bts", campaign="all").rewards.mean()
    assert drawn.interval[0] < on_policy < drawn.interval[1]


@needs_data
@pytest.mark.parametrize(("campaign", "num_items"), [("all", 80), ("men", 34), ("women", 46)])
def test_uniform_policy_from_thompson_sampling(campaign, num_items):
    """Both policies ran side by side: the click rate of random lists is the truth, up to its own error."""
    log = read_open_bandit(FOLDER, behavior="bts", campaign=campaign)
    random = read_open_bandit(FOLDER, behavior="random", campaign=campaign)
    assert (len(log), log.num_positions, log.contexts.max()) == (10_000, 1, 2)
    np.testing.assert_allclose(random.propensities, 1 / num_items)
    uniform = PlackettLuce(torch.zeros(3, num_items), torch.ones(3, num_items, dtype=torch.bool))
    truth = estimate_policy_value(random, uniform)
    assert truth.value == pytest.approx(random.rewards.mean(), abs=1e-12)
    for name in ("ips", "snips", "rips", "iips", "cascade-dr"):
        estimate = estimate_policy_value(log, uniform, estimator=name)
        apart = abs(estimate.value - truth.value)
        assert apart < 3 * np.hypot(estimate.standard_error, truth.standard_error)


def test_reading(tmp_path):
    text = ",timestamp,item_id,position,click,propensity_score,user\n0,x,4,3,1,0.25,u\n1,x,2,1,0,0.5,u\n"
    for name, content in (("all", text.encode()), ("men", gzip.compress(text.encode()))):
        folder = tmp_path / "bts" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.csv{'.gz' if name == 'men' else ''}").write_bytes(content)
        log = read_open_bandit(tmp_path, behavior="bts", campaign=name)
        assert log.items.tolist() == [[4], [2]]
        assert log.contexts.tolist() == [2, 0]
        assert log.rewards.tolist() == [[1.0], [0.0]]
        assert log.propensities.tolist() == log.marginal_propensities.tolist() == [[0.25], [0.5]]
    with pytest.raises(RankPolicyError, match="must be a file; there is none"):
        read_open_bandit(tmp_path)
    with pytest.raises(RankPolicyError, match=r"Unknown behavior 'bst'\. Did you mean 'bts'"):
        read_open_bandit(tmp_path, behavior="bst")
    (tmp_path / "bts" / "all" / "all.csv").write_text("a,b\n1,2\n")
    with pytest.raises(RankPolicyError, match="with the columns item_id, position"):
        read_open_bandit(tmp_path, behavior="bts")
