"""FA*IR: the best ranking whose every prefix holds enough protected items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.fairness import joint_mixture
from rankpolicy.fairness.birkhoff import Decomposition
from rankpolicy.fairness.protected_prefixes import corrected_alpha, minimum_protected, with_protected_prefixes
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.fits import FitOptions
from rankpolicy.rankers.post_processing.estimated_relevance import EstimatedRelevance
from rankpolicy.rankers.post_processing.fair_ranker import groups_of, rows_by_query
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.graph import Graph


@final
@settings_class
class FAStarIR(EstimatedRelevance):
    """Ranked group fairness (Zehlike et al. 2017): the list by score, in which every prefix has enough items of one protected group.

    The first i positions must hold at least m(i) protected items: so many that a list whose positions are filled by tosses of a coin with
    the wanted proportion is not rejected, by a binomial test of every prefix that is corrected for their number. At each position comes
    the best item, or the best protected one where m(i) asks for it. Each query has a single ranking: exposure within a group and merit do
    not count, and utility is lost only where protected items move up.

    Ranking needs the protected group of every item, from ``dataset.groups`` or ``protected=``.
    """

    name: ClassVar[str] = "fa-ir"

    protected_group: Any = setting(1, "Which of the values given as ``protected`` is the protected group.")
    min_proportion: float | None = setting(
        None,
        "Wanted proportion of protected items, between 0 and 1. None: their share in the query.",
        at_least=0,
        at_most=1,
    )
    alpha: float = setting(
        0.1,
        "Probability with which a fair list may be rejected; lower asks for fewer protected items.",
        above=0,
        below=1,
    )
    num_positions: int | None = setting(None, "Positions from the top that are tested. None: all.", at_least=1)

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        groups = np.unique(groups_of(train, "FAStarIR ranks by")).tolist()
        if self.protected_group not in groups:
            raise RankPolicyError(
                f"protected_group must be one of the groups of the training data, {groups}; got {self.protected_group!r}."
            )
        super()._fit(train, valid, options)

    def _policy_of(self, dataset: RankingDataset) -> Mixture:
        is_protected = groups_of(dataset, "FAStarIR ranks by") == self.protected_group
        relevances = self._relevances(dataset)
        rankings = []
        for rows in rows_by_query(dataset):
            members = is_protected[rows]
            proportion = float(members.mean()) if self.min_proportion is None else self.min_proportion
            tested = min(len(members), self.num_positions or len(members))
            alpha = corrected_alpha(tested, proportion=proportion, alpha=self.alpha)
            minima = minimum_protected(tested, proportion=proportion, alpha=alpha)
            rankings.append(Decomposition(with_protected_prefixes(relevances[rows], members, minima)[None], np.ones(1)))
        return joint_mixture(rankings)

    def _onnx_scores(self, graph: Graph) -> str:
        raise RankPolicyError(
            "FAStarIR cannot be exported to ONNX: the position of an item depends on all items of its query and their groups. "
            f"Use save(path); or fit and export the ranker that estimates relevance ({self.relevance!r}) by itself."
        )
