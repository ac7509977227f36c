"""What the paper says about its figures and tables, in our words, and what we ask besides."""

from reproductions.statements import Origin, Statement

FAIR_EXPOSURE = "FairExposure (ours) is on or above the curve of every competitor, at either disparity"
SAMPLED = "REINFORCE gets as far as exact gradients, so that comparing with either is fair"

STATEMENTS = {
    "fair-pg-rank/figure1": (
        Statement(
            words="the length of θ matters for NDCG and disparity, not only its direction", claims=r"^θ = \(4, 4\)"
        ),
        Statement(words="a fair model ignores the feature that is biased against the minority", claims="^ignoring x2"),
        Statement(
            words="for small λ it learns along θ1 = θ2",
            claims="^without a price",
            reason="the draws differ too much: the interval leaves the range 2/3 to 3/2 on one side",
        ),
        Statement(
            words="with λ its policies become more stochastic, and discount the biased feature",
            claims="more stochastic|share of x2",
            reason="the part beyond λ = 10 is known by its means only, which fall",
        ),
        Statement(words="Fair-PG-Rank reduces disparity with increasing λ", claims="held-out disparity falls"),
        Statement(
            words="post-processing gets less fair with λ, since its estimated relevances mislead it",
            claims="^FairLP gets less fair",
            reason="our program solves for one-sided disparity on out-of-sample relevances, and gets fairer on new queries",
        ),
        Statement(
            words="the measure that DELTR optimises has little effect on disparity",
            claims="^DELTR",
            reason="over our range of λ it has: its scores sorted get less fair, as a policy fairer",
        ),
        Statement(
            words="Fair-PG-Rank corrects biases of the representation, which post-processing cannot",
            claims="FairPGRank, price is nowhere behind FairLP",
            reason="relevances fitted by regression order items better here, and all reachable disparities of FairLP are compared",
        ),
        Statement(
            words="Fair-PG-Rank is better than heuristic approaches",
            claims="FairPGRank, price is nowhere behind DELTR",
            reason="ahead at most points, but not at the ends of DELTR's curves",
        ),
        Statement(
            words="as good as a run of the authors' code, by their measure",
            claims="^by the authors' measure",
            origin=Origin.CHECK,
            reason="the interval of our draws includes their value; theirs is one other draw",
        ),
        Statement(
            words=SAMPLED,
            claims="REINFORCE: ",
            origin=Origin.CHECK,
            reason="the kept run has means without intervals; sampled exposures have a biased gradient",
        ),
        *(
            Statement(
                words=f"{FAIR_EXPOSURE}: {panel}",
                claims=f"^{panel}: FairExposure",
                origin=Origin.QUESTION,
                reason=reason,
            )
            for panel, reason in (
                (
                    "linear, without the group",
                    "FairPGRank with parity is ahead at no disparity: it learns the order within a group better",
                ),
                ("linear, with the group", ""),
                ("networks, with the group", ""),
            )
        ),
    ),
    "fair-pg-rank/figure2": (
        Statement(
            words="with λ Fair-PG-Rank emphasises low disparity over NDCG", claims="test disparity|so is test NDCG"
        ),
        Statement(words="disparity goes down to zero", claims="disparity goes down"),
        Statement(words="training and test curves overlap", claims="overlaps at every λ"),
    ),
    "fair-pg-rank/figure3": (
        Statement(words="Fair-PG-Rank trades NDCG for fairness", claims="held-out disparity falls"),
        Statement(
            words="NDCG at a disparity of .001, read off the figure",
            claims="^by the authors' measure",
            reason="the mean is above the figure's, but the kept run has no interval of it",
        ),
        Statement(
            words="REINFORCE reliably converges to similar solutions over several runs",
            claims="runs of REINFORCE on one draw",
            reason="five runs leave their spread too uncertain for a bound of .01",
        ),
        Statement(
            words="Fair-PG-Rank trades NDCG for disparity, while the baselines fail",
            claims="FairPGRank, price is nowhere behind",
            reason="on 800 people squared error, which FairLP and DELTR learn by, finds a better order than NDCG as reward",
        ),
        Statement(
            words=SAMPLED, claims="REINFORCE: ", origin=Origin.CHECK, reason="the kept run has means without intervals"
        ),
        *(
            Statement(
                words=f"{FAIR_EXPOSURE}: {panel}",
                claims=f"^{panel}: FairExposure",
                origin=Origin.QUESTION,
                reason=reason,
            )
            for panel, reason in (
                (
                    "linear",
                    "level with FairLP where that has the same aim, by means that differ less than their intervals",
                ),
                ("ridge regression and trees", ""),
            )
        ),
    ),
    "fair-pg-rank/table1": (
        Statement(
            words="PG-Rank is better than RankSVM in NDCG@10 and ERR",
            claims="above RankSVM",
            reason="MQ2007 has a hundredth of the queries of the Yahoo set; in NDCG@10 the interval includes zero",
        ),
        Statement(
            words="a neural network improves further on the linear model",
            claims="above PG-Rank, linear",
            reason="the same: differences of .002 are within chance on MQ2007",
        ),
        Statement(
            words="PG-Rank is competitive with conventional methods (here: less than .01 behind boosted trees)",
            claims="behind GBDT",
            reason="in ERR the interval just reaches .01 behind",
        ),
    ),
}
