"""From text to a reward: ``ndcg@10``, ``mean(ap, rr)``, ``0.7*ndcg@10 + 0.3*err``, ``ndcg@10 * ap``.

sum     = ["-"] product {("+" | "-") product}
product = factor {"*" factor}
factor  = number | "(" sum ")" | "mean" "(" sum {"," sum} ")" | metric
metric  = name ["(" option "=" number {"," option "=" number} ")"] ["@" cutoff]

One method per rule reads the text from left to right and multiplies it out into terms on the way; the first symbol that does not fit is an
error that says where it stands. Python's ``ast`` does not serve: it reads ``2*ndcg@10`` as ``(2*ndcg)@10``, and its errors name no cutoff.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.metrics.custom_reward import CustomReward
from rankpolicy.metrics.expression import Leaf, RewardExpression, Term, written, written_number
from rankpolicy.metrics.ir_measures_names import as_text_and_conventions, is_ir_measure
from rankpolicy.metrics.members import METRICS
from rankpolicy.metrics.metric import Metric, metric_aliases, metric_named
from rankpolicy.types import Conventions, RankPolicyError, Reward

MOST_CHARACTERS = 2000
MOST_NESTED = 50
MOST_TERMS = 1000
HIGHEST_CUTOFF = 10**9

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<sign>\S))"
)
_NOT_FROM_0_TO_1 = ("dcg", "avg_rank")


def parse_metric(text: str, conventions: Conventions = Conventions()) -> RewardExpression:
    """The reward that a text describes.

    Parameters
    ----------
    text
        Metrics with cutoffs (``ndcg@10``) and options (``rbp(persistence=0.5)``), combined by ``+``, ``-``, ``*``, brackets, numbers and
        ``mean(...)``. Case and spaces do not matter. ``trained_mean(...)`` is a mean whose weights BanditRank trains.
    conventions
        The conventions that its metrics follow.

    >>> reward = parse_metric("0.7*NDCG@10+0.3*err")
    >>> reward.name, reward.is_linear, reward.cutoff
    ('0.7*ndcg@10 + 0.3*err', True, None)
    >>> parse_metric("ndgc@10")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown metric 'ndgc'. Did you mean 'ndcg'? Known: ...
    """
    if not isinstance(text, str):
        raise RankPolicyError(f"a metric must be given as text such as 'ndcg@10'; got {type(text).__name__}.")
    return _parsed(text, checked_conventions(conventions))


def checked_conventions(conventions: Any) -> Conventions:
    """The conventions, if they are some."""
    if not isinstance(conventions, Conventions):
        raise RankPolicyError(f"conventions must be Conventions(...); got {conventions!r:.60}.")
    return conventions


@lru_cache(maxsize=1024)
def _parsed(text: str, conventions: Conventions) -> RewardExpression:
    reader = _Reader(text)
    if reader.token.text == "trained_mean":
        return _trained_mean(reader, conventions)
    reward = reader.sum()
    reader.end("expected '+', '-', '*' or the end")
    return _expression(reward, text, conventions)


@checked_kinds
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
    reader = _Reader(text)
    rewards = [reader.sum()]
    while reader.take(","):
        rewards.append(reader.sum())
    reader.end("expected ',', '+', '-', '*' or the end")
    return tuple(_expression(reward, text, conventions) for reward in rewards)


def as_reward(value: object, conventions: Conventions = Conventions()) -> Reward:
    """A reward from a text, a metric or any function of (rankings, labels, mask).

    Parameters
    ----------
    value
        A text such as ``"ndcg@10"``, a metric function such as ``rp.metrics.ndcg``, a function of the user's own that returns one value
        per ranking, a measure of ir_measures, or a reward, which is returned as it is.
    conventions
        The conventions to follow; a reward that is given keeps its own.

    >>> from rankpolicy.metrics import ndcg
    >>> as_reward(ndcg) == as_reward("ndcg")
    True
    """
    # Known classes first: a protocol is checked attribute by attribute.
    if isinstance(value, RewardExpression | CustomReward | Reward):
        return value
    if isinstance(value, str):
        return _parsed(value, checked_conventions(conventions))
    if is_ir_measure(value):
        return _parsed(*as_text_and_conventions(value, checked_conventions(conventions)))
    for name, metric in METRICS.items():
        if value is metric or value is metric.function:
            return parse_metric(name, conventions)
    if callable(value) and not isinstance(value, type):
        name = getattr(value, "__name__", type(value).__name__)
        return CustomReward(name=name, function=value, conventions=checked_conventions(conventions))
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


class _Sum(NamedTuple):
    """A part of a reward that was read."""

    name: str  # in normalised spelling
    terms: tuple[Term, ...]


class _Token(NamedTuple):
    kind: str  # number, name, sign or end
    written: str
    start: int

    @property
    def text(self) -> str:
        """In lower case, unless it has letters whose lower case may be that of other letters."""
        return self.written.lower() if self.written.isascii() else self.written


class _Reader:
    """Reads one text from left to right; one method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise RankPolicyError(
                f"a reward must have at most {MOST_CHARACTERS} characters; got {len(text)}, starting with {text[:40]!r}. "
                "For a longer one write a function of (rankings, labels, mask)."
            )
        self.text = text
        self.tokens = [
            _Token(str(m.lastgroup), m[m.lastgroup or 0], m.start(m.lastgroup or 0)) for m in _TOKEN.finditer(text)
        ]
        self.tokens.append(_Token("end", "", len(text.rstrip())))
        self.index = self.depth = 0
        if len(self.tokens) == 1:
            raise RankPolicyError("a metric must be named, such as 'ndcg@10' or 'mean(ap, rr)'; got an empty text.")

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def fail(self, expected: str, token: _Token | None = None) -> NoReturn:
        at = token or self.token
        came = "the end" if at.kind == "end" else repr(at.written)
        raise RankPolicyError(f"{expected}; got {came} at character {at.start + 1} of {self.text!r}.")

    def take(self, *signs: str) -> _Token | None:
        """The next symbol, if it is one of these signs."""
        token = self.tokens[self.index]
        if token.kind != "sign" or token.written not in signs:
            return None
        self.index += 1
        return token

    def end(self, expected: str) -> None:
        if self.token.kind != "end":
            self.fail(expected)

    def sum(self) -> _Sum:
        """Products that are added up, to the end or to the first comma or bracket that closes."""
        is_negative = self.take("-") is not None
        name, terms = self.product()
        if is_negative:
            name, terms = f"-{name}", _scaled(terms, -1.0)
        while sign := self.take("+", "-"):
            added_name, added = self.product()
            name = f"{name} {sign.written} {added_name}"
            terms += added if sign.written == "+" else _scaled(added, -1.0)
        return _Sum(name, terms)

    def product(self) -> _Sum:
        name, terms = self.factor()
        while self.take("*"):
            factor_name, factor = self.factor()
            name, terms = f"{name}*{factor_name}", _product(terms, factor)
        return _Sum(name, terms)

    def factor(self) -> _Sum:
        if self.token.kind == "number":
            value = self.number("a number must be finite")
            return _Sum(written_number(value), (Term(value, ()),))
        if self.token.text == "mean":
            return self.mean()
        opened = self.take("(")
        if opened is None:
            name, leaf = self.metric()
            return _Sum(name, (Term(1.0, (leaf,)),))
        (inner,) = self.inside(opened)
        return _Sum(f"({inner.name})", inner.terms)

    def mean(self) -> _Sum:
        self.index += 1
        opened = self.take("(")
        if opened is None:
            self.fail("expected '(' after mean, as in mean(ap, rr)")
        sums = self.inside(opened, ",")
        terms = tuple(term for inner in sums for term in _scaled(inner.terms, 1 / len(sums)))
        return _Sum(f"mean({', '.join(inner.name for inner in sums)})", terms)

    def inside(self, opened: _Token, *separators: str) -> list[_Sum]:
        """The sums up to the bracket that closes ``opened``."""
        self.depth += 1
        if self.depth > MOST_NESTED:  # also keeps the recursion short
            self.fail(f"brackets may be nested at most {MOST_NESTED} deep", opened)
        sums = [self.sum()]
        while self.take(*separators):
            sums.append(self.sum())
        if not self.take(")"):
            self.fail(_not_closed(opened))
        self.depth -= 1
        return sums

    def number(self, expected: str) -> float:
        value = float(self.token.text)
        if not math.isfinite(value):
            self.fail(expected)
        self.index += 1
        return value

    def metric(self) -> tuple[str, Leaf]:
        """A metric with its options and cutoff, and how it is written."""
        token = self.token
        if token.kind != "name":
            self.fail("expected a metric, a number or '('")
        name = token.text if token.text in METRICS else metric_aliases().get(token.text)
        metric = metric_named(token.written) if name is None else METRICS[name]
        self.index += 1
        opened = self.take("(")
        options = self.options(metric, opened) if opened else ()
        cutoff = self.cutoff(token.text) if self.take("@") else None
        return written(token.text, cutoff, options), Leaf(metric.name, cutoff, options)

    def options(self, metric: Metric, opened: _Token) -> tuple[tuple[str, float], ...]:
        if not metric.options:
            self.fail(f"{metric.name} has no options", opened)
        options: dict[str, float] = {}
        while True:
            option = self.token
            if option.text not in metric.options or option.text in options:
                self.fail(f"expected an option of {metric.name}: {', '.join(metric.options)}")
            self.index += 1
            example = f"expected a number, as in {metric.name}({option.text}=0.5)"
            if not self.take("=") or self.token.kind != "number":
                self.fail(example)
            options[option.text] = self.number(example)
            metric.check_option(option.text, options[option.text])
            if self.take(")"):
                return tuple(sorted(options.items()))
            if not self.take(","):
                self.fail(_not_closed(opened))

    def cutoff(self, name: str) -> int:
        token = self.token
        if token.text == "-" and self.tokens[self.index + 1].kind == "number":
            token = token._replace(written="-" + self.tokens[self.index + 1].written)
        digits = token.written.lstrip("0")
        if token.kind != "number" or not digits.isdecimal():
            self.fail(f"a cutoff must be a whole number, 1 or more, as in {name}@10", token)
        if len(digits) > len(str(HIGHEST_CUTOFF)) or int(digits) > HIGHEST_CUTOFF:
            self.fail(f"a cutoff must be at most {HIGHEST_CUTOFF}, or left out to count every position")
        self.index += 1
        return int(digits)


