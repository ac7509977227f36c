"""What the paper says about its figures, in the words of a talk about it, and what we ask besides."""

from reproductions.statements import Origin, Statement

PRINTED = "as published"
LEAST = "dcmKL-UCB has the least regret"
OUT_OF_ORDER = "v(1) ≥ ... ≥ v(K) is not fulfilled on real queries"
LITTLE_DOUBT = "at the edge: 4 to 5 % off where 5 % is allowed, with intervals that reach beyond"

STATEMENTS = {
    "dcm/figure2a": (
        Statement(words="the regrets of the figure", claims=PRINTED),
        Statement(
            words="regret follows the O(L - K) of the bound: more items more, more positions less",
            claims="positions have more|items have more",
        ),
        Statement(words="regret goes against the gap Δ", claims="more regret at Δ"),
    ),
    "dcm/figure2b": (
        Statement(words="regret lies between the bounds of Theorems 1 and 3", claims="between the bounds"),
        Statement(words="regret grows with γ, as Theorem 1 says", claims="more regret at γ"),
    ),
    "dcm/figure2c": (
        Statement(
            words="after a click at position 1 users are almost certainly satisfied",
            claims=r"v\(1\) is at least",
            reason="other queries of another log; estimated with the last click as the stop, v(1) is higher and still below .9",
        ),
        Statement(
            words=OUT_OF_ORDER,
            claims="not in descending order",
            reason="three of five queries have v out of order by more than chance; in two the later positions cannot be told apart",
        ),
    ),
    "dcm/figure3a": (
        Statement(
            words="the curves of dcmKL-UCB and Last-Click", claims=f"^(dcm|last-click).*{PRINTED}", reason=LITTLE_DOUBT
        ),
        Statement(
            words="the curve of First-Click",
            claims=f"^first-click.*{PRINTED}",
            reason="ours has less regret at 1,000 steps, where the number is read off a steep part of a curve whose axis goes to 100,000",
        ),
        Statement(words=LEAST, claims="has less regret than"),
        Statement(words="its regret grows as log n", claims="no faster than log n"),
        Statement(
            words="Thompson sampling, and KL-UCB without log log, have far less regret",
            claims="^past the paper",
            origin=Origin.QUESTION,
        ),
    ),
    "dcm/figure3b": (
        Statement(words="the curve of dcmKL-UCB", claims=PRINTED, reason=LITTLE_DOUBT),
        Statement(words=LEAST, claims="has less regret than"),
        Statement(
            words="RankedKL-UCB has K = 4 times the regret",
            claims="to the nearest whole number",
            reason="three times here; a bound of O(KL) beside one of O(L - K) does not give a factor of K",
        ),
        Statement(words="its regret grows as log n", claims="no faster than log n"),
    ),
    "dcm/figure3c": (
        Statement(
            words="with the order of v, known as in Algorithm 1 or learned by dcm-full, regret is less",
            claims="(order of v known|dcm-full) has less",
            origin=Origin.QUESTION,
        ),
        Statement(words=OUT_OF_ORDER, claims="out of order for most"),
        Statement(words=LEAST, claims="has less regret than"),
        Statement(
            words="its regret grows as log n",
            claims="no faster than log n",
            reason="10,000 steps are few for up to 149 items, and with v out of order showing the best item first costs at every step",
        ),
    ),
    "dcm/robustness": (
        Statement(
            words="learning the order of v costs little on users who have none",
            claims="dcm-full has at most",
            origin=Origin.QUESTION,
            reason="five runs leave the interval of cascade users wider than that; the others hold",
        ),
        Statement(
            words="dcmKL-UCB does well whether or not the assumptions hold (here: better than random lists)",
            claims="has less regret than random",
            origin=Origin.QUESTION,
        ),
    ),
}
