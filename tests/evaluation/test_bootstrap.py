import numpy as np
import pytest

from rankpolicy.evaluation import bootstrap_interval
from rankpolicy.types import RankPolicyError


def test_the_interval_is_about_two_standard_errors_wide() -> None:
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval(values, num_resamples=4000)
    standard_error = values.std() / np.sqrt(400)
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=0.2 * standard_error)
    assert high - low == pytest.approx(2 * 1.96 * standard_error, rel=0.1)


def test_the_seed_decides_and_skipped_queries_do_not_count() -> None:
    values = np.random.default_rng(1).random(50)
    with_skipped = np.insert(values, [0, 20], np.nan)
    assert bootstrap_interval(values, random_state=3) == bootstrap_interval(with_skipped, random_state=3)
    assert bootstrap_interval(values, random_state=3) != bootstrap_interval(values, random_state=4)


def test_blocks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random(50)
    whole = bootstrap_interval(values)
    monkeypatch.setattr("rankpolicy.evaluation.bootstrap._DRAWS_PER_BLOCK", 500)
    assert bootstrap_interval(values) == pytest.approx(whole, rel=0.02)


def test_a_higher_level_is_wider() -> None:
    values = np.random.default_rng(1).random(50)
    (low, high), (lower, higher) = bootstrap_interval(values, level=0.8), bootstrap_interval(values, level=0.99)
    assert lower < low < high < higher


@pytest.mark.parametrize("options", [{"level": 95.0}, {"level": 0.0}, {"num_resamples": 0}])
def test_bad_settings_are_explained(options: dict[str, float]) -> None:
    with pytest.raises(RankPolicyError, match="must"):
        bootstrap_interval(np.ones(3), **options)


def test_an_interval_of_many_queries_is_the_limit_of_the_bootstrap_and_draws_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(0)
    values, weights = generator.exponential(size=30_000), generator.exponential(size=30_000)
    with monkeypatch.context() as patch:
        patch.setattr("rankpolicy.evaluation.bootstrap._MANY_QUERIES", 10**9, raising=False)
        drawn = [bootstrap_interval(values[:20_000]), bootstrap_interval(values, query_weights=weights)]

    def no_draws(random_state: int) -> None:
        raise AssertionError("an interval of many queries must not be resampled")

    monkeypatch.setattr("rankpolicy.evaluation.bootstrap.seeded", no_draws)
    closed = [bootstrap_interval(values[:20_000]), bootstrap_interval(values, query_weights=weights)]
    for (low, high), expected in zip(closed, drawn, strict=True):
        assert (low, high) == pytest.approx(expected, abs=0.1 * (high - low))
    with pytest.raises(AssertionError):
        bootstrap_interval(values, query_weights=np.where(np.arange(30_000) < 100, 1e6, 1.0))  # 100 queries decide