def _not_closed(opened: _Token) -> str:
    return f"expected ')' for the '(' at character {opened.start + 1}"


def _trained_mean(reader: _Reader, conventions: Conventions) -> RewardExpression:
    """A mean whose weights BanditRank trains; its metrics lie between 0 and 1."""
    name, terms = reader.mean()
    if reader.token.kind != "end":
        metric_named("trained_mean")  # a reward of its own, no metric: the error says so
    mean = _expression(_Sum(name, terms), name, conventions)
    unbounded = any(leaf.metric in _NOT_FROM_0_TO_1 for leaf in mean.leaves)
    if not mean.is_linear or any(term.weight <= 0 for term in mean.terms) or len(mean.leaves) < 2 or unbounded:
        raise RankPolicyError(
            "trained_mean(...) must hold two or more different metrics between 0 and 1, such as trained_mean(ap, ndcg@10): its weights "
            f"are trained by how much is missing to 1; got 'trained_{name}'."
        )
    return replace(mean, name=f"trained_{name}", trained=True)


def _expression(reward: _Sum, text: str, conventions: Conventions) -> RewardExpression:
    name, terms = reward
    if not any(term.factors for term in terms):
        raise RankPolicyError(f"a reward must contain a metric; got {text!r}. Known: {', '.join(METRICS)}.")
    if not all(math.isfinite(term.weight) for term in terms):
        raise RankPolicyError(f"the weights of a reward must be finite numbers; got {text!r}.")
    return RewardExpression(name=name, terms=_collected(terms), conventions=conventions)


