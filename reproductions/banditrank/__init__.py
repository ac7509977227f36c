"""Gampa & Fujita (2019), BanditRank: Learning to Rank Using Contextual Bandits."""

from reproductions.banditrank import exploration, figure1, statistics, table2, table4, table6
from reproductions.banditrank.statements import STATEMENTS
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
        statements=STATEMENTS["banditrank/table2"],
        what="answer selection on InsuranceQA V2, random and given pools: the supervised loss, the reward, and both",
        run=table2.run,
        datasets=(table2.FOLDER,),
        untested=(
            (
                "P@1 of 0.8572 and 0.8522 on the two test sets, 13.3 % and 16.1 % above the best of ten published methods",
                "version 1 and its test sets are not to be had, and the paper copies its competitors' numbers from their papers",
            ),
            (
                "simple networks in place of the highway layers are worse",
                "not run on InsuranceQA; table 6 has a plain network with as many weights on MQ2007",
            ),
            ("γ = 0.75 is the best of 0.5, 0.75 and 1", "γ = 0.5 was not run"),
        ),
    ),
    Target(
        name="banditrank/table3",
        statements=STATEMENTS["banditrank/table3"],
        what="how many questions and correct answers WikiQA has",
        run=statistics.run_table3,
        datasets=(statistics.WIKI_QA,),
    ),
    Target(
        name="banditrank/table4",
        statements=STATEMENTS["banditrank/table4"],
        what="answer selection on WikiQA, from words and with a pretrained language model, frozen or fine-tuned",
        run=table4.run,
        datasets=(table4.FOLDER, table4.WORD_VECTORS),
        untested=(
            (
                "features of BERT-large are better than those of BERT-base",
                "neither is to be had; MiniLM stands in for both",
            ),
            (
                "better than nine published methods",
                "the paper copies their numbers from their papers; the best, Comp-Clip, is shown beside",
            ),
            (
                "γ = 0.75 and 1 are the best of 0.25, 0.5, 0.75 and 1 in Scenario 1, γ = 1 the best of 0.5, 0.75 and 1 in Scenario 2",
                "γ = 0.25 and 0.5 were not run",
            ),
        ),
    ),
    Target(
        name="banditrank/table5",
        statements=STATEMENTS["banditrank/table5"],
        what="how many queries, documents and relevant documents MQ2007 has",
        run=statistics.run_table5,
        datasets=(FOLDER,),
    ),
    Target(
        name="banditrank/table6",
        statements=STATEMENTS["banditrank/table6"],
        what="BanditRank for five γ beside ListNet, AdaRank, Coordinate Ascent and LambdaMART on MQ2007, ten random splits",
        run=table6.run,
        datasets=(FOLDER,),
    ),
    Target(
        name="banditrank/figure1",
        statements=STATEMENTS["banditrank/figure1"],
        what="how BanditRank learns on MQ2007 with each of six rewards: MAP and nDCG@10 after every epoch, ten random splits",
        run=figure1.run,
        datasets=(FOLDER,),
    ),
    Target(
        name="banditrank/exploration",
        statements=STATEMENTS["banditrank/exploration"],
        what="adaptive exploration and the penalty on queries without relevant items, which the paper proposes, on MQ2007",
        run=exploration.run,
        datasets=(FOLDER,),
    ),
)
