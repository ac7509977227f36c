"""What the paper says about its tables and figures, in our words, and what we ask besides."""

from reproductions.statements import Origin, Statement

NO_ROW = "the reward adds to the supervised loss alone (γ = 0, a row that the paper does not have)"
FEW_QUESTIONS = "243 test questions and three to five seeds leave intervals wider than the difference"

STATEMENTS = {
    "banditrank/table2": (
        Statement(words="the hybrid loss is better than the reward alone", claims="above γ = 1"),
        Statement(
            words=NO_ROW,
            claims="γ = 0.75 above γ = 0",
            origin=Origin.QUESTION,
            reason="level in both kinds of lists: with five seeds neither a gain nor a loss of .01 can be told",
        ),
        Statement(
            words="the reward alone is above the supervised loss alone",
            claims="reward only above",
            origin=Origin.QUESTION,
            reason="below it in both kinds of lists; settings were tuned for the hybrid",
        ),
    ),
    "banditrank/table3": (Statement(words="WikiQA's questions and correct answers", claims="questions|answers"),),
    "banditrank/table4": (
        Statement(
            words="without a language model the hybrid loss is worse than the reward alone",
            claims=r"^Scenario 1.* above Scenario 1.*γ = 0\.75 ",
            reason=FEW_QUESTIONS,
        ),
        Statement(
            words="with a language model the best share of the reward is γ = 1",
            claims=r"^Scenario 2: MiniLM frozen.*γ = 1 above Scenario 2: MiniLM frozen.*γ = 0\.75 ",
            reason=FEW_QUESTIONS,
        ),
        Statement(
            words="with good features a text-matching network need not be trained",
            claims="^Scenario 2.* above Scenario 1",
        ),
        Statement(
            words="the published MAP is reached (word vectors of 50 numbers for 300, MiniLM for BERT-base)",
            claims="^Scenario (1|2: MiniLM frozen).* at least",
            reason="below the printed means by less than the interval of 243 questions",
        ),
        Statement(
            words="a fine-tuned small language model reaches frozen BERT-large, and passes it frozen itself",
            claims="^Scenario 2: MiniLM fine-tuned, γ = 0.75(: | above Scenario 2: MiniLM frozen)",
            origin=Origin.QUESTION,
        ),
        Statement(words=NO_ROW, claims=r"γ = 0 \(map\)", origin=Origin.QUESTION, reason=FEW_QUESTIONS),
    ),
    "banditrank/table5": (
        Statement(
            words="MQ2007's counts",
            claims="",
            reason="the set was rebuilt from public parts: queries and features agree, documents and relevance counts nearly",
        ),
    ),
    "banditrank/table6": (
        Statement(
            words="BanditRank clearly outperforms AdaRank and Coordinate Ascent",
            claims="^BanditRank γ = 0.5 above (AdaRank|Coordinate)",
        ),
        Statement(
            words="BanditRank clearly outperforms ListNet",
            claims="^BanditRank γ = 0.5 above ListNet",
            reason="with four networks each, as BanditRank has, ListNet is level with it",
        ),
        Statement(
            words="its improvement over LambdaMART is significant in all measures but nDCG@10",
            claims="^BanditRank γ = 0.5 above LambdaMART",
            reason="averaged over four seeds and chosen among as many settings, LambdaMART is level with it",
        ),
        Statement(
            words="it improves on LambdaMART by 1 % at least in P@1, P@3, MAP, nDCG@1 and MRR",
            claims="at least 1 %",
            reason="the same; 1,302 queries cannot tell 1 % of P@1 from nothing",
        ),
        Statement(
            words="the hybrid is better than the reward alone",
            claims="^BanditRank γ = 0.5 above BanditRank γ = 1 ",
            reason="it is in MAP; in P@1 the interval includes zero",
        ),
        Statement(
            words="γ = 0.5 is the best share",
            claims=r"above BanditRank γ = 0\.(25|75)",
            reason="γ = 0.75 is level with it",
        ),
        Statement(
            words="the best results need fewer than 30 epochs",
            claims="best epoch",
            reason="with our settings, which may train for 60, three of ten splits are best later",
        ),
        Statement(
            words=NO_ROW,
            claims=r"above BanditRank γ = 0 \(",
            origin=Origin.QUESTION,
            reason="in MAP it does; in P@1 splits disagree",
        ),
        Statement(
            words="the same order with the paper's settings: one network, its competitors the mean of four",
            claims="paper's settings above (?!.*plain)",
            origin=Origin.CHECK,
            reason="unequal means: one network is held against means of four, and is behind ListNet and LambdaMART",
        ),
        Statement(
            words="highway layers are better than plain ones (said of InsuranceQA)",
            claims="plain network",
            origin=Origin.CHECK,
            reason="over queries they are; splits disagree",
        ),
    ),
    "banditrank/figure1": (
        Statement(
            words="R1 has good measures right from the start, compared with R2 and R3",
            claims="^R1 above",
            reason="above R3 over queries but not over splits; level with R2",
        ),
        Statement(
            words="R4 is clearly better than R5 and R6 in the initial epochs", claims="^R4 above .* epochs 1 to 5"
        ),
        Statement(words="R4, R5 and R6 are similar in the next few epochs", claims="within"),
        Statement(words="R4 has better measures in the final stages", claims="^R4 above .* epochs 26"),
        Statement(
            words="more measures in the reward do not necessarily improve MAP and nDCG@10",
            claims="^R6 not above",
            reason="R6 is below R4, and level with R5 within its interval",
        ),
    ),
    "banditrank/exploration": (
        Statement(
            words="sampling uniformly with a small probability ε helps",
            claims="^ε = 0.1 above",
            origin=Origin.QUESTION,
            reason="no difference beyond chance: the policy draws its lists at random anyway",
        ),
        Statement(
            words="an ε that adapts is better than a constant one (proposed as future work)",
            claims="^ε (= 0.3|from)",
            origin=Origin.QUESTION,
            reason="no difference beyond chance",
        ),
        Statement(
            words="a penalty makes affinities of empty queries low (proposed as future work) at little cost",
            claims="lowers the share|costs less",
            origin=Origin.QUESTION,
        ),
        Statement(
            words="with the penalty affinities separate empty queries from others",
            claims="separates queries",
            origin=Origin.QUESTION,
            reason="affinities of all queries fall with it",
        ),
    ),
}
