import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.metrics import as_reward
from rankpolicy.policies import PlackettLuce
from rankpolicy.rankers.boosted_policy import HESSIANS, PolicyTreeObjective
from tests.enumeration import all_rankings, enumerated_gradient

pytest.importorskip("lightgbm")

DATA = rp.make_web_search(60, random_state=3)
TRAIN, VALID = DATA[:40], DATA[40:]
TINY = rp.from_arrays(np.zeros((6, 1)), [2, 0, 1, 0, 1, 0], group=[5, 1])
SCORES = np.array([0.3, 1.2, -0.5, 0.0, 2.0, 0.7])


def objective(dataset, *, reward="ndcg@3", hessian="magnitude", normalize=False):
    return PolicyTreeObjective.of(dataset, reward=reward, hessian=hessian, normalize=normalize)


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
        ({"num_leaves": 1}, r"LightGBM refuses these settings"),
    ):
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.BoostedPolicy(**settings).fit(TRAIN)
    with pytest.raises(rp.RankPolicyError, match="BoostedPolicy keeps no checkpoints"):
        rp.BoostedPolicy().fit(TRAIN, checkpoint=tmp_path / "state")
