"""Named index bandits: which index, which feedback, whose paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.index_bandit import IndexPreset
from rankpolicy.bandits.indices import KLUCB, LOG_LOG_WEIGHT, UCB1, ThompsonSampling
from rankpolicy.bandits.linear import LinTS, LinUCB
from rankpolicy.settings import documented, setting

# Users who may click several items (DCM): every item down to the last click was examined --------------------------------------------


@documented
@dataclass(kw_only=True, eq=False)
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


@documented
@dataclass(kw_only=True, eq=False)
class DcmKLUCBLog(DcmKLUCB):
    """dcmKL-UCB with the threshold log t alone. The proofs need the log log term, regret is lower without it."""

    name: ClassVar[str] = "dcm-kl-ucb-log"

    log_log_weight: float = setting(0.0, LOG_LOG_WEIGHT, at_least=0)


@documented
@dataclass(kw_only=True, eq=False)
class DcmUCB1(UCB1, IndexPreset):
    """UCB1 with the feedback of dcmKL-UCB: simpler than KL-UCB, with more regret."""

    name: ClassVar[str] = "dcm-ucb1"


@documented
@dataclass(kw_only=True, eq=False)
class DcmTS(ThompsonSampling, IndexPreset):
    """Thompson sampling with the feedback of dcmKL-UCB. A good first choice: lowest regret in practice, one draw per item and list."""

    name: ClassVar[str] = "dcm-ts"


@documented
@dataclass(kw_only=True, eq=False)
class DcmLinUCB(LinUCB, IndexPreset):
    """LinUCB with the feedback of dcmKL-UCB, for items with features."""

    name: ClassVar[str] = "dcm-lin-ucb"


@documented
@dataclass(kw_only=True, eq=False)
class DcmLinTS(LinTS, IndexPreset):
    """Linear Thompson sampling with the feedback of dcmKL-UCB, for items with features."""

    name: ClassVar[str] = "dcm-lin-ts"


@documented
@dataclass(kw_only=True, eq=False)
class FirstClick(KLUCB, IndexPreset):
    """dcmKL-UCB that ignores clicks after the first, a competitor in Katariya et al. (2016); the same as CascadeKL-UCB, on DCM users."""

    name: ClassVar[str] = "first-click"
    feedback: ClassVar[str] = "first-click"


@documented
@dataclass(kw_only=True, eq=False)
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


@documented
@dataclass(kw_only=True, eq=False)
class CascadeKLUCB(KLUCB, CascadePreset):
    """CascadeKL-UCB (Kveton, Szepesvári, Wen & Ashkan 2015): KL-UCB for users who stop at the first click.

    Every item down to the first click was examined, all of them if there was no click; later clicks are ignored.

    >>> bandit = CascadeKLUCB(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [0, 1, 1])
    >>> bandit.memory.statistics[0].tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "cascade-kl-ucb"


@documented
@dataclass(kw_only=True, eq=False)
class CascadeUCB1(UCB1, CascadePreset):
    """CascadeUCB1 (Kveton et al. 2015): UCB1 with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-ucb1"


@documented
@dataclass(kw_only=True, eq=False)
class CascadeTS(ThompsonSampling, CascadePreset):
    """TS-Cascade with Beta posteriors (Zhong, Cheung & Tan 2021): Thompson sampling with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-ts"


@documented
@dataclass(kw_only=True, eq=False)
class CascadeLinUCB(LinUCB, CascadePreset):
    """CascadeLinUCB (Zong, Ni, Sung, Ke, Wen & Kveton 2016): LinUCB with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-lin-ucb"


@documented
@dataclass(kw_only=True, eq=False)
class CascadeLinTS(LinTS, CascadePreset):
    """CascadeLinTS (Zong et al. 2016): linear Thompson sampling with the feedback of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-lin-ts"


# Users who examine the whole list (multiple plays): every item shown was examined ---------------------------------------------------


@documented
@dataclass(kw_only=True, eq=False)
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
