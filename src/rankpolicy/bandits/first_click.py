"""First-Click, a competitor of dcmKL-UCB (Katariya et al. 2016): clicks after the first are thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.cascade_kl_ucb import CascadeKLUCB


@dataclass(kw_only=True, eq=False)
class FirstClick(CascadeKLUCB):
    """dcmKL-UCB fed with the first click only, which makes it CascadeKL-UCB."""

    name: ClassVar[str] = "first-click"
    made_for: ClassVar[str] = "dcm"
