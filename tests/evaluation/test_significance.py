from itertools import product

import numpy as np
import pytest
from scipy import stats

from rankpolicy.evaluation import TESTS, fisher_randomization, holm, paired_t_test, wilcoxon_signed_rank
from rankpolicy.types import RankPolicyError

GENERATOR = np.random.default_rng(0)
A = GENERATOR.random(80)
B = np.clip(A + GENERATOR.normal(0.02, 0.1, 80), 0, 1)


def test_t_test_is_scipys() -> None:
    assert paired_t_test(A, B) == pytest.approx(stats.ttest_rel(A, B).pvalue)


@pytest.mark.parametrize("n", [5, 20, 80])
def test_wilcoxon_is_scipys(n: int) -> None:
    assert wilcoxon_signed_rank(A[:n], B[:n]) == pytest.approx(stats.wilcoxon(A[:n], B[:n]).pvalue)


@pytest.mark.parametrize("n", [1, 3, 7, 10])
@pytest.mark.parametrize("digits", [1, 6])
def test_randomization_approaches_the_enumeration_of_all_flips(n: int, digits: int) -> None:
    differences = np.round(A[:n] - B[:n] - 0.03, digits)
    sums = [abs(np.dot(signs, differences)) for signs in product([-1, 1], repeat=n)]
    exact = np.mean(np.array(sums) >= abs(differences.sum()) - 1e-9)
    estimate = fisher_randomization(differences, np.zeros(n), num_flips=40_000)
    assert estimate == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 40_000) + 1e-4)


def test_randomization_is_seeded_and_never_zero() -> None:
    assert fisher_randomization(A, B, random_state=1) == fisher_randomization(A, B, random_state=1)
    assert fisher_randomization(A, A - 1, num_flips=99) == 1 / 100


@pytest.mark.parametrize("name", TESTS)
def test_equal_rankers_have_p_one(name: str) -> None:
    assert TESTS[name](A, A) == 1
    assert TESTS[name]([0.5], [0.5]) == 1


@pytest.mark.parametrize("name", TESTS)
def test_sides_may_be_swapped_and_skipped_queries_are_left_out(name: str) -> None:
    assert TESTS[name](A, B) == pytest.approx(TESTS[name](B, A))
    skipped = np.insert(A, 3, np.nan), np.insert(B, 3, 0.7)
    assert TESTS[name](*skipped) == pytest.approx(TESTS[name](A, B))


@pytest.mark.parametrize("name", TESTS)
def test_a_constant_difference_gives_a_number(name: str) -> None:
    assert 0 <= TESTS[name](np.full(30, 0.75), np.full(30, 0.5)) < 0.05


@pytest.mark.parametrize("name", TESTS)
def test_values_of_other_queries_are_refused(name: str) -> None:
    with pytest.raises(RankPolicyError, match=r"same queries, shape \(query,\); got shapes \(80,\) and \(79,\)"):
        TESTS[name](A, B[1:])


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.02, 0.03, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert holm([0.6, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([]).tolist() == []
