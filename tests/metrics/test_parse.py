import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st

from rankpolicy.metrics import METRICS, Leaf, Term, as_reward, ndcg, parse_metric, parse_metrics
from rankpolicy.types import Conventions, RankPolicyError

OUT_OF_RANGE = (
    "persistence must be at least 0 and below 1; got 2. "
    "Probability of going on from one item to the next; the usual values are 0.5, 0.8 and 0.95."
)


@pytest.mark.parametrize(
    ("text", "name", "terms"),
    [
        ("ndcg@10", "ndcg@10", (Term(1.0, (Leaf("ndcg", 10),)),)),
        (" MAP ", "map", (Term(1.0, (Leaf("ap"),)),)),
        ("mrr@5", "mrr@5", (Term(1.0, (Leaf("rr", 5),)),)),
        ("mean( ap,ndcg@10 )", "mean(ap, ndcg@10)", (Term(0.5, (Leaf("ap"),)), Term(0.5, (Leaf("ndcg", 10),)))),
        ("0.7*ndcg@10+0.3*err", "0.7*ndcg@10 + 0.3*err", (Term(0.3, (Leaf("err"),)), Term(0.7, (Leaf("ndcg", 10),)))),
        ("ndcg@10 * ap", "ndcg@10*ap", (Term(1.0, (Leaf("ap"), Leaf("ndcg", 10))),)),
        ("-avg_rank", "-avg_rank", (Term(-1.0, (Leaf("avg_rank"),)),)),
        ("1 - err", "1 - err", (Term(1.0, ()), Term(-1.0, (Leaf("err"),)))),
        ("2*(ap - rr)*.5", "2*(ap - rr)*0.5", (Term(1.0, (Leaf("ap"),)), Term(-1.0, (Leaf("rr"),)))),
        ("ap + ap", "ap + ap", (Term(2.0, (Leaf("ap"),)),)),
        ("rbp(persistence=0.5)@3", "rbp(persistence=0.5)@3", (Term(1.0, (Leaf("rbp", 3, (("persistence", 0.5),)),)),)),
        ("2*ndcg@10", "2*ndcg@10", (Term(2.0, (Leaf("ndcg", 10),)),)),
        ("-2*ndcg@10*ap@5", "-2*ndcg@10*ap@5", (Term(-2.0, (Leaf("ap", 5), Leaf("ndcg", 10))),)),
        (
            "ap - (rr - p@1)",
            "ap - (rr - p@1)",
            tuple(Term(w, (Leaf(*of),)) for w, of in [(1.0, ["ap"]), (1.0, ["p", 1]), (-1.0, ["rr"])]),
        ),
        ("mean(-ap, rr)", "mean(-ap, rr)", (Term(-0.5, (Leaf("ap"),)), Term(0.5, (Leaf("rr"),)))),
        ("ap\n+\u00a0rr", "ap + rr", (Term(1.0, (Leaf("ap"),)), Term(1.0, (Leaf("rr"),)))),
        ("007*ap", "7*ap", (Term(7.0, (Leaf("ap"),)),)),
        ("0.1234567*ap", "0.1234567*ap", (Term(0.1234567, (Leaf("ap"),)),)),
        ("1e-1*p@1", "0.1*p@1", (Term(0.1, (Leaf("p", 1),)),)),
    ],
)
def test_text_becomes_terms(text: str, name: str, terms: tuple[Term, ...]) -> None:
    reward = parse_metric(text)
    assert (reward.name, reward.terms) == (name, terms)
    assert parse_metric(reward.name) == reward


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", f"Unknown metric 'ndgc'. Did you mean 'ndcg'? Known: {', '.join(METRICS)}."),
        ("ap + xyzzy", f"Unknown metric 'xyzzy'. Known: {', '.join(METRICS)}."),
        ("ndcg@0", "a cutoff must be a whole number, 1 or more, as in ndcg@10; got '0' at character 6 of 'ndcg@0'."),
        ("ndcg@-1", "a cutoff must be a whole number, 1 or more, as in ndcg@10; got '-1' at character 6 of 'ndcg@-1'."),
        (
            "ndcg@ten",
            "a cutoff must be a whole number, 1 or more, as in ndcg@10; got 'ten' at character 6 of 'ndcg@ten'.",
        ),
        ("p@2.5", "a cutoff must be a whole number, 1 or more, as in p@10; got '2.5' at character 3 of 'p@2.5'."),
        ("ap + p@", "a cutoff must be a whole number, 1 or more, as in p@10; got the end at character 8 of 'ap + p@'."),
        ("(ap + rr", "expected ')' for the '(' at character 1; got the end at character 9 of '(ap + rr'."),
        ("mean(ap, rr", "expected ')' for the '(' at character 5; got the end at character 12 of 'mean(ap, rr'."),
        ("ap)", "expected '+', '-', '*' or the end; got ')' at character 3 of 'ap)'."),
        ("ap rr", "expected '+', '-', '*' or the end; got 'rr' at character 4 of 'ap rr'."),
        ("ap / 2", "expected '+', '-', '*' or the end; got '/' at character 4 of 'ap / 2'."),
        ("ap +", "expected a metric, a number or '('; got the end at character 5 of 'ap +'."),
        ("mean()", "expected a metric, a number or '('; got ')' at character 6 of 'mean()'."),
        ("mean", "expected '(' after mean, as in mean(ap, rr); got the end at character 5 of 'mean'."),
        ("ap(x=1)", "ap has no options; got '(' at character 3 of 'ap(x=1)'."),
        ("rbp(p=1)", "expected an option of rbp: persistence; got 'p' at character 5 of 'rbp(p=1)'."),
        ("rbp(persistence=2)", OUT_OF_RANGE),
        (
            "rbp(persistence=-1)",
            "expected a number, as in rbp(persistence=0.5); got '-' at character 17 of 'rbp(persistence=-1)'.",
        ),
        (
            "rbp(persistence=0.5",
            "expected ')' for the '(' at character 4; got the end at character 20 of 'rbp(persistence=0.5'.",
        ),
        ("--ap", "expected a metric, a number or '('; got '-' at character 2 of '--ap'."),
        ("ap*-rr", "expected a metric, a number or '('; got '-' at character 4 of 'ap*-rr'."),
        ("ap**2", "expected a metric, a number or '('; got '*' at character 4 of 'ap**2'."),
        ("(ap, rr)", "expected ')' for the '(' at character 1; got ',' at character 4 of '(ap, rr)'."),
        ("ap@10@5", "expected '+', '-', '*' or the end; got '@' at character 6 of 'ap@10@5'."),
        ("ndcg@१०", "a cutoff must be a whole number, 1 or more, as in ndcg@10; got '१' at character 6 of 'ndcg@१०'."),
        ("ap €", "expected '+', '-', '*' or the end; got '€' at character 4 of 'ap €'."),
        ("naïve", f"Unknown metric 'naïve'. Known: {', '.join(METRICS)}."),
        ("lambda", f"Unknown metric 'lambda'. Known: {', '.join(METRICS)}."),
        ("1e999*ap", "a number must be finite; got '1e999' at character 1 of '1e999*ap'."),
        ("1e300*1e300*ap", "the weights of a reward must be finite numbers; got '1e300*1e300*ap'."),
        ("", "a metric must be named, such as 'ndcg@10' or 'mean(ap, rr)'; got an empty text."),
        ("  ", "a metric must be named, such as 'ndcg@10' or 'mean(ap, rr)'; got an empty text."),
        ("0.5", f"a reward must contain a metric; got '0.5'. Known: {', '.join(METRICS)}."),
    ],
)
def test_errors_point_at_the_spot(text: str, message: str) -> None:
    with pytest.raises(RankPolicyError) as error:
        parse_metric(text)
    assert str(error.value) == message


