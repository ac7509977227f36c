"""From text to a reward: ``ndcg@10``, ``mean(ap, rr)``, ``0.7*ndcg@10 + 0.3*err``, ``ndcg@10 * ap``.

``syntax.py`` checks the text and says where it is wrong; Python's ``ast`` gives its structure, and the tree is multiplied out into terms.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from rankpolicy.metrics.expression import CustomReward, Leaf, RewardExpression, Term
from rankpolicy.metrics.members import METRICS
from rankpolicy.metrics.syntax import RewrittenReward, rewrite_reward, rewrite_rewards
from rankpolicy.types import Conventions, RankPolicyError, Reward

MOST_TERMS = 1000


def parse_metric(text: str, conventions: Conventions = Conventions()) -> RewardExpression:
    """The reward that a text describes.

    Parameters
    ----------
    text
        Metrics with cutoffs (``ndcg@10``) and options (``rbp(persistence=0.5)``), combined by ``+``, ``-``, ``*``, brackets, numbers and
        ``mean(...)``. Case and spaces do not matter.
    conventions
        The conventions that its metrics follow.

    >>> reward = parse_metric("0.7*NDCG@10+0.3*err")
    >>> reward.name, reward.is_linear, reward.cutoff
    ('0.7*ndcg@10 + 0.3*err', True, None)
    >>> parse_metric("ndgc@10")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown metric 'ndgc'. Did you mean 'ndcg'? Known: ...
    """
    return _expression(rewrite_reward(text), text, conventions)


def parse_metrics(text: str, conventions: Conventions = Conventions()) -> tuple[RewardExpression, ...]:
    """The metrics of a text that separates them by commas.

    Parameters
    ----------
    text
        One or more rewards as ``parse_metric`` reads them, separated by commas.
    conventions
        The conventions that they follow.

    >>> [metric.name for metric in parse_metrics("ndcg@10,mean(ap,rr)")]
    ['ndcg@10', 'mean(ap, rr)']
    """
    return tuple(_expression(reward, text, conventions) for reward in rewrite_rewards(text))


def as_reward(value: object, conventions: Conventions = Conventions()) -> Reward:
    """A reward from a text, a metric or any function of (rankings, labels, mask).

    Parameters
    ----------
    value
        A text such as ``"ndcg@10"``, a metric function such as ``rp.metrics.ndcg``, a function of the user's own that returns one value
        per ranking, or a reward, which is returned as it is.
    conventions
        The conventions to follow; a reward that is given keeps its own.

    >>> from rankpolicy.metrics import ndcg
    >>> as_reward(ndcg) == as_reward("ndcg")
    True
    """
    if isinstance(value, Reward):
        return value
    if isinstance(value, str):
        return parse_metric(value, conventions)
    for name, metric in METRICS.items():
        if value is metric or value is metric.function:
            return parse_metric(name, conventions)
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        return CustomReward(name=name, function=value, conventions=conventions)
    raise RankPolicyError(
        "a reward must be a string such as 'ndcg@10', a metric or a function of (rankings, labels, mask); "
        f"got {value!r:.80}."
    )


def reward_to_maximise(value: object, conventions: Conventions = Conventions()) -> Reward:
    """A reward as ``as_reward`` makes it, for training and selection, where higher must be better.

    Parameters
    ----------
    value
        A text, a metric, a function or a reward.
    conventions
        The conventions to follow; a reward that is given keeps its own.

    >>> reward_to_maximise("avg_rank")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: a reward must rise as rankings get better; 'avg_rank' falls. Write '-avg_rank'.
    """
    reward = as_reward(value, conventions)
    if reward.lower_is_better:
        lower = [str(leaf) for leaf in reward.leaves if METRICS[leaf.metric].lower_is_better]
        negated = lower[0] if len(reward.leaves) > 1 else reward.name
        raise RankPolicyError(f"a reward must rise as rankings get better; {reward.name!r} falls. Write '-{negated}'.")
    return reward


def _expression(rewritten: RewrittenReward, text: str, conventions: Conventions) -> RewardExpression:
    try:
        terms = _terms(ast.parse(rewritten.python, mode="eval").body, rewritten.leaves)
    except (RecursionError, MemoryError):  # Python's limits differ between versions
        raise RankPolicyError(
            f"a reward must be simpler; got {len(rewritten.leaves)} metrics in {text!r:.80}."
        ) from None
    if not any(term.factors for term in terms):
        raise RankPolicyError(f"a reward must contain a metric; got {text!r}. Known: {', '.join(METRICS)}.")
    if not all(math.isfinite(term.weight) for term in terms):
        raise RankPolicyError(f"the weights of a reward must be finite numbers; got {text!r}.")
    return RewardExpression(name=rewritten.name, terms=_collected(terms), conventions=conventions)


def _terms(node: ast.expr, leaves: Mapping[str, Leaf]) -> tuple[Term, ...]:
    """The terms that a syntax tree adds up to."""
    match node:
        case ast.Constant(value=float(value)):
            return (Term(value, ()),)
        case ast.Name(id=name):
            return (Term(1.0, (leaves[name],)),)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _scaled(_terms(operand, leaves), -1.0)
        case ast.Call(args=parts):  # mean(...) is the only function
            return tuple(term for part in parts for term in _scaled(_terms(part, leaves), 1 / len(parts)))
    # A long sum is a tree that leans to the left: going down it in a loop needs no stack.
    rest: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp):
        rest.append(node)
        node = node.left
    terms = _terms(node, leaves)
    for binary in reversed(rest):
        other = _terms(binary.right, leaves)
        match binary.op:
            case ast.Add():
                terms += other
            case ast.Sub():
                terms += _scaled(other, -1.0)
            case _:
                terms = _product(terms, other)
    return terms


def _product(left: tuple[Term, ...], right: tuple[Term, ...]) -> tuple[Term, ...]:
    if len(left) * len(right) > MOST_TERMS:
        raise RankPolicyError(
            f"a reward must have at most {MOST_TERMS} terms when it is multiplied out; got {len(left)} times {len(right)}. "
            "For more write a function of (rankings, labels, mask)."
        )
    return _collected(tuple(Term(a.weight * b.weight, a.factors + b.factors) for a in left for b in right))


def _scaled(terms: tuple[Term, ...], by: float) -> tuple[Term, ...]:
    return tuple(Term(by * term.weight, term.factors) for term in terms)


def _collected(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Like terms added up, factors and terms in one order, so that equal rewards are equal values."""
    weights: dict[tuple[Leaf, ...], float] = {}
    for term in terms:
        factors = tuple(sorted(term.factors, key=_order))
        weights[factors] = weights.get(factors, 0.0) + term.weight
    by_factors = sorted(weights.items(), key=lambda entry: [_order(leaf) for leaf in entry[0]])
    return tuple(Term(weight, factors) for factors, weight in by_factors)


def _order(leaf: Leaf) -> tuple[str, int, tuple[tuple[str, float], ...]]:
    return leaf.metric, leaf.cutoff or 0, leaf.options
