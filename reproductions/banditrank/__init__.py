"""Gampa & Fujita (2019), BanditRank: Learning to Rank Using Contextual Bandits."""

from reproductions.banditrank import figure1, statistics, table2, table4, table6
from reproductions.banditrank.web_search import FOLDER
from reproductions.target import Target

TARGETS = (
    Target(
        name="banditrank/table1",
        what="how many questions and correct answers InsuranceQA has",
        run=statistics.run_table1,
        datasets=(statistics.INSURANCE_QA,),
        untested=(
            (
                "12887, 1000, 1800 and 1800 questions with 18540, 1454, 2616 and 2593 correct answers, 1.43 to 1.45 per question",
                "version 1 is not to be had; version 2, which replaced it, has other parts",
            ),
        ),
    ),
    Target(
        name="banditrank/table2",
        what="answer selection on InsuranceQA V2: the supervised loss, the reward, and both",
        run=table2.run,
        datasets=(table2.FOLDER,),
    ),
    Target(
        name="banditrank/table3",
        what="how many questions and correct answers WikiQA has",
        run=statistics.run_table3,
        datasets=(statistics.WIKI_QA,),
    ),
    Target(
        name="banditrank/table4",
        what="answer selection on WikiQA, from words and with a pretrained language model",
        run=table4.run,
        datasets=(table4.FOLDER, table4.WORD_VECTORS),
    ),
    Target(
        name="banditrank/table5",
        what="how many queries, documents and relevant documents MQ2007 has",
        run=statistics.run_table5,
        datasets=(FOLDER,),
    ),
    Target(
        name="banditrank/table6",
        what="BanditRank for five γ beside ListNet, AdaRank, Coordinate Ascent and LambdaMART on MQ2007, ten random splits",
        run=table6.run,
        datasets=(FOLDER,),
    ),
    Target(
        name="banditrank/figure1",
        what="how BanditRank learns on MQ2007 with each of six rewards: MAP and nDCG@10 after every epoch, ten random splits",
        run=figure1.run,
        datasets=(FOLDER,),
    ),
)
