"""The web search and statistics targets go through their code with little data; their numbers prove nothing, but each claim can fail."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from rankpolicy import BanditRank, LambdaMART, make_web_search
from rankpolicy.cli.main import run
from rankpolicy.data.folds import Fold
from rankpolicy.evaluation import MetricTable, evaluate
from rankpolicy.training import TrainingSettings
from rankpolicy.training.module_step import new_adamw
from reproductions.banditrank import comparing, exploration, figure1, statistics, table6, web_search

REAL = pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)
FILES = {"rows.csv", "reproduce.json", "run.json"}
CURVES = {"curves.png", "curves.svg"}


@REAL
@pytest.mark.parametrize(
    ("target", "num_rows", "column", "num_claims"),
    [
        ("table6", 12, "map", 26),
        ("figure1", 6, "map, epochs 26 to 30", 22),
        ("exploration", 8, "map", 12),
        ("table1", 5, "questions", 0),
        ("table3", 6, "questions", 9),
        ("table5", 2, "features", 6),
    ],
)
def test_smoke(target, num_rows, column, num_claims, tmp_path):
    assert run(["reproduce", f"banditrank/{target}", "--smoke", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == FILES | (CURVES if target == "figure1" else set())
    outcome = json.loads((tmp_path / "reproduce.json").read_text())
    assert len(outcome["rows"]) == num_rows
    assert all(row[column] > 0 for row in outcome["rows"])
    assert len(outcome["claims"]) == num_claims


def table_of(queries, values, names=("map",)):
    return MetricTable(query_ids=np.array(queries), names=names, values=np.array(values, float))


def the_paper_s_order():
    """Tables of two splits with six queries each in which methods have the order that the paper gives them."""
    levels = dict.fromkeys(table6.SHOWN, 0.5) | {
        table6.PAPER_HYBRID: 0.51,  # above all other rows of this table but the best
        table6.HYBRID: 0.55,
    }
    return {
        method: [
            table_of(
                queries,
                # Queries differ a little in how far methods lie apart, so that an interval has a width.
                [
                    [level * (1 + shift) + shift / 100 for _ in table6.METRICS]
                    for shift in np.linspace(-0.001, 0.001, 6)
                ],
                table6.METRICS,
            )
            for queries in (list("abcdef"), list("fghijk"))
        ]
        for method, level in levels.items()
    }


def claims_of(tables, best_epochs=(10, 29)):
    return {claim.claim: claim.holds for claim in table6._claims(tables, best_epochs)}


def test_table6_claims_hold_where_the_order_is_the_paper_s():
    claims = claims_of(the_paper_s_order())
    assert len(claims) == 26
    assert all(claims.values())


@pytest.mark.parametrize("metric", table6.CLAIMED)
@pytest.mark.parametrize("other", [table6.LAMBDA_MART, table6.LIST_NET, table6.ADA_RANK, table6.ASCENT])
def test_a_competitor_that_does_better_makes_its_claims_fail(other, metric):
    tables = the_paper_s_order()
    for table in tables[other]:
        table[metric][:] = 0.9
    failed = {claim for claim, holds in claims_of(tables).items() if not holds}
    assert f"{table6.HYBRID} above {other} ({metric})" in failed
    in_all = [claim for claim in failed if "in all" in claim]
    assert len(in_all) == 1
    assert all(other in claim for claim in failed)
    assert (f"{table6.PAPER_HYBRID} above {other} (map)" in failed) == (metric == "map")
    one_percent = f"{table6.HYBRID} at least 1 % above {other} in {', '.join(table6.ONE_PERCENT)}"
    assert (one_percent in failed) == (other == table6.LAMBDA_MART)


@pytest.mark.parametrize(
    "other", [*(row for row in table6.METHODS if row.startswith("BanditRank") and "0.5" not in row), table6.PAPER_PLAIN]
)
def test_a_tie_is_not_above(other):
    tables = the_paper_s_order()
    mine = table6.PAPER_HYBRID if "paper" in other else table6.HYBRID
    for table, ours in zip(tables[other], tables[mine], strict=True):
        table["map"][:] = ours["map"]
    assert [claim for claim, holds in claims_of(tables).items() if not holds] == [f"{mine} above {other} (map)"]


def test_a_late_best_epoch_makes_its_claim_fail():
    failed = [claim for claim, holds in claims_of(the_paper_s_order(), (10, 30)).items() if not holds]
    assert failed == [f"{table6.HYBRID}: the best epoch on validation data is below 30 on every split"]


@pytest.mark.parametrize(
    ("rows", "settings"), [(table6.OURS, table6.OUR_SETTINGS), (table6.PAPERS, web_search.PAPER_SETTINGS)]
)
def test_only_gamma_differs_between_the_rows_of_one_network(rows, settings):
    assert list(rows) == ([0.0, 0.25, 0.5, 0.75, 1.0] if rows is table6.OURS else [0.5, 1.0])
    for gamma, row in rows.items():
        # Without a reward no lists are drawn, so that nothing would read how.
        unread = ("control", "num_samples", "max_positions", "epsilon") if gamma == 0 else ()
        expected = {name: value for name, value in settings.items() if name not in unread} | {"gamma": gamma}
        assert table6.METHODS[row] == ("bandit-rank", expected)


def test_the_plain_network_has_as_many_weights_as_the_highway_network():
    highway, plain = (
        sum(weights.numel() for weights in model.new_network_of(46).parameters())
        for model in (web_search.PAPER_SETTINGS["model"], web_search.PLAIN_SAME_WEIGHTS)
    )
    assert plain == pytest.approx(highway, rel=0.005)


def test_lambdamart_has_as_many_members_as_banditrank_and_the_best_average_is_kept():
    pytest.importorskip("lightgbm")
    train, valid = (make_web_search(40, random_state=seed) for seed in (0, 1))
    settings = {"valid_metric": "map", "random_state": 3, "num_trees": 5, "min_items_in_leaf": 5}
    found = table6.best_average(Fold(name="one", train=train, valid=valid, test=valid), settings, max_candidates=None)
    assert len(found.members) == table6.OUR_SETTINGS["num_networks"]
    by_leaves = {}
    for leaves in (15, 7, 31):
        members = [
            LambdaMART(**settings | {"num_leaves": leaves, "random_state": seed}).fit(
                train, valid=valid, progress=False
            )
            for seed in (3000, 3001, 3002, 3003)
        ]
        mean = sum(member.predict(valid) for member in members) / 4
        by_leaves[leaves] = evaluate(mean, valid, ["map"]).means["map"]
    assert evaluate(found, valid, ["map"]).means["map"] == pytest.approx(max(by_leaves.values()))
    assert by_leaves[found.members[0].num_leaves] == max(by_leaves.values())


def test_a_query_of_two_splits_counts_once():
    runs = [table_of(["a", "c"], [[0.2], [0.4]]), table_of(["c", "b"], [[0.8], [1.0]])]
    once = comparing.once_per_query(runs)
    assert once.query_ids.tolist() == ["a", "b", "c"]
    assert once["map"].tolist() == pytest.approx([0.2, 1.0, 0.6])


def test_queries_decide_and_splits_are_shown():
    ours = [table_of(["a", "b"], [[0.4], [0.6]]), table_of(["b", "c"], [[0.6], [0.5]])]
    theirs = [table_of(["a", "b"], [[0.3], [0.4]]), table_of(["b", "c"], [[0.6], [0.2]])]
    # Differences of a, b and c: 0.1, (0.2 + 0) / 2 and 0.3; of the splits 0.15 and 0.15.
    claim = comparing.above("A", ours, theirs, metric="map", paper="", run="splits")
    assert claim.ours.startswith(
        "0.5000 against 0.3333, difference +0.1667 [-0.1202, +0.4535] over 3 queries; higher on "
    )
    assert claim.ours.endswith("higher on 2 of 2 splits, mean of splits +0.1500 [+0.1500, +0.1500]")
    assert not claim.holds


def test_above_in_all_needs_every_metric():
    names = ("map", "mrr")
    low = [table_of(list("abcd"), [[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]], names)]
    high = [table_of(list("abcd"), [[0.2, 0.2], [0.31, 0.2], [0.4, 0.2], [0.52, 0.6]], names)]
    claim = comparing.above_in_all("A", high, low, metrics=names, paper="")
    assert claim.ours == "significant in 1 of 2 (map); differences map +0.1075, mrr +0.0500"
    assert not claim.holds
    assert comparing.above_in_all("A", high, low, metrics=("map",), paper="").holds
    # Wilcoxon's test cannot reach 0.05 with four queries.
    assert not comparing.above_in_all("A", high, low, metrics=("map",), paper="", tests=("t-test", "wilcoxon")).holds


def test_stars_are_for_differences_from_the_best_method():
    means = {"best": dict.fromkeys(table6.METRICS, 0.6), "other": dict.fromkeys(table6.METRICS, 0.5)}
    pair = frozenset(means)
    p_values = {(pair, metric, test): 1.0 for metric in table6.METRICS for test in table6.STARS}
    p_values |= {(pair, "map", "t-test"): 0.01, (pair, "map", "wilcoxon"): 0.04, (pair, "mrr", "wilcoxon"): 0.049}
    assert table6._stars("other", means, p_values) == "map*+ mrr+"
    assert table6._stars("best", means, p_values) == ""


def curves_of(levels):
    """By reward, 30 epochs of two splits with two queries each; ``levels`` has the first five, the next ten, ten more, the last five."""
    stages = np.repeat(np.arange(4), (5, 10, 10, 5))
    return {
        reward: [
            [
                table_of(
                    queries,
                    [[level[stage] + shift] * 2 for shift in (-0.1, 0.1 + level[stage] / 1000)],
                    figure1.METRICS,
                )
                for stage in stages
            ]
            for queries in (["a", "b"], ["b", "c"])
        ]
        for reward, level in levels.items()
    }


AS_THE_PAPER_SAYS = {
    "R1": (0.5, 0.5, 0.5, 0.5),
    "R2": (0.4, 0.5, 0.5, 0.5),
    "R3": (0.3, 0.5, 0.5, 0.5),
    "R4": (0.5, 0.5, 0.5, 0.6),
    "R5": (0.4, 0.5, 0.5, 0.5),
    "R6": (0.4, 0.5, 0.5, 0.5),
}


def test_figure1_claims_hold_where_the_curves_are_as_the_paper_says():
    claims = figure1._claims(curves_of(AS_THE_PAPER_SAYS))
    assert len(claims) == 22
    assert all(claim.holds for claim in claims)


@pytest.mark.parametrize(
    ("reward", "level", "failing"),
    [
        ("R1", (0.4, 0.5, 0.5, 0.9), {"R1 above R2 in epochs 1 to 5"}),  # a tie is not above
        ("R5", (0.6, 0.5, 0.5, 0.5), {"R4 above R5 in epochs 1 to 5"}),
        (
            "R5",
            (0.4, 0.52, 0.5, 0.5),
            {"R4 and R5 within 0.01 in epochs 6 to 15", "R5 and R6 within 0.01 in epochs 6 to 15"},
        ),
        ("R6", (0.4, 0.5, 0.5, 0.55), {"R6 not above R5 in epochs 26 to 30"}),
        (
            "R6",
            (0.4, 0.5, 0.5, 0.7),
            {
                "R4 above R6 in epochs 26 to 30",
                "R6 not above R4 in epochs 26 to 30",
                "R6 not above R5 in epochs 26 to 30",
            },
        ),
        ("R6", (0.4, 0.5, 0.9, 0.5), set()),  # the paper says nothing about these epochs
    ],
)
def test_a_reward_with_another_curve_makes_its_claims_fail(reward, level, failing):
    claims = figure1._claims(curves_of(AS_THE_PAPER_SAYS | {reward: level}))
    assert {claim.claim.partition(": test")[0] for claim in claims if not claim.holds} == failing


def test_adam_takes_the_paper_s_betas():
    weight = torch.nn.Linear(1, 1, bias=False)

    def two_steps(**settings):
        """Where a weight ends whose gradient is 1, then -1: AdamW divides both by 1."""
        torch.nn.init.zeros_(weight.weight)
        optimizer = new_adamw(weight, TrainingSettings(learning_rate=0.1, **settings))
        for gradient in (1.0, -1.0):
            weight.weight.grad = torch.full((1, 1), gradient)
            optimizer.step()
        return float(weight.weight.detach())

    # -0.1, then 0.1: the first direction is forgotten
    assert two_steps(betas=web_search.PAPER_BETAS) == pytest.approx(0.0, abs=1e-6)
    assert two_steps() == pytest.approx(-0.1 + 0.1 * (0.1 - 0.09) / 0.19, abs=1e-6)

    data = make_web_search(6, random_state=0)
    ranker = BanditRank(epochs=2, num_samples=2, num_networks=1)
    theirs = replace(ranker, betas=web_search.PAPER_BETAS).fit(data, progress=False).predict(data)
    assert not np.allclose(theirs, ranker.fit(data, progress=False).predict(data))


def test_a_curve_is_that_of_one_uninterrupted_training():
    data = make_web_search(12, random_state=0)
    split = Fold(name="one", train=data, valid=data, test=data)
    settings = web_search.PAPER_SETTINGS | {"num_samples": 2, "gamma": 1.0}
    study = figure1.Study([split], 0, settings, 3)
    tables = figure1._test_curve(study, (0, "R1"))
    own = {"reward": "ap", "epochs": 3, "random_state": 0, "betas": web_search.PAPER_BETAS}
    whole = BanditRank().set_params(**settings | own)
    expected = evaluate(whole.fit(data, progress=False), data, figure1.METRICS)
    np.testing.assert_array_equal(tables[-1].values, expected.values)
    assert not np.array_equal(tables[0].values, tables[-1].values)


def test_relevant_items_are_counted_by_query():
    data = make_web_search(5, random_state=0)
    expected = [int((data[query].labels >= 1).sum()) for query in range(5)]
    assert statistics.num_relevant(data).tolist() == expected


def fit_of(maps, with_items, without):
    """What a fit gave whose test queries have these MAPs and highest affinities."""
    highest = {
        kind: table_of(
            [f"{kind} {number}" for number in range(len(values))], np.array(values)[:, None], ("highest affinity",)
        )
        for kind, values in ((True, with_items), (False, without))
    }
    values = np.repeat(np.array(maps)[:, None], 2, axis=1)
    return exploration.Fitted(table_of(list("abcdef")[: len(maps)], values, exploration.METRICS), highest, 1.0)


def test_separation_is_the_share_of_pairs_in_the_right_order():
    # 0.9 and 0.6 beside 0.7 and 0.6: right, right, wrong, tied.
    assert exploration.separation(fit_of([0.5], [0.9, 0.6], [0.7, 0.6])) == pytest.approx((1 + 1 + 0 + 0.5) / 4)


def test_the_penalty_s_claims_can_hold_and_fail():
    maps = np.array([0.5, 0.6, 0.7, 0.4])
    without = [0.8, 0.7, 0.6, 0.9, 0.7]
    plain = [fit_of(maps, [0.9, 0.8], without), fit_of(maps, [0.9, 0.8], without)]
    good = [
        fit_of(maps, [0.9, 0.8], [0.1, 0.2, 0.3, 0.1, 0.6]),
        fit_of(maps + 0.0005, [0.9, 0.8], [0.1, 0.2, 0.3, 0.1, 0.4]),
    ]
    bad = [fit_of(maps - 0.1, [0.9, 0.8], without), fit_of(maps, [0.9, 0.8], without)]
    assert [claim.holds for claim in exploration._claims_of_the_penalty("γ = 1", plain, good)] == [True, True, True]
    assert [claim.holds for claim in exploration._claims_of_the_penalty("γ = 1", plain, bad)] == [False, False, False]


def test_ways_to_explore_differ_in_nothing_else():
    others = [{k: v for k, v in how.items() if k != "epsilon"} for how in exploration.EXPLORATIONS.values()]
    assert all(other == others[0] for other in others)
    for gamma in ("1", "0.5"):
        left_out, penalised = (
            exploration.PENALTIES[f"γ = {gamma}, {words}"] for words in (exploration.LEFT_OUT, exploration.PENALISED)
        )
        assert {k: v for k, v in penalised.items() if k != "loss"} == left_out
    # The default ε is 0.1: the fit that two rows share.
    assert BanditRank().set_params(**exploration.PENALTIES[f"γ = 1, {exploration.LEFT_OUT}"]).epsilon == 0.1
    assert exploration.EXPLORATIONS[exploration.CONSTANT]["epsilon"] == 0.1
