"""Gampa & Fujita (2019), BanditRank: Learning to Rank Using Contextual Bandits."""

from reproductions.banditrank import figure1, table2, table4, table6
from reproductions.banditrank.web_search import FOLDER
from reproductions.target import Target

TARGETS = (
    Target(
        name="banditrank/table6",
        what="BanditRank beside ListNet, AdaRank, Coordinate Ascent and LambdaMART on MQ2007, five random splits",
        run=table6.run,
        datasets=(FOLDER,),
    ),
    Target(
        name="banditrank/figure1",
        what="how fast BanditRank learns on MQ2007 with each of six rewards",
        run=figure1.run,
        datasets=(FOLDER,),
    ),
    Target(
        name="banditrank/table4",
        what="answer selection on WikiQA, from words and with a pretrained language model",
        run=table4.run,
        datasets=(table4.FOLDER, table4.WORD_VECTORS),
    ),
    Target(
        name="banditrank/table2",
        what="answer selection on InsuranceQA V2: the supervised loss, the reward, and both",
        run=table2.run,
        datasets=(table2.FOLDER,),
    ),
)
