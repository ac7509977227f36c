"""The sample shop: the same seed gives the same files, and its clicks carry the position bias that was put in."""

import numpy as np
import pytest

from rankpolicy.clicks import estimate_position_bias, log_from_lists
from rankpolicy.data.sets.shop import NUM_POSITIONS, make_shop
from rankpolicy.types import RankPolicyError


def test_a_seed_fixes_the_shop():
    assert make_shop(num_sessions=20, random_state=3).clicks == make_shop(num_sessions=20, random_state=3).clicks
    assert make_shop(num_sessions=20, random_state=3).clicks != make_shop(num_sessions=20, random_state=4).clicks


def test_a_query_and_product_are_judged_once():
    judgements = make_shop().judgements
    pairs = set(zip(judgements["query"], judgements["product"], strict=True))
    assert len(pairs) == len(judgements["grade"])
    assert set(judgements["grade"]) == {0, 1, 2, 3}
    assert None in judgements["rating"]


def test_position_bias_is_recovered_within_its_intervals():
    shop = make_shop(num_sessions=20_000)
    columns = {name: np.array(values).reshape(-1, NUM_POSITIONS) for name, values in shop.sessions.items()}
    log = log_from_lists(columns["query"][:, 0].tolist(), columns["item"].tolist(), columns["clicked"].tolist())
    bias = estimate_position_bias(log, method="all-pairs", level=0.999, random_state=0)
    truth = np.arange(1, NUM_POSITIONS + 1) ** -0.8
    lower, upper = bias.intervals.T
    assert ((lower <= truth) & (truth <= upper)).all()


def test_a_shop_must_have_products():
    with pytest.raises(RankPolicyError, match="at least 40 products, 2 to 80 queries"):
        make_shop(num_products=3)
