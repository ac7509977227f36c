"""dcmKL-UCB without the log log term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.dcm_kl_ucb import DcmKLUCB


@dataclass(kw_only=True, eq=False)
class DcmKLUCBLog(DcmKLUCB):
    """The threshold is log t alone, as practice prefers: the proofs need 3 log log t more, regret is lower without."""

    name: ClassVar[str] = "dcm-kl-ucb-log"

    log_log_weight: float = 0.0
