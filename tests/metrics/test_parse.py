import pytest

from rankpolicy.metrics import METRICS, Leaf, Term, as_reward, ndcg, parse_metric, parse_metrics
from rankpolicy.types import Conventions, RankPolicyError


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
    with pytest.raises(RankPolicyError, match=r"a reward must be a text such as 'ndcg@10'.*got 3"):
        as_reward(3)
