"""Singh & Joachims (2019), Policy Learning for Fairness in Ranking."""

from reproductions.fair_pg_rank import figure1, figure2, figure3, table1
from reproductions.fair_pg_rank.statements import STATEMENTS
from reproductions.target import Target

TARGETS = (
    Target(
        name="fair-pg-rank/figure1",
        statements=STATEMENTS["fair-pg-rank/figure1"],
        what="a feature that is missing for a minority: what linear models learn, and NDCG against disparity of all methods",
        run=figure1.run,
    ),
    Target(
        name="fair-pg-rank/figure2",
        statements=STATEMENTS["fair-pg-rank/figure2"],
        what="fairness to individual items on web search, MQ2007 and MQ2008",
        run=figure2.run,
        untested=(
            (
                "the same on the Yahoo! Learning to Rank Challenge data",
                "the data may not be redistributed; MQ2007 and MQ2008 take its place",
            ),
        ),
        datasets=("letor_mq2007", "letor_mq2008"),
    ),
    Target(
        name="fair-pg-rank/figure3",
        statements=STATEMENTS["fair-pg-rank/figure3"],
        what="German Credit: fairness between the sexes on people not trained on",
        run=figure3.run,
        datasets=("german_credit",),
    ),
    Target(
        name="fair-pg-rank/table1",
        statements=STATEMENTS["fair-pg-rank/table1"],
        what="PG-Rank beside RankSVM and boosted regression trees, five folds of MQ2007",
        run=table1.run,
        untested=(
            (
                "NDCG@10 and ERR of all methods on the Yahoo! Learning to Rank Challenge data",
                "the data may not be redistributed; MQ2007 takes its place, so no number stands beside the paper's",
            ),
            (
                "additional parameter tuning and variance control are likely to further boost PG-Rank",
                "an expectation of the authors, not a result",
            ),
        ),
        datasets=("letor_mq2007",),
    ),
)