def test_a_list_is_split_at_its_own_commas_only() -> None:
    assert [m.name for m in parse_metrics("ndcg@10, mean(ap,rr) ,p@5")] == ["ndcg@10", "mean(ap, rr)", "p@5"]
    with pytest.raises(RankPolicyError, match="got the end at character 4"):
        parse_metrics("ap,")


def test_anything_that_rewards_becomes_a_reward() -> None:
    conventions = Conventions(empty=1)
    reward = parse_metric("ap", conventions)
    assert as_reward(reward) is reward
    assert as_reward("map", conventions) == reward
    assert as_reward(ndcg, conventions) == parse_metric("ndcg", conventions)
    assert as_reward(lambda rankings, labels, mask: labels.sum(-1)).cutoff is None
    with pytest.raises(RankPolicyError, match=r"a reward must be a string such as 'ndcg@10'.*got 3"):
        as_reward(3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 2000 + "ap" + ")" * 2000, "at most 2000 characters; got 4002, starting with"),
        ("(" * 900 + "ap" + ")" * 900, "brackets may be nested at most 50 deep; got '\\(' at character 51 of"),
        ("mean(" * 390 + "ap" + ")", "brackets may be nested at most 50 deep"),
        ("-" * 1999, "expected a metric, a number or"),
        (
            "ndcg@" + "9" * 30,
            "a cutoff must be at most 1000000000, or left out to count every position; got '9{30}' at character 6",
        ),
        ("ndcg@" + "9" * 1900, "a cutoff must be at most 1000000000"),
        ("ap + " * 10_000 + "ap", "at most 2000 characters; got 50002"),
        (
            "*".join(f"(ap@{k} + rr@{k})" for k in range(1, 90)),
            "at most 1000 terms when it is multiplied out; got 512 times 2",
        ),
    ],
)
def test_texts_past_every_limit_are_refused_clearly(text: str, message: str) -> None:
    with pytest.raises(RankPolicyError, match=message):
        parse_metric(text)


def test_long_and_nested_texts_within_the_limits_are_read() -> None:
    assert parse_metric("p" + "+p" * 999).terms == (Term(1000.0, (Leaf("p"),)),)
    assert parse_metric("(" * 50 + "ap" + ")" * 50) == parse_metric("ap")
    assert parse_metric("*".join(["(ap + rr)"] * 40)).terms[0] == Term(1.0, (Leaf("ap"),) * 40)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["ap", "ndcg", "@", "10", "(", ")", "mean", "+", "-", "*", ",", "rbp", "=", ".5", "persistence", "é", "not"]
        )
    )
)
def test_any_sequence_of_symbols_is_read_or_refused(symbols: list[str]) -> None:
    try:
        reward = parse_metric(" ".join(symbols))
    except RankPolicyError:
        return
    assert parse_metric(reward.name) == reward


def test_parsing_does_not_load_torch() -> None:
    program = (
        "import sys; from rankpolicy.metrics import parse_metric; parse_metric('mean(map, rbp(persistence=0.5)@10)'); "
        "print([name for name in ('torch', 'numba') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
