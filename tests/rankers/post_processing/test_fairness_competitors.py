"""FA*IR and equity of attention as rankers, from Python and from the command line."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.fairness import equal_attention_rankings, position_bias

# One feature, which is the label: the regression is exact.
LABELS = np.array([5.0, 4.0, 3.0, 2.0, 1.5, 1.0])
GROUPS = np.array(["m", "m", "m", "m", "f", "f"])
DATA = rp.from_arrays(LABELS[:, None], LABELS, group=[6], protected=GROUPS)


def test_fa_ir_moves_protected_items_up_where_a_prefix_lacks_them():
    """Tosses of a coin fail the minima 0, 0, 1, 1, 2, 2 with 4/32 + 3/32 < 0.3, and one in the first two with 8/32 + 2/32 > 0.3."""
    ranker = rp.rankers.FAStarIR(protected_group="f", min_proportion=0.5, alpha=0.3).fit(DATA, progress=False)
    alpha = rp.fairness.corrected_alpha(6, proportion=0.5, alpha=0.3)
    assert rp.fairness.minimum_protected(6, proportion=0.5, alpha=alpha).tolist() == [0, 0, 1, 1, 2, 2]
    assert ranker.rank(DATA)[0].tolist() == [0, 1, 4, 2, 5, 3]
    assert ranker.exposure(DATA).tolist() == pytest.approx(position_bias(6)[[0, 1, 3, 5, 2, 4]].tolist())
    assert ranker.set_params(num_positions=1).rank(DATA)[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert ranker.set_params(min_proportion=1.0, num_positions=None).rank(DATA)[0].tolist() == [4, 5, 0, 1, 2, 3]


def test_fa_ir_needs_a_protected_group_of_the_data():
    with pytest.raises(rp.RankPolicyError, match=r"protected_group must be one of the groups .*\['f', 'm'\]; got 1"):
        rp.rankers.FAStarIR().fit(DATA, progress=False)


def test_equity_of_attention_shows_its_rankings_equally_often():
    ranker = rp.rankers.EquityOfAttention(num_rankings=7, quality=0.8, gain="linear").fit(DATA, progress=False)
    rankings = equal_attention_rankings(LABELS, position_bias(6), num_rankings=7, quality=0.8)
    expected = np.mean([position_bias(6)[np.argsort(ranking)] for ranking in rankings], axis=0)
    assert ranker.exposure(DATA).tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    without_groups = rp.from_arrays(LABELS[:, None], LABELS, group=[6])
    again = rp.rankers.EquityOfAttention(num_rankings=7, quality=0.8, gain="linear").fit(without_groups, progress=False)
    assert again.exposure(without_groups).tolist() == ranker.exposure(DATA).tolist()


def test_a_fitted_estimator_is_trained_further_by_its_own_kind_only():
    settings = {"relevance": "pg-rank", "relevance_settings": {"epochs": 1, "num_networks": 1}}
    first = rp.rankers.EquityOfAttention(**settings).fit(DATA, progress=False)
    rp.rankers.EquityOfAttention(**settings).fit(DATA, init=first, progress=False)
    with pytest.raises(rp.RankPolicyError, match="init must be a fitted FAStarIR"):
        rp.rankers.FAStarIR(protected_group="f").fit(DATA, init=first, progress=False)
