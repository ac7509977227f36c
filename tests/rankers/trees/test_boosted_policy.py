import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.data.sets.fair_synthetic import make_fair_synthetic
from rankpolicy.fairness import group_disparity
from rankpolicy.metrics import as_reward
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.policies import PlackettLuce
from rankpolicy.rankers.trees.policy_tree_objective import HESSIANS, PolicyTreeObjective, batch_of_all_queries
from tests.enumeration import all_rankings, enumerated_gradient

pytest.importorskip("lightgbm")

DATA = rp.make_web_search(60, random_state=3)
TRAIN, VALID = DATA[:40], DATA[40:]
TINY = rp.from_arrays(np.zeros((6, 1)), [2, 0, 1, 0, 1, 0], group=[5, 1])
SCORES = np.array([0.3, 1.2, -0.5, 0.0, 2.0, 0.7])
FAIR_TRAIN, FAIR_VALID, FAIR_TEST = (make_fair_synthetic(60, random_state=seed) for seed in (0, 1, 2))
FEW_TREES = {"reward": "ndcg", "num_trees": 60, "num_leaves": 7, "min_items_in_leaf": 20, "learning_rate": 0.1}


def objective(dataset, *, reward="ndcg@3", hessian="magnitude", normalize=False, fair=None):
    return PolicyTreeObjective.of(dataset, reward=reward, hessian=hessian, normalize=normalize, fair=fair)


def enumerated(reward):
    """Labels and scores of the first query, and dU/dscores over all its rankings."""
    labels, scores = torch.tensor(TINY.labels[None, :5].copy()).double(), torch.tensor(SCORES[None, :5])
    return labels, scores, enumerated_gradient(scores, labels, as_reward(reward))[0].numpy()


@pytest.mark.parametrize("reward", ["ndcg@3", "ndcg", "dcg@2 + 0.5*recall@3", "-avg_rank"])
def test_the_gradient_is_that_of_all_rankings(reward):
    labels, scores, expected = enumerated(reward)
    loss = objective(TINY, reward=reward)
    gradient, hessian = loss(SCORES)
    np.testing.assert_allclose(-gradient[:5], expected, rtol=1e-3, atol=1e-5)
    assert gradient[5] == hessian[5] == 0  # alone, and not relevant
    assert (hessian[:5] >= np.abs(gradient[:5]) - 1e-7).all()
    rankings, mask = all_rankings(5), torch.ones(1, 5, dtype=torch.bool)
    probabilities = PlackettLuce(scores, mask).log_prob(rankings).exp()
    utility = float((probabilities * as_reward(reward)(rankings, labels, mask)).sum())
    assert loss.history["reward"] == pytest.approx([utility / 2], rel=1e-3)


def test_each_hessian_is_what_it_says():
    _, scores, expected = enumerated("ndcg@3")
    _, hessian = objective(TINY, hessian="magnitude")(SCORES)
    np.testing.assert_allclose(hessian[:5], np.abs(expected), rtol=1e-3, atol=1e-5)
    _, hessian = objective(TINY, hessian="constant")(SCORES)
    np.testing.assert_array_equal(hessian, np.ones(6))

    scores.requires_grad_()
    weights = torch.tensor([1.0, 1 / np.log2(3), 0.5, 0, 0]).double()
    exposure = PlackettLuce(scores, torch.ones(1, 5, dtype=torch.bool)).log_prob(all_rankings(5)).exp()
    placed = weights[all_rankings(5).argsort(-1)]  # (ranking, 1, item) weight of each item's rank
    jacobian = torch.stack(
        [
            torch.autograd.grad((exposure[..., None] * placed).sum(0)[0, i], scores, retain_graph=True)[0][0]
            for i in range(5)
        ]
    )
    highest = 3 / (3 + 1 / np.log2(3) + 1 / 2)  # gain of label 2 over the ideal DCG of labels 2, 1, 1
    _, hessian = objective(TINY, hessian="diagonal")(SCORES)
    np.testing.assert_allclose(hessian[:5], jacobian.diagonal().numpy() * highest, rtol=1e-3)


def enumerated_exposure(scores):
    """E[1 / log2(1 + rank)] of each item (1, item) over all rankings; differentiable."""
    probabilities = PlackettLuce(scores, torch.ones(scores.shape, dtype=torch.bool)).log_prob(all_rankings(5)).exp()
    bias = 1 / torch.arange(2, 7).double().log2()
    return (probabilities[..., None] * bias[all_rankings(5).argsort(-1)]).sum(0)


def unfairness_to_groups(exposure):
    """Items 0, 2, 4 (labels 2, 1, 1) against items 1, 3 (labels 1, 1): merits 4/3 and 1."""
    return exposure[0, [0, 2, 4]].mean() / (4 / 3) - exposure[0, [1, 3]].mean()


