"""The text of a reward, checked symbol by symbol and rewritten for Python's own parser.

sum     = ["-"] product {("+" | "-") product}
product = factor {"*" factor}
factor  = number | "(" sum ")" | "mean" "(" sum {"," sum} ")" | metric
metric  = name ["(" option "=" number {"," option "=" number} ")"] ["@" cutoff]

A metric with its options and cutoff becomes a single name of the rewritten text: in Python ``2*ndcg@10`` would be ``(2*ndcg)@10``. Checking
needs no recursion, so that no text, however deeply nested, exhausts the stack.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, NoReturn

from rankpolicy.metrics.expression import Leaf, written, written_number
from rankpolicy.metrics.members import METRICS, metric_aliases, metric_named
from rankpolicy.metrics.metric import Metric
from rankpolicy.types import RankPolicyError

MOST_CHARACTERS = 2000
MOST_NESTED = 50
HIGHEST_CUTOFF = 10**9

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<sign>\S))"
)
_SPACED = {"+": " + ", "-": " - ", ",": ", "}


class RewrittenReward(NamedTuple):
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


def rewrite_reward(text: str) -> RewrittenReward:
    """The one reward that a text describes."""
    scanner = _Scanner(text)
    reward = scanner.reward()
    scanner.end("expected '+', '-', '*' or the end")
    return reward


def rewrite_rewards(text: str) -> list[RewrittenReward]:
    """The rewards of a text that separates them by commas."""
    scanner = _Scanner(text)
    rewards = [scanner.reward()]
    while scanner.take(","):
        rewards.append(scanner.reward())
    scanner.end("expected ',', '+', '-', '*' or the end")
    return rewards


class _Scanner:
    """Reads the symbols of one text from left to right; the first one that does not fit is an error."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise RankPolicyError(f"a metric must be given as text such as 'ndcg@10'; got {type(text).__name__}.")
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
        if self.token.kind != "sign" or self.token.text not in signs:
            return None
        self.index += 1
        return self.tokens[self.index - 1]

    def end(self, expected: str) -> None:
        if self.token.kind != "end":
            self.fail(expected)

    def reward(self) -> RewrittenReward:
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
                return RewrittenReward("".join(names), "".join(python), leaves)

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
        known = token.text in METRICS or token.text in metric_aliases()
        metric = metric_named(token.text if known else token.written)
        self.index += 1
        options = self.options(metric)
        cutoff = self.cutoff(token.text) if self.take("@") else None
        return written(token.text, cutoff, options), Leaf(metric.name, cutoff, options)

    def options(self, metric: Metric) -> tuple[tuple[str, float], ...]:
        opened = self.take("(")
        if not opened:
            return ()
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
