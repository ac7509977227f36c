"""What every ranker that learns online promises, over the table of all of them."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.online import ONLINE_RANKERS
from rankpolicy.types import RankPolicyError

NUM_FEATURES, CUTOFF = 3, 4


def make(name, **settings):
    return ONLINE_RANKERS.named(name)(num_features=NUM_FEATURES, cutoff=CUTOFF, random_state=1, **settings)


def queries(generator, num_queries=8):
    features = generator.random((num_queries, 6, NUM_FEATURES))
    mask = np.arange(6) < generator.integers(2, 7, num_queries)[:, None]
    return features, mask


def teach(ranker, num_batches, *, random_state=0):
    """Users who click items whose first feature is large."""
    generator = np.random.default_rng(random_state)
    lists = []
    for _ in range(num_batches):
        features, mask = queries(generator)
        shown = ranker.rank(features, mask=mask)
        chance = np.take_along_axis(features[..., 0], shown.rankings, 1)
        ranker.learn(features, shown, generator.random(chance.shape) < chance**4, mask=mask)
        lists.append(shown.rankings)
    return lists


@pytest.mark.parametrize("name", ONLINE_RANKERS)
def test_lists_hold_each_real_item_once_and_padding_last(name):
    features, mask = queries(np.random.default_rng(0))
    shown = make(name).rank(features, mask=mask)
    assert shown.rankings.shape == (8, CUTOFF)
    for ranking, is_item in zip(shown.rankings, mask, strict=True):
        real = is_item[ranking]
        assert len(set(ranking.tolist())) == CUTOFF
        assert real.sum() == min(CUTOFF, is_item.sum())
        assert real[: real.sum()].all()


@pytest.mark.parametrize("name", ONLINE_RANKERS)
def test_padding_and_scale_of_scores_change_nothing(name):
    features, mask = queries(np.random.default_rng(0))
    wide = np.concatenate([features, np.full((8, 2, NUM_FEATURES), 7.0)], 1)
    wider = np.concatenate([mask, np.zeros((8, 2), bool)], 1)
    plain, padded = make(name, logger=[1e4, 0.0, -1e4]), make(name, logger=[1e4, 0.0, -1e4])
    shown = plain.rank(features, mask=mask)
    clicks = np.take_along_axis(mask, shown.rankings, 1)
    memo = (
        None
        if shown.memo is None
        else {key: np.pad(value, ((0, 0), (0, 2))) if key == "exposure" else value for key, value in shown.memo.items()}
    )
    other = type(shown)(rankings=shown.rankings, propensities=shown.propensities, memo=memo)
    plain.learn(features, shown, clicks, mask=mask)
    padded.learn(wide, other, clicks, mask=wider)
    assert np.isfinite(plain.weights).all()
    np.testing.assert_allclose(padded.weights, plain.weights)


@pytest.mark.parametrize("name", ONLINE_RANKERS)
def test_a_saved_ranker_shows_and_learns_the_same(name, tmp_path):
    ranker = make(name)
    teach(ranker, 20)
    ranker.save(tmp_path / "online.rp")
    other = rp.load(tmp_path / "online.rp")
    assert other.state() == ranker.state()
    assert type(other) is type(ranker)
    for ours, theirs in zip(teach(ranker, 20), teach(other, 20), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ranker.weights, other.weights)
    with pytest.raises(RankPolicyError, match="must be what state"):
        ranker.restore(b"other")


@pytest.mark.parametrize("name", ONLINE_RANKERS)
def test_what_it_shows_earns_more_after_learning(name):
    ranker = make(name, **({"learning_rate": 0.1} if name == "dbgd" else {}))
    generator = np.random.default_rng(5)
    features, _ = queries(generator, 400)

    def earned():
        shown = ranker.rank(features, generator=np.random.default_rng(2))
        return np.take_along_axis(features[..., 0], shown.rankings[:, :2], 1).mean(1)

    before = earned()
    teach(ranker, 1500)
    gain = earned() - before
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.parametrize("name", ONLINE_RANKERS)
def test_bad_input_is_refused(name):
    ranker, features = make(name), np.zeros((2, 3, NUM_FEATURES))
    shown = ranker.rank(features)
    for wrong in (features[0], features[..., :2], np.full_like(features, np.nan)):
        with pytest.raises(RankPolicyError, match="features must be"):
            ranker.rank(wrong)
    with pytest.raises(RankPolicyError, match="first items"):
        ranker.rank(features, mask=[[False, True, True]] * 2)
    for clicks in (np.zeros((2, 2)), np.full((2, 3), 0.5)):
        with pytest.raises(RankPolicyError, match="clicks must be"):
            ranker.learn(features, shown, clicks)
    with pytest.raises(RankPolicyError, match="logger must be"):
        make(name, logger=[1.0])


@pytest.mark.parametrize("name", ONLINE_RANKERS)
def test_every_setting_is_explained(name):
    assert all(described.help for described in describe_settings(ONLINE_RANKERS[name]))
