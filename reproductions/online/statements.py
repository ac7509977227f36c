"""What we ask of rankers that learn online; the bars were set before the first run."""

from reproductions.statements import Origin, Statement


def _question(words: str, claims: str, reason: str = "") -> Statement:
    return Statement(words=words, claims=claims, origin=Origin.QUESTION, reason=reason)


STATEMENTS = {
    "online/learning": (
        _question(
            "with users who fit its click model, the policy that serves closes 90 % of the gap to labels in 100,000 clicks",
            "at least 90 % of the gap",
            "87 % with perfect users and 111 % with position-based ones, but one run per set leaves intervals as wide as the gap",
        ),
        _question(
            "the policy that serves is ahead of PDGD at every checkpoint",
            "serves, ahead of PDGD",
            "behind by .01 to .03 at 1,000 and 10,000 clicks: a proof takes thousands of lists; three runs leave wide intervals",
        ),
        _question(
            "the candidate, learned from the logger's lists, is ahead of PDGD",
            "candidate, ahead of PDGD",
            "level within .025: it stays near the policy that serves, whose lists it learns from; three runs leave wide intervals",
        ),
        _question(
            "the policy that serves is better than the logger after 100,000 clicks",
            "better than the logger",
            "ahead in 10 of 12 runs and level in two, with informational users, where nothing was proven; three runs leave wide intervals",
        ),
    ),
    "online/safety": (
        _question("no run loses more than its budget against the logger", "budget"),
        _question("PDGD loses more", "PDGD's largest"),
        _question(
            "policies are promoted and taken back in these runs",
            "promoted in|taken back in",
            "6,000 lists are few for a proof (31 of 200 runs), and too few after one for a loss: the budget was hardly put to the test",
        ),
    ),
}
