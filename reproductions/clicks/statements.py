"""What we ask of a real click log; no paper says it."""

from reproductions.statements import Origin, Statement

AGREES = "the grades agree with the order of the log, and correction takes that order out of the clicks"


def _question(words: str, claims: str, reason: str = "") -> Statement:
    return Statement(words=words, claims=claims, origin=Origin.QUESTION, reason=reason)


STATEMENTS = {
    "clicks/clara2": (
        _question("clicks carry relevance", "click-through, raw above random"),
        _question(
            "satisfaction tells a good url from a good snippet",
            "attraction alone",
            "attraction alone orders as well or better",
        ),
        _question(
            "ways that hold the item fixed find less position bias than click-through shows",
            "less position bias|examined less",
            "two ways are too uncertain on this log to tell",
        ),
        _question("two consistent estimates of position bias agree", "lies within", "they differ at some ranks"),
        _question(
            "richer click models predict held-out clicks better", "^held-out", "ubm and dbn are level in perplexity"
        ),
    ),
    "clicks/clara2-clicked": (
        _question("a prior improves the order of the clicked urls", "dctr above"),
        _question("a model that knows the position improves it further", "^NDCG.*ubm above", AGREES),
        _question("inverse propensities improve on raw click-through", "^NDCG.*inverse", AGREES),
        _question(
            "among urls at the same rank, knowing the position still helps",
            "^urls.*ubm above",
            "level: where position cannot help, correction neither gains nor loses",
        ),
    ),
}
