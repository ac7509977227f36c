"""What the paper says, in the words of a summary of it, and what we ask besides."""

from reproductions.statements import Origin, Statement

STATEMENTS = {
    "matching-cross/synthetic": (
        Statement(words="matching the two salient features early makes learning easy", claims="^match"),
        Statement(words="concatenation and latent cross both learn inefficiently", claims="stays"),
    ),
    "matching-cross/correction": (
        Statement(
            words="corrected clicks recover 95 % of what true labels are worth",
            claims="recovers",
            origin=Origin.QUESTION,
            reason="means are above 95 %; the intervals of 15 runs reach below it",
        ),
        Statement(
            words="correction is better than learning from clicks as they are",
            claims="better than naive",
            origin=Origin.QUESTION,
        ),
        Statement(
            words="doubly robust learning is as good as inverse propensities, or better",
            claims="as good as IPS",
            origin=Origin.QUESTION,
        ),
        Statement(
            words="where clicks have no bias, correction gains nothing and a wrong one hurts",
            claims="^eta 0",
            origin=Origin.QUESTION,
        ),
    ),
    "matching-cross/clicks": (
        Statement(words="matching query and item early makes learning easy", claims="^match is better than concat"),
        Statement(
            words="latent cross alone learns inefficiently: query and item meet too late",
            claims="^match(ing cross)? is better than latent cross",
        ),
        Statement(
            words="side information that modulates the match adds to it",
            claims="^matching cross is better than match in",
            reason="nothing that shows on this log, whose side information is drawn",
        ),
        Statement(
            words="networks for high-order features, used as they are, learn inefficiently (here: DCN-v2)",
            claims="^matching cross is at least as good",
        ),
        Statement(
            words="correcting position bias helps", claims="^matching cross is better than matching cross without"
        ),
        Statement(
            words="the product takes minimal additional time and memory",
            claims="times the (time|memory)",
            reason="time and weights are level; the activations of training take more memory",
        ),
        Statement(
            words="cross layers over the match, and richer matches, add to it",
            claims="^deep matching cross is better than (cross network, DCN|matching cross)",
            origin=Origin.QUESTION,
        ),
        Statement(
            words="the product adds to a cross network that knows which words are found",
            claims="cross network with words found",
            origin=Origin.QUESTION,
            reason="nothing that shows: the words that are found are what helps",
        ),
    ),
}
