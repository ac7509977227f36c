"""What we ask of rankers that learn online; the bars were set before the first run."""

from reproductions.statements import Origin, Statement


def _question(words: str, claims: str, reason: str = "") -> Statement:
    return Statement(words=words, claims=claims, origin=Origin.QUESTION, reason=reason)


STATEMENTS = {
    "online/learning": (
        _question(
            "with users who fit its click model, the policy that serves closes 90 % of the gap to labels in 100,000 clicks",
            "at least 90 % of the gap",
        ),
        _question("the policy that serves is ahead of PDGD at every checkpoint", "serves, ahead of PDGD"),
        _question("the candidate, learned from the logger's lists, is ahead of PDGD", "candidate, ahead of PDGD"),
        _question("the policy that serves is better than the logger after 100,000 clicks", "better than the logger"),
    ),
    "online/safety": (
        _question("no run loses more than its budget against the logger", "budget"),
        _question("PDGD loses more", "PDGD's largest"),
        _question("policies are promoted and taken back in these runs", "promoted in|taken back in"),
    ),
}