def _product(first: tuple[Term, ...], second: tuple[Term, ...]) -> tuple[Term, ...]:
    if len(first) * len(second) > MOST_TERMS:
        raise RankPolicyError(
            f"a reward must have at most {MOST_TERMS} terms when it is multiplied out; got {len(first)} times {len(second)}. "
            "For more write a function of (rankings, labels, mask)."
        )
    return _collected(tuple(Term(a.weight * b.weight, a.factors + b.factors) for a in first for b in second))


def _scaled(terms: tuple[Term, ...], by: float) -> tuple[Term, ...]:
    return tuple(Term(by * term.weight, term.factors) for term in terms)


def _collected(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Like terms added up, factors and terms in one order, so that equal rewards are equal values."""
    weights: dict[tuple[Leaf, ...], float] = {}
    for term in terms:
        factors = tuple(sorted(term.factors, key=_order))
        weights[factors] = weights.get(factors, 0.0) + term.weight
    by_factors = sorted(weights.items(), key=lambda entry: tuple(map(_order, entry[0])))
    return tuple(Term(weight, factors) for factors, weight in by_factors)


def _order(leaf: Leaf) -> tuple[str, int, tuple[tuple[str, float], ...]]:
    return leaf.metric, leaf.cutoff or 0, leaf.options
