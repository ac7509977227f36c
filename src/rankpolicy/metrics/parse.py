"""From text to a reward: ``ndcg@10``, ``mean(ap, rr)``, ``0.7*ndcg@10 + 0.3*err``, ``ndcg@10 * ap``.

sum     = ["-"] product {("+" | "-") product}
product = factor {"*" factor}
factor  = number | "(" sum ")" | "mean" "(" sum {"," sum} ")" | metric
metric  = name ["(" option "=" number ")"] ["@" cutoff]
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from rankpolicy.metrics.expression import CustomReward, Leaf, RewardExpression, Term
from rankpolicy.metrics.members import ALIASES, METRICS, OPTIONS
from rankpolicy.types import Conventions, RankPolicyError, unknown_name

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+)|(?P<name>[a-z_][a-z_0-9]*)|(?P<sign>\S))", re.I
)


class _Token(NamedTuple):
    kind: str  # number, name, sign or end
    text: str
    start: int


class _Sum(NamedTuple):
    """A parsed part: its normalised text and its terms."""

    text: str
    terms: tuple[Term, ...]


def parse_metric(text: str, conventions: Conventions = Conventions()) -> RewardExpression:
    """The reward that a text describes.

    >>> reward = parse_metric("0.7*NDCG@10+0.3*err")
    >>> reward.name, reward.is_linear, reward.cutoff
    ('0.7*ndcg@10 + 0.3*err', True, None)
    >>> parse_metric("ndgc@10")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown metric 'ndgc'. Did you mean 'ndcg'? Known: ap, avg_rank, dcg, err, ...
    """
    parser = _Parser(text)
    parsed = parser.sum()
    if parser.token.kind != "end":
        parser.fail("expected '+', '-', '*' or the end")
    return _expression(parsed, text, conventions)


def parse_metrics(text: str, conventions: Conventions = Conventions()) -> tuple[RewardExpression, ...]:
    """The metrics of a text that separates them by commas.

    >>> [metric.name for metric in parse_metrics("ndcg@10,mean(ap,rr)")]
    ['ndcg@10', 'mean(ap, rr)']
    """
    parser = _Parser(text)
    parsed = [parser.sum()]
    while parser.take(","):
        parsed.append(parser.sum())
    if parser.token.kind != "end":
        parser.fail("expected ',', '+', '-', '*' or the end")
    return tuple(_expression(part, text, conventions) for part in parsed)


def as_reward(value: object, conventions: Conventions = Conventions()) -> RewardExpression | CustomReward:
    """A reward from a text, a metric function or any function of (rankings, labels, mask).

    An expression keeps its own conventions.

    >>> from rankpolicy.metrics import ndcg
    >>> as_reward(ndcg) == as_reward("ndcg")
    True
    """
    if isinstance(value, RewardExpression | CustomReward):
        return value
    if isinstance(value, str):
        return parse_metric(value, conventions)
    for name, metric in METRICS.items():
        if value is metric:
            return parse_metric(name, conventions)
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        return CustomReward(name=name, function=value, conventions=conventions)
    raise RankPolicyError(
        "a reward must be a text such as 'ndcg@10', a metric or a function of (rankings, labels, mask); "
        f"got {value!r:.80}."
    )


def reward_to_maximise(value: object, conventions: Conventions = Conventions()) -> RewardExpression | CustomReward:
    """As ``as_reward``, for training and choosing, which take higher for better.

    >>> reward_to_maximise("avg_rank")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: a reward must rise as rankings get better; 'avg_rank' falls. Write '-avg_rank'.
    """
    reward = as_reward(value, conventions)
    if reward.lower_is_better:
        falling = reward.name if len(getattr(reward, "terms", ())) == 1 else "avg_rank"
        raise RankPolicyError(f"a reward must rise as rankings get better; {reward.name!r} falls. Write '-{falling}'.")
    return reward


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise RankPolicyError(f"a metric must be given as text such as 'ndcg@10'; got {type(text).__name__}.")
        self.text = text
        found = [
            _Token(str(m.lastgroup), m[0].strip().lower(), m.end() - len(m[0].strip())) for m in _TOKEN.finditer(text)
        ]
        self.tokens = [*found, _Token("end", "", len(text.rstrip()))]
        self.index = 0
        if not found:
            raise RankPolicyError("a metric must be named, such as 'ndcg@10' or 'mean(ap, rr)'; got an empty text.")

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def fail(self, what: str, token: _Token | None = None) -> NoReturn:
        at = token or self.token
        came = "the end" if at.kind == "end" else repr(self.text[at.start : at.start + len(at.text)])
        raise RankPolicyError(f"{what}; got {came} at character {at.start + 1} of {self.text!r}.")

    def take(self, *texts: str) -> _Token | None:
        """The next token if it is one of these signs."""
        if self.token.kind != "sign" or self.token.text not in texts:
            return None
        self.index += 1
        return self.tokens[self.index - 1]

    def close(self, opened: _Token) -> None:
        if not self.take(")"):
            self.fail(f"expected ')' for the '(' at character {opened.start + 1}")

    def sum(self) -> _Sum:
        negative = self.take("-")
        text, terms = self.product()
        if negative:
            text, terms = f"-{text}", _scaled(terms, -1.0)
        while sign := self.take("+", "-"):
            other = self.product()
            text = f"{text} {sign.text} {other.text}"
            terms += _scaled(other.terms, 1.0 if sign.text == "+" else -1.0)
        return _Sum(text, terms)

    def product(self) -> _Sum:
        text, terms = self.factor()
        while self.take("*"):
            other = self.factor()
            text = f"{text}*{other.text}"
            terms = tuple(Term(a.weight * b.weight, a.factors + b.factors) for a in terms for b in other.terms)
        return _Sum(text, terms)

    def factor(self) -> _Sum:
        token = self.token
        if token.kind == "number":
            self.index += 1
            return _Sum(f"{float(token.text):g}", (Term(float(token.text), ()),))
        if opened := self.take("("):
            inner = self.sum()
            self.close(opened)
            return _Sum(f"({inner.text})", inner.terms)
        if token.kind != "name":
            self.fail("expected a metric, a number or '('")
        self.index += 1
        return self.mean() if token.text == "mean" else self.metric(token)

    def mean(self) -> _Sum:
        opened = self.take("(")
        if not opened:
            self.fail("expected '(' after mean, as in mean(ap, rr)")
        parts = [self.sum()]
        while self.take(","):
            parts.append(self.sum())
        self.close(opened)
        terms = tuple(term for part in parts for term in _scaled(part.terms, 1 / len(parts)))
        return _Sum(f"mean({', '.join(part.text for part in parts)})", terms)

    def metric(self, name: _Token) -> _Sum:
        metric = ALIASES.get(name.text, name.text)
        if metric not in METRICS:
            written = self.text[name.start : name.start + len(name.text)]
            raise RankPolicyError(unknown_name("metric", written, METRICS, also=[*ALIASES, "mean"]))
        options = self.options(metric)
        cutoff = self.cutoff(name.text) if self.take("@") else None
        given = f"({', '.join(f'{option}={value:g}' for option, value in options)})" if options else ""
        at = f"@{cutoff}" if cutoff else ""
        return _Sum(f"{name.text}{given}{at}", (Term(1.0, (Leaf(metric, cutoff, options),)),))

    def options(self, metric: str) -> tuple[tuple[str, float], ...]:
        opened = self.take("(")
        if not opened:
            return ()
        known = OPTIONS.get(metric, ())
        if not known:
            self.fail(f"{metric} has no options", opened)
        option = self.token
        if option.text not in known:
            self.fail(f"expected an option of {metric}: {', '.join(known)}")
        self.index += 1
        if not self.take("=") or self.token.kind != "number":
            self.fail(f"expected a number, as in {metric}({option.text}=0.5)")
        value = float(self.token.text)
        self.index += 1
        self.close(opened)
        return ((option.text, value),)

    def cutoff(self, name: str) -> int:
        first, given = self.token, self.token.text
        if given == "-" and self.tokens[self.index + 1].kind == "number":
            given += self.tokens[self.index + 1].text
        if not given.isdecimal() or int(given) < 1:
            self.fail(f"a cutoff must be a whole number, 1 or more, as in {name}@10", first._replace(text=given))
        self.index += 1
        return int(given)


def _expression(parsed: _Sum, text: str, conventions: Conventions) -> RewardExpression:
    if not any(term.factors for term in parsed.terms):
        raise RankPolicyError(f"a reward must contain a metric; got {text!r}. Known: {', '.join(METRICS)}.")
    return RewardExpression(name=parsed.text, terms=_collected(parsed.terms), conventions=conventions)


def _scaled(terms: tuple[Term, ...], by: float) -> tuple[Term, ...]:
    return tuple(Term(by * term.weight, term.factors) for term in terms)


def _collected(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Like terms joined, factors and terms in one order, so that equal rewards are equal values."""
    weights: dict[tuple[Leaf, ...], float] = {}
    for term in terms:
        factors = tuple(sorted(term.factors, key=_order))
        weights[factors] = weights.get(factors, 0.0) + term.weight
    by_factors = sorted(weights.items(), key=lambda entry: [_order(leaf) for leaf in entry[0]])
    return tuple(Term(weight, factors) for factors, weight in by_factors)


def _order(leaf: Leaf) -> tuple[str, int, tuple[tuple[str, float], ...]]:
    return leaf.metric, leaf.cutoff or 0, leaf.options