def unfairness_to_items(exposure):
    """The 16 pairs (i, j) with merit_i >= merit_j: item 0 over each other, and the other four both ways."""
    treatment = exposure[0] / torch.tensor([2.0, 1, 1, 1, 1]).double()
    pairs = [(0, j) for j in range(1, 5)] + [(i, j) for i in range(1, 5) for j in range(1, 5) if i != j]
    return sum((treatment[i] - treatment[j]).clamp(min=0) for i, j in pairs) / len(pairs)


@pytest.mark.parametrize(
    ("fairness", "unfairness"), [("group", unfairness_to_groups), ("individual", unfairness_to_items)]
)
def test_the_fairness_term_is_minus_strength_times_disparity(fairness, unfairness):
    dataset = rp.from_arrays(np.zeros((6, 1)), [2, 1, 1, 1, 1, 0], group=[5, 1], protected=list("ababaa"))
    scores = torch.tensor([[2.0, -0.5, 1.0, 0.0, 1.5]]).double().requires_grad_()
    disparity = unfairness(enumerated_exposure(scores))
    assert disparity > 0
    (slope,) = torch.autograd.grad(disparity, scores)
    flat = np.append(scores.detach().numpy(), 0.0)
    plain, hessian = objective(dataset)(flat)
    fair = FairPolicyGradient(reward=as_reward("ndcg@3"), fairness=fairness, strength=3.0, num_groups=2)
    loss = objective(dataset, fair=fair)
    gradient, fair_hessian = loss(flat)
    np.testing.assert_allclose((gradient - plain)[:5], 3 * slope[0].numpy(), rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose((fair_hessian - hessian)[:5], 3 * slope[0].abs().numpy(), rtol=2e-3, atol=1e-5)
    assert loss.history["disparity"] == pytest.approx([disparity.item()], rel=1e-3)  # the second query is left out
    reward_alone = objective(dataset)
    reward_alone(flat)
    assert loss.history["reward"] == reward_alone.history["reward"]


@pytest.mark.parametrize("fairness", ["group", "individual"])
def test_a_stronger_fairness_term_buys_fairness_with_utility(fairness):
    settings = FEW_TREES | {"fairness": fairness}
    reports = [rp.BoostedPolicy(**settings, strength=s).fit(FAIR_TRAIN).report_ for s in (0.1, 3.0, 10.0)]
    for name in ("utility", "disparity"):
        assert (np.diff([report[name] for report in reports]) < 0).all()


@pytest.mark.parametrize("fairness", ["group", "individual"])
def test_with_validation_fairness_carries_over_to_new_queries(fairness):
    fair = FairPolicyGradient(reward=as_reward("ndcg"), fairness=fairness, num_groups=2)
    batch = batch_of_all_queries(FAIR_TEST)
    utilities, disparities = [], []
    for strength in (0.0, 30.0, 100.0):  # of 60 queries, weaker ones are within the noise
        settings = {"strength": strength, "fairness": fairness} if strength else {}
        ranker = rp.BoostedPolicy(**FEW_TREES, **settings).fit(FAIR_TRAIN, valid=FAIR_VALID)
        value = fair.evaluate(batch.padding.pad(ranker.predict(FAIR_TEST)), batch)
        utilities.append(float(value.utility.mean()))
        disparities.append(value.disparity.mean)
    assert (np.diff(utilities) < 0).all()
    assert (np.diff(disparities) < 0).all()


def test_without_strength_there_is_no_fairness_term():
    ranker = rp.BoostedPolicy(**FEW_TREES, strength=0.0).fit(TRAIN)
    assert list(ranker.evals_result_["training"]) == ["reward"]
    assert ranker.report_ is None
    for settings in ({"fairness": "individual"}, {"fairness": rp.fairness.GroupExposure(merit="exp2")}):
        with pytest.raises(rp.RankPolicyError, match="would not be read: it is read only when strength is above 0"):
            rp.BoostedPolicy(**settings)


def test_with_a_fairness_term_the_best_tree_is_that_of_the_objective():
    ranker = rp.BoostedPolicy(**FEW_TREES, strength=30.0).fit(FAIR_TRAIN, valid=FAIR_TRAIN)
    curve = ranker.evals_result_["valid_0"]["objective"]
    assert ranker.best_iteration_ == int(np.argmax(curve)) + 1
    num_unfair = FAIR_TRAIN.num_queries - sum(ranker.report_["queries_left_out"].values())
    expected = ranker.report_["utility"] - 30 * ranker.report_["disparity"] * num_unfair / FAIR_TRAIN.num_queries
    assert ranker.best_score_ == pytest.approx(expected, rel=1e-3)


def test_the_report_is_what_exact_exposures_give_and_is_saved(tmp_path):
    ranker = rp.BoostedPolicy(**FEW_TREES, strength=10.0).fit(FAIR_TRAIN)
    padding = FAIR_TRAIN.padding()
    labels, groups = (padding.pad(np.array(v)) for v in (FAIR_TRAIN.labels, FAIR_TRAIN.groups))
    disparity = group_disparity(ranker.policy(FAIR_TRAIN).exposure(), labels.astype(float), groups, padding.mask)
    assert ranker.report_["disparity"] == pytest.approx(disparity.mean, rel=1e-6)
    assert ranker.report_["queries_left_out"] == disparity.left_out
    assert len(ranker.evals_result_["training"]["disparity"]) == 60
    ranker.save(tmp_path / "model.rp")
    assert rp.load(tmp_path / "model.rp").report_ == ranker.report_


@pytest.mark.parametrize("hessian", HESSIANS)
def test_normalized_gradients_have_length_one(hessian):
    plain, plain_hessian = objective(TINY, hessian=hessian)(SCORES)
    gradient, scaled_hessian = objective(TINY, hessian=hessian, normalize=True)(SCORES)
    length = np.linalg.norm(plain)
    np.testing.assert_allclose(gradient, plain / length, rtol=1e-5)
    np.testing.assert_allclose(scaled_hessian, plain_hessian / (1 if hessian == "constant" else length), rtol=1e-5)


@pytest.mark.parametrize("hessian", HESSIANS)
def test_every_small_step_raises_the_expected_reward(hessian):
    ranker = rp.BoostedPolicy(
        num_trees=30, learning_rate=0.02, min_items_in_leaf=5, bagging_fraction=1.0, hessian=hessian
    ).fit(TRAIN)
    rewards = ranker.evals_result_["training"]["reward"]
    assert len(rewards) == 30
    assert (np.diff(rewards) > 0).all()


def test_it_learns_as_much_as_lambdamart_on_the_same_trees():
    settings = {"num_trees": 60, "min_items_in_leaf": 10}
    ours = rp.evaluate(rp.BoostedPolicy(**settings).fit(TRAIN, valid=VALID), VALID, ["ndcg@10"]).means["ndcg@10"]
    untrained = rp.evaluate(np.zeros(VALID.num_items), VALID, ["ndcg@10"]).means["ndcg@10"]
    theirs = rp.evaluate(rp.LambdaMART(**settings).fit(TRAIN, valid=VALID), VALID, ["ndcg@10"]).means["ndcg@10"]
    assert ours - untrained > 0.9 * (theirs - untrained) > 0


def test_early_stopping_keeps_the_best_tree():
    ranker = rp.BoostedPolicy(num_trees=60, patience=5).fit(TRAIN, valid=VALID)
    curve = ranker.evals_result_["valid_0"]["ndcg@10"]
    assert len(curve) <= ranker.best_iteration_ + 5
    assert ranker.best_iteration_ == int(np.argmax(curve)) + 1


def test_labels_need_not_be_whole_numbers():
    ranker = rp.BoostedPolicy(num_trees=2).fit(TRAIN.features, TRAIN.labels / 2, group=TRAIN.sizes)
    assert np.ptp(ranker.predict(VALID)) > 0


def test_what_it_cannot_do_is_named(tmp_path):
    for settings, message in (
        ({"reward": "ap"}, r"reward of rank weights times item values, such as 'ndcg@10'; got 'ap'. PGRank learns any"),
        ({"reward": lambda rankings, labels, mask: labels[:, 0]}, r"rank weights times item values"),
        ({"hessian": "exact"}, r"Unknown hessian 'exact'. Known: magnitude, diagonal, constant."),
        ({"fairness": "total"}, r"Unknown fairness 'total'. Known: group, individual"),
        ({"strength": -1.0}, r"strength must be at least 0; got -1.0"),
        ({"strength": 1.0}, r"fairness='group' needs at least two protected groups"),
        ({"num_leaves": 1}, r"num_leaves must be at least 2 and at most 131072; got 1"),
        ({"num_leaves": 10**6}, r"num_leaves must be at least 2 and at most 131072; got 1000000"),
        ({"strength": 1.0, "valid_metric": "map"}, r"valid_metric='map' would not be read: .* strength is 0"),
    ):
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.BoostedPolicy(**settings).fit(TRAIN)
    with pytest.raises(rp.RankPolicyError, match="BoostedPolicy keeps no checkpoints"):
        rp.BoostedPolicy().fit(TRAIN, checkpoint=tmp_path / "state")
    with pytest.raises(rp.RankPolicyError, match="in training and validation data"):
        rp.BoostedPolicy(strength=1.0).fit(FAIR_TRAIN, valid=rp.from_arrays(np.zeros((2, 2)), [0, 1], group=[2]))
