"""Index bandits: any index with any kind of feedback, and the named ones (which index, which feedback, whose paper).

Bandits that learn at which positions users stop, and show the best items there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.bandit import Bandit
from rankpolicy.bandits.index import (
    KLUCB,
    LOG_LOG_WEIGHT,
    UCB1,
    AnyIndexBandit,
    CountIndex,
    Index,
    IndexPreset,
    LinTS,
    LinUCB,
    ThompsonSampling,
)
from rankpolicy.bandits.members import INDICES
from rankpolicy.declarations.settings import changed_settings, plain, setting, setting_names, settings_class
from rankpolicy.kernels.bandits.memory import FEEDBACKS, Program
from rankpolicy.types import RankPolicyError


@settings_class
class IndexBandit(AnyIndexBandit):
    """A bandit made of an index and a kind of feedback. The named bandits (DcmKLUCB, CascadeTS, ...) are presets of it.

    >>> from rankpolicy.bandits import KLUCB
    >>> bandit = IndexBandit(num_items=3, cutoff=3, index=KLUCB(log_log_weight=1.0), feedback="last-click")
    >>> bandit.learn([2, 0, 1], [1, 1, 0])
    >>> bandit.memory.statistics[0].tolist()  # clicks and observations of items 0, 1 and 2
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "index"

    index: Index | str = setting(
        MISSING,
        "How much an item promises: a name, or a value with settings of its own such as UCB1(radius=0.5). ts has the lowest regret in "
        "practice, kl-ucb and ucb1 have guarantees, lin-ucb and lin-ts learn from features of items.",
        choices=lambda: tuple(INDICES),
    )
    feedback: str = setting(
        "all-clicks",
        "What a list of clicks reveals. all-clicks: items down to the last click were examined (DCM users, who may click several items). "
        "first-click: items down to the first click were examined, later clicks are ignored (cascade users). last-click: items down to "
        "the last click were examined, only that click counts. whole-list: all items shown were examined (multiple plays).",
        choices=FEEDBACKS,
    )

    def __post_init__(self) -> None:
        if isinstance(self.index, Mapping):  # as in to_dict()
            settings = dict(self.index)
            self.index = INDICES.named(settings.pop("name", None))(**settings)
        elif isinstance(self.index, Index) and not isinstance(self.index, Bandit):
            self.index = replace(self.index)  # a copy: add_items and set_features change it
        else:
            self.index = INDICES.named(self.index)()
        super().__post_init__()

    def _used_index(self) -> Index:
        assert isinstance(self.index, Index)
        return self.index

    def _used_feedback(self) -> str:
        return self.feedback

    def _plain_settings(self) -> dict[str, Any]:
        index = self._used_index()
        if index.name not in INDICES or INDICES[index.name] is not type(index):
            raise RankPolicyError(
                f"an index of your own cannot be saved, because files hold no code; got {type(index).__name__}. "
                f"These can: {', '.join(INDICES)}."
            )
        settings = {name: plain(getattr(index, name)) for name in setting_names(type(index)) if name != "features"}
        return super()._plain_settings() | {"index": {"name": index.name} | settings}

    def _array_settings(self) -> dict[str, NDArray[np.float64]]:
        changed = changed_settings(self._used_index())
        return {"features": changed["features"]} if "features" in changed else {}

    @classmethod
    def _with_arrays(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        return settings | {"index": dict(settings["index"]) | arrays}


# Users who may click several items (DCM): every item down to the last click was examined --------------------------------------------


@settings_class
class DcmKLUCB(KLUCB, IndexPreset):
    """dcmKL-UCB (Katariya, Kveton, Szepesvári & Wen 2016): KL-UCB for users who scan from the top and may click several items.

    Every item down to the last click was examined, all of them if there was no click; below the last click nothing is known. The items of
    the largest indices are shown, largest first, which is best if clicks at higher positions are more likely to end the search.

    >>> bandit = DcmKLUCB(num_items=3, cutoff=2)
    >>> bandit.learn([2, 0], [1, 0])
    >>> bandit.memory.statistics[0].tolist()  # clicks and observations: item 0 came below the last click
    [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    """

    name: ClassVar[str] = "dcm-kl-ucb"


@settings_class
class DcmKLUCBLog(DcmKLUCB):
    """dcmKL-UCB with the threshold log t alone. The proofs need the log log term, regret is lower without it."""

    name: ClassVar[str] = "dcm-kl-ucb-log"

    log_log_weight: float = setting(0.0, LOG_LOG_WEIGHT, at_least=0)


@settings_class
class DcmUCB1(UCB1, IndexPreset):
    """UCB1 with the feedback of dcmKL-UCB: simpler than KL-UCB, with more regret."""

    name: ClassVar[str] = "dcm-ucb1"


@settings_class
class DcmTS(ThompsonSampling, IndexPreset):
    """Thompson sampling with the feedback of dcmKL-UCB. A good first choice: lowest regret in practice, one draw per item and list."""

    name: ClassVar[str] = "dcm-ts"


@settings_class
class DcmLinUCB(LinUCB, IndexPreset):
    """LinUCB with the feedback of dcmKL-UCB, for items with features."""

    name: ClassVar[str] = "dcm-lin-ucb"


@settings_class
class DcmLinTS(LinTS, IndexPreset):
    """Linear Thompson sampling with the feedback of dcmKL-UCB, for items with features."""

    name: ClassVar[str] = "dcm-lin-ts"


@settings_class
class FirstClick(KLUCB, IndexPreset):
    """dcmKL-UCB that ignores clicks after the first, a competitor in Katariya et al. (2016); the same as CascadeKL-UCB, on DCM users."""

    name: ClassVar[str] = "first-click"
    feedback: ClassVar[str] = "first-click"


@settings_class
class LastClick(KLUCB, IndexPreset):
    """dcmKL-UCB that ignores clicks before the last, a competitor in Katariya et al. (2016): items above it count as not clicked.

    >>> bandit = LastClick(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [1, 1, 0])
    >>> bandit.memory.statistics[0].tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "last-click"
    feedback: ClassVar[str] = "last-click"


# Users who stop at the first click (cascade): every item down to it was examined -----------------------------------------------------


@dataclass(kw_only=True, eq=False)
class CascadePreset(IndexPreset):
    """An index bandit for users of the cascade model."""

    made_for: ClassVar[str] = "cascade"
    feedback: ClassVar[str] = "first-click"


@settings_class
class CascadeKLUCB(KLUCB, CascadePreset):
    """CascadeKL-UCB (Kveton, Szepesvári, Wen & Ashkan 2015): KL-UCB for users who stop at the first click.

    Every item down to the first click was examined, all of them if there was no click; later clicks are ignored.

    >>> bandit = CascadeKLUCB(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [0, 1, 1])
    >>> bandit.memory.statistics[0].tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "cascade-kl-ucb"


@settings_class
class CascadeUCB1(UCB1, CascadePreset):
    """CascadeUCB1 (Kveton et al. 2015): UCB1 with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-ucb1"


@settings_class
class CascadeTS(ThompsonSampling, CascadePreset):
    """TS-Cascade with Beta posteriors (Zhong, Cheung & Tan 2021): Thompson sampling with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-ts"


@settings_class
class CascadeLinUCB(LinUCB, CascadePreset):
    """CascadeLinUCB (Zong, Ni, Sung, Ke, Wen & Kveton 2016): LinUCB with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-lin-ucb"


@settings_class
class CascadeLinTS(LinTS, CascadePreset):
    """CascadeLinTS (Zong et al. 2016): linear Thompson sampling with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-lin-ts"


# Users who examine the whole list (multiple plays): every item shown was examined ---------------------------------------------------


@settings_class
class MpTS(ThompsonSampling, IndexPreset):
    """MP-TS (Komiyama, Honda & Nakagawa 2015): Thompson sampling for multiple plays, where every item shown is examined.

    The items of the largest draws are shown, and each click or its absence counts. Asymptotically optimal for users who examine all
    positions alike; where lower positions are examined less, items that were shown there look worse than they are (see pbm-ts).

    >>> bandit = MpTS(num_items=3, cutoff=2)
    >>> bandit.learn([2, 0], [1, 0])
    >>> bandit.memory.statistics[0].tolist()  # clicks and observations: item 0, below the last click, was examined too
    [[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    """

    name: ClassVar[str] = "mp-ts"
    made_for: ClassVar[str] = "pbm"
    feedback: ClassVar[str] = "whole-list"


@dataclass(kw_only=True, eq=False)
class LearnedOrder(CountIndex, IndexPreset):
    """An index of expected counts, with the positions ordered by what was learned about them (kernels/bandits/learned_order.py)."""

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True
    learns_order: ClassVar[bool] = True

    def steps(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.counts import rank_items_by
        from rankpolicy.kernels.bandits.learned_order import learn_attraction_and_stops, place_by_learned_order

        return Program(rank_items_by(self.threshold, self.value, place_by_learned_order), learn_attraction_and_stops)

    def _index_statistics(self, num_items: int) -> NDArray[np.float64]:
        return np.zeros((1 + 2 * self.cutoff, num_items, 2))

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        super()._check_statistics(statistics[:1])
        if (statistics < 0).any():
            raise RankPolicyError("statistics must be at least 0; got others.")


@settings_class
class DcmFull(KLUCB, LearnedOrder):
    """KL-UCB for DCM users whose v is not known: it learns the attraction of items and the order of v together.

    The k-th largest index goes where the k-th largest v is. Another click below position k has probability (1 - v(k)) times P(a click
    below | not stopped), so 1 - v(k) is the first divided by the sum of the second, drawn towards the value of all positions where little
    is known. Items below the last click count as examined with the probability that the user went on. Users who look less at lower
    positions seem to stop after clicks there, so v(k) counts less where items have fewer clicks than they promise although nothing was
    clicked above, and not at all from two thirds of the promise on; DCM users always examine the next item then.

    No click can follow the last position, so v(K) leaves no trace, whatever the bandit shows: the last position is taken for the least, and
    no bandit has sublinear regret for every v. No bound is known for users for whom v(K) is the smallest.

    >>> bandit = DcmFull(num_items=3, cutoff=3)
    >>> bandit.learn_log([[0, 1, 2], [1, 0, 2]] * 40, [[1, 1, 0], [0, 1, 0]] * 40)  # all go on after position 0, none after position 1
    >>> bandit.rank()  # the best item is shown where it ends the search
    array([1, 0, 2])
    """

    name: ClassVar[str] = "dcm-full"


@settings_class
class DcmFullTS(ThompsonSampling, LearnedOrder):
    """Thompson sampling of attraction with the order of positions that DcmFull learns: less regret in practice, no guarantee."""

    name: ClassVar[str] = "dcm-full-ts"
