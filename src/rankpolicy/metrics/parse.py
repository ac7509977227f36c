"""From text to a reward: ``ndcg@10``, ``mean(ap, rr)``, ``0.7*ndcg@10 + 0.3*err``, ``ndcg@10 * ap``.

sum     = ["-"] product {("+" | "-") product}
product = factor {"*" factor}
factor  = number | "(" sum ")" | "mean" "(" sum {"," sum} ")" | metric
metric  = name ["(" option "=" number {"," option "=" number} ")"] ["@" cutoff]

The text is first checked symbol by symbol, which tells where it is wrong, and rewritten for Python's ``ast``: a metric with its options and
cutoff becomes a single name, since in Python ``2*ndcg@10`` would be ``(2*ndcg)@10``. The tree that ``ast`` gives is multiplied out into
terms. Checking needs no recursion, so that no text, however deeply nested, exhausts the stack.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.metrics.custom_reward import CustomReward
from rankpolicy.metrics.expression import Leaf, RewardExpression, Term, written, written_number
from rankpolicy.metrics.members import METRICS
from rankpolicy.metrics.metric import Metric, metric_aliases, metric_named
from rankpolicy.metrics.trained_mean import inside_trained_mean, with_trained_weights
from rankpolicy.types import Conventions, RankPolicyError, Reward

MOST_CHARACTERS = 2000
MOST_NESTED = 50
MOST_TERMS = 1000
HIGHEST_CUTOFF = 10**9

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<sign>\S))"
)
_SPACED = {"+": " + ", "-": " - ", ",": ", "}


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
    inner = inside_trained_mean(text)
    if inner is not None:
        return with_trained_weights(_parsed(f"mean({inner})", conventions))
    scanner = _Scanner(text)
    rewritten = scanner.reward()
    scanner.end("expected '+', '-', '*' or the end")
    return _expression(rewritten, text, conventions)


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
    scanner = _Scanner(text)
    rewards = [scanner.reward()]
    while scanner.take(","):
        rewards.append(scanner.reward())
    scanner.end("expected ',', '+', '-', '*' or the end")
    return tuple(_expression(reward, text, conventions) for reward in rewards)


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
    # Known classes first: a protocol is checked attribute by attribute.
    if isinstance(value, RewardExpression | CustomReward | Reward):
        return value
    if isinstance(value, str):
        return _parsed(value, checked_conventions(conventions))
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


class _RewrittenReward(NamedTuple):
    """One reward whose syntax is right."""

    name: str  # in normalised spelling
    python: str  # the expression with a name in place of each metric
    leaves: dict[str, Leaf]  # the metrics by these names


class _Token(NamedTuple):
    kind: str  # number, name, sign or end
    written: str
    start: int

    @property
    def text(self) -> str:
        """In lower case, unless it has letters whose lower case may be that of other letters."""
        return self.written.lower() if self.written.isascii() else self.written


class _Scanner:
    """Reads the symbols of one text from left to right; the first one that does not fit is an error."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise RankPolicyError(
                f"a reward must have at most {MOST_CHARACTERS} characters; got {len(text)}, starting with {text[:40]!r}. "
                "For a longer one write a function of (rankings, labels, mask)."
            )
        self.text = text
        found = [
            _Token(str(m.lastgroup), m[m.lastgroup or 0], m.end() - len(m[m.lastgroup or 0]))
            for m in _TOKEN.finditer(text)
        ]
        self.tokens = [*found, _Token("end", "", len(text.rstrip()))]
        self.index = 0
        if not found:
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

    def reward(self) -> _RewrittenReward:
        """A reward up to the end, or up to the first comma outside of brackets."""
        names: list[str] = []
        python: list[str] = []
        leaves: dict[str, Leaf] = {}
        opened: list[tuple[_Token, bool]] = []  # brackets that are not closed yet, and whether each is that of a mean
        is_start_of_sum = True
        while True:
            if is_start_of_sum and self.take("-"):
                names.append("-")
                python.append("-")
            is_start_of_sum = False
            if bracket := self.bracket():
                if len(opened) == MOST_NESTED:
                    self.fail(f"brackets may be nested at most {MOST_NESTED} deep", bracket[0])
                opened.append(bracket)
                names.append("mean(" if bracket[1] else "(")
                python.append(names[-1])
                is_start_of_sum = True
                continue
            if self.token.kind == "number":
                value = self.number("a number must be finite")
                names.append(written_number(value))
                python.append(repr(value))
            else:
                name, leaf = self.metric()
                names.append(name)
                python.append(f"metric_{len(leaves)}")
                leaves[python[-1]] = leaf
            while opened and self.take(")"):
                opened.pop()
                names.append(")")
                python.append(")")
            if opened and opened[-1][1] and self.take(","):
                names.append(", ")
                python.append(",")
                is_start_of_sum = True
            elif sign := self.take("+", "-", "*"):
                names.append(_SPACED.get(sign.text, sign.text))
                python.append(sign.text)
            elif opened:
                self.fail(f"expected ')' for the '(' at character {opened[-1][0].start + 1}")
            else:
                return _RewrittenReward("".join(names), "".join(python), leaves)

    def bracket(self) -> tuple[_Token, bool] | None:
        """The bracket that opens here, and whether it is that of a mean."""
        is_mean = self.token.kind == "name" and self.token.text == "mean"
        self.index += is_mean
        opened = self.take("(")
        if is_mean and opened is None:
            self.fail("expected '(' after mean, as in mean(ap, rr)")
        return None if opened is None else (opened, is_mean)

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
                self.fail(f"expected ')' for the '(' at character {opened.start + 1}")

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


def _expression(rewritten: _RewrittenReward, text: str, conventions: Conventions) -> RewardExpression:
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
    by_factors = sorted(weights.items(), key=lambda entry: tuple(map(_order, entry[0])))
    return tuple(Term(weight, factors) for factors, weight in by_factors)


def _order(leaf: Leaf) -> tuple[str, int, tuple[tuple[str, float], ...]]:
    return leaf.metric, leaf.cutoff or 0, leaf.options
