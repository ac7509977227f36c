"""Read this first: the words of the project, the errors, and the conventions that travel between packages.

Glossary (one notion, one word, everywhere)

- **query**: what a user asked; it owns a list of **items**.
- **scores** ``(query, item)``: what a model predicts for each item; higher is better.
- **labels** ``(query, item)``: given grades of relevance, 0 and up.
- **mask** ``(query, item)``: True where a padded array holds a real item.
- **rankings** ``(..., query, position)``: ``rankings[..., p]`` is the item at position p (counted from 0); padded items come last.
- **ranks** ``(..., query, item)``: 1-based rank of each item; the inverse of a ranking.
- **cutoff**: how many positions of a ranking count.
- **policy**: a distribution over the rankings of each query.
- **reward** ``(..., query)``: what a ranking earns; **advantage**: reward minus its control variate.
- **group**: the protected group of an item; **merit**, **exposure**, **propensity**, **clicks**: as in the fairness and click literature.
- **competitor**: a method we compare with.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import torch

    from rankpolicy.data.dataset import RankingDataset
    from rankpolicy.metrics.expression import Leaf
    from rankpolicy.metrics.metric import AdditiveForm

Array: TypeAlias = Any  # a numpy array or a torch tensor: mypy knows no type that is either
Generator: TypeAlias = "np.random.Generator | torch.Generator"


class RankPolicyError(ValueError):
    """Input that cannot be used. The message says what must hold, what came, and what to do.

    Parameters
    ----------
    message
        What must hold and what came; and what to do, where this is the same for everyone.
    python, command_line
        What to do in a program, and what to do on the command line, in its options.

    >>> error = RankPolicyError("only sums have it.", python="Take estimator='gumbel'.", command_line="Take --set estimator=gumbel.")
    >>> str(error), error.on_command_line
    ("only sums have it. Take estimator='gumbel'.", 'only sums have it. Take --set estimator=gumbel.')
    """

    def __init__(self, message: str = "", *, python: str = "", command_line: str = "") -> None:
        super().__init__(f"{message} {python}".rstrip())
        self.on_command_line = f"{message} {command_line or python}".rstrip()

    def within(self, context: str) -> RankPolicyError:
        """This error with the place where it occurred, such as a file, in front of its message."""
        located = RankPolicyError(f"{context}: {self}")
        located.on_command_line = f"{context}: {self.on_command_line}"
        return located


class RankPolicyTypeError(RankPolicyError, TypeError):
    """Input that holds objects where numbers are needed; a TypeError too, as scikit-learn expects it."""


class MissingDependencyError(ImportError):
    """A feature needs a package that is not installed; the message names it."""


def unknown_name(kind: str, name: object, known: Iterable[str], *, also: Iterable[str] = ()) -> str:
    """The error text for a name that does not exist; ``also`` are names that may be suggested but are not listed.

    >>> unknown_name("model", "mpl", ["linear", "mlp"])
    "Unknown model 'mpl'. Did you mean 'mlp'? Known: linear, mlp."
    """
    names = list(known)
    close = difflib.get_close_matches(str(name).lower(), [*names, *also], n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"Unknown {kind} {name!r}.{hint} Known: {', '.join(names)}."


def check_name(kind: str, name: str | None, known: Collection[str], *, within: str = "") -> None:
    """Refuse a name that does not exist, with ``within`` in front of the message; None is no name.

    >>> check_name("policy", "serch", ["search"], within="retrain: ")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: retrain: Unknown policy 'serch'. Did you mean 'search'? Known: search.
    """
    if name is not None and name not in known:
        raise RankPolicyError(f"{within}{unknown_name(kind, name, known)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """Choices that the definition of a metric leaves open. Numbers differ by these more than by method, so every table prints them.

    Parameters
    ----------
    gain
        Gain of an item in dcg and ndcg: ``"exp2"`` is 2^label - 1 (the default; LETOR, LightGBM), ``"linear"`` is the label (trec_eval).
    empty
        Value of a query without relevant items: 0 (the default; LETOR, RankLib, Rax), 1 (LightGBM, XGBoost) or ``"skip"`` (NaN, left out of
        means).
    relevant_from
        Lowest label at which an item counts as relevant, for the metrics that only ask whether it is: ap, avg_rank, p, rbp, recall, rr and
        success. The default is 1.
    max_label
        Highest grade of the scale, for ERR's stopping probability (2^label - 1) / 2^max_label. The default is 4, as in MSLR-WEB30K;
        set it where grades go up to another number.
    ties
        How items with equal scores are measured; a ranker itself keeps them in their given order. ``"expected"`` is the mean over all their
        orders (the default; McSherry & Najork 2008, scikit-learn's ndcg_score), so that a constant scorer is worth as much as a random one.
        ``"worst"`` is the order that is worst for the scorer, ascending labels. ``"item_id"`` is trec_eval's rule, descending item ids,
        which ir_measures and pytrec_eval follow; it needs data with item ids.
    """

    gain: Literal["exp2", "linear"] = "exp2"
    empty: Literal[0, 1, "skip"] = 0
    relevant_from: float = 1.0
    max_label: float = 4.0
    ties: Literal["expected", "worst", "item_id"] = "expected"

    def __post_init__(self) -> None:
        for name in ("gain", "empty", "ties"):
            if not isinstance(getattr(self, name), str | int | float):
                raise RankPolicyError(f"{name} must be a text or a number; got {getattr(self, name)!r:.80}.")
        if self.gain not in ("exp2", "linear"):
            raise RankPolicyError(f"gain must be 'exp2' or 'linear'; got {self.gain!r}.")
        if self.empty not in (0, 1, "skip"):
            raise RankPolicyError(f"empty must be 0, 1 or 'skip'; got {self.empty!r}.")
        if self.ties not in ("expected", "worst", "item_id"):
            raise RankPolicyError(f"ties must be 'expected', 'worst' or 'item_id'; got {self.ties!r}.")
        for name in ("relevant_from", "max_label"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
                raise RankPolicyError(f"{name} must be a label, a finite number 0 or more; got {value!r}.")

    def __str__(self) -> str:
        shown = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in asdict(self).items())
        return f"conventions: {', '.join(shown)}"


@runtime_checkable
class Reward(Protocol):
    """What a policy is trained on and measured by: a metric, a mix of metrics, or a function of the user's own.

    ``as_reward`` makes one from a string or a function.
    """

    @property
    def name(self) -> str:
        """Name in tables and error messages."""
        ...

    @property
    def conventions(self) -> Conventions:
        """The conventions it is computed with."""
        ...

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The metrics it is made of, each once; empty for a function, which may reward rankings whatever the labels are."""
        ...

    @property
    def cutoff(self) -> int | None:
        """The deepest position that matters; None when every position does."""
        ...

    @property
    def lower_is_better(self) -> bool:
        """Whether better rankings have lower values."""
        ...

    @property
    def is_linear(self) -> bool:
        """Whether it is a weighted sum of metrics."""
        ...

    @property
    def is_additive(self) -> bool:
        """Whether it is a sum of rank weights times item values, which exact gradients need."""
        ...

    @property
    def has_cascade(self) -> bool:
        """Whether it is a weighted sum of metrics with a cascade form, which the gumbel estimator needs."""
        ...

    def check_labels(self, labels: Array) -> None:
        """Refuse labels that it cannot read."""
        ...

    def additive_forms(self, labels: Array, mask: Array) -> tuple[AdditiveForm, ...]:
        """Rank weights and item values that add up to the reward; an error where it is not additive."""
        ...

    def __call__(self, rankings: Array, labels: Array, mask: Array) -> Array:
        """Values (..., query) of rankings (..., query, position) for labels and mask (query, item)."""
        ...


@runtime_checkable
class RankingPolicy(Protocol):
    """A distribution over the rankings of each query of a padded batch (query, item): PlackettLuce, Affinity, Mixture, ..."""

    @property
    def mask(self) -> Array:
        """True where a padded array holds a real item (query, item)."""
        ...

    def sample(self, num_samples: int, *, cutoff: int | None = None, generator: Generator | None = None) -> Array:
        """Rankings (sample, query, position) drawn from the policy; only the first ``cutoff`` positions, by default all."""
        ...

    def log_prob(self, rankings: Array, *, cutoff: int | None = None) -> Array:
        """Log probability (..., query) of rankings, or of their first ``cutoff`` positions."""
        ...

    def mode(self) -> Array:
        """The most probable ranking (query, position)."""
        ...

    def exposure(self, rank_weights: Array | None = None, *, cutoff: int | None = None) -> Array:
        """Expected weight of each item's rank (query, item); by default 1 / log2(1 + rank). Ranks past the cutoff weigh 0."""
        ...


@runtime_checkable
class NetworkInputs(Protocol):
    """How a network reads a dataset: scaled features, words, tokens of a language model, texts with side columns."""

    @property
    def needs_queries(self) -> bool:
        """Whether what is read of an item depends on the other items of its query."""
        ...

    def read(self, dataset: RankingDataset) -> Any:
        """What the network takes, one row per item: a tensor of features or ``TextPairs``, on the CPU."""
        ...

    def files(self) -> dict[str, bytes]:
        """What has to be saved beside the weights of the network, by file name."""
        ...
