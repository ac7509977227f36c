import re

import pytest

import rankpolicy as rp
from rankpolicy.data import Fold
from rankpolicy.experiments import compare_rankers
from rankpolicy.reports import RunRecord, comparison_page
from rankpolicy.reports.comparison_report import chosen_settings, stars
from rankpolicy.reports.policy_samples import EXPLANATION, query_to_show, sample_rankings

DATA = rp.make_web_search(60, items_per_query=(3, 8), num_features=8, random_state=2)
FOLDS = [Fold(name=f"Fold{n}", train=DATA[:30], valid=DATA[30:40], test=DATA[40 + 10 * n :][:10]) for n in (0, 1)]


def test_the_page_has_every_section_and_loads_nothing():
    comparison = compare_rankers(FOLDS, {"listnet": {"epochs": 2}, "lambdamart": {"num_trees": 3}}, "map", tune=False)
    facts = {"path": "data.txt", "sha256": "ab" * 32, "queries": 30, "items": 99}
    run = RunRecord(
        command="rankpolicy compare <x>", seed=7, data={"train": facts}, started="2020", duration_seconds=1.0
    )
    page = comparison_page(comparison, run, title="T", lead="L")
    for section in (
        "Metrics",
        "Significance",
        "Learning curves",
        "Query by query",
        "Settings",
        "How this page was made",
    ):
        assert f"<h2>{section}</h2>" in page
    assert not re.search(r"https?://|<script|<link|url\(h", page)
    assert page.count("<svg") == 1 + 1 + 2 + 1  # metrics; learning together and by method; query by query
    for text in (
        "conventions: gain=exp2, empty=0",
        "rankpolicy compare &lt;x&gt;",
        "Seed 7",
        f"rankpolicy {rp.__version__}",
    ):
        assert text in page
    assert chosen_settings(comparison, "listnet") == ["epochs=2 (2 of 2 folds)"]


def test_stars():
    assert [stars(p) for p in (0.2, 0.049, 0.009, 0.0009)] == ["", "*", "**", "***"]


def test_samples_come_with_the_probability_of_the_policy():
    ranker = rp.ListNet(epochs=1, model=rp.models.MLP(hidden=(4,))).fit(DATA)
    query = query_to_show(DATA)
    assert query.num_queries == 1
    assert query.num_items <= 6
    drawn = sample_rankings(ranker, query, num_samples=2000, most=1000, random_state=1)
    samples = drawn.most_frequent
    assert sum(sample.times_drawn for sample in samples) == 2000
    for sample in samples[:3]:
        standard_error = (sample.probability * (1 - sample.probability) / 2000) ** 0.5
        assert abs(sample.times_drawn / 2000 - sample.probability) < 5 * standard_error
        assert sorted(sample.items) == sorted(query.item_ids)
    mean = sum(sample.times_drawn * sample.ndcg for sample in samples) / 2000
    assert drawn.mean_ndcg == pytest.approx(mean, abs=1e-6)
    ideal = sum(sample.times_drawn for sample in samples if sample.ndcg > 1 - 1e-6) / 2000
    assert drawn.share_ideal == pytest.approx(ideal)
    assert (
        f"the mean nDCG is {mean:.3f}, that of random lists {drawn.random_ndcg:.3f}; {ideal:.1%} of the draws"
        in drawn.summary
    )


def test_the_text_beside_the_draws_does_not_claim_that_probable_lists_are_good():
    assert "better lists are more probable" not in EXPLANATION
    assert "need not be the one with the highest nDCG" in EXPLANATION
