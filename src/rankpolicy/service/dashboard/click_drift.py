"""Whether the click rate of a policy version has changed: a CUSUM test whose false alarms are rare whatever the click rate is."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

BUCKET_US = 300_000_000  # five minutes
FEWEST_LISTS = 100  # in a bucket; a quieter time makes longer ones
DAYS_PER_FALSE_ALARM = 30.0
_SHIFT = 1.0  # standard errors of a bucket by which the change that is found soonest moves its click rate
_NORMAL = NormalDist()


def threshold_for(num_buckets: float) -> float:
    """The sum at which an alarm is raised, so that a false one comes after ``num_buckets`` buckets or more on average.

    exp of each of the two sums is an e-detector: without a change its mean run length is at least exp(threshold) (Lorden 1971; Shin,
    Ramdas & Rinaldo 2024), and half of that where either side may raise it.
    """
    return math.log(2 * num_buckets)


class ClickDrift:
    """Two CUSUM sums, one for a fall and one for a rise, of the lists with a click in successive buckets of time.

    Which of all lists so far have a click is exchangeable while nothing changes, so given their number, the clicked lists among the last
    bucket are hypergeometric. Their randomised rank is uniform, and independent from bucket to bucket (a conformal p-value; Vovk 2021):
    no click rate has to be known or estimated. After an alarm the test begins again with what comes then.
    """

    def __init__(
        self, generator: random.Random, *, threshold: float = threshold_for(DAYS_PER_FALSE_ALARM * 86_400e6 / BUCKET_US)
    ) -> None:
        self._generator, self._threshold = generator, threshold
        self.changed_at: int | None = None  # end of the bucket that raised the last alarm
        self.rate_before = self.rate_after = math.nan
        self._begin()

    def _begin(self) -> None:
        self._lists = self._clicked = 0
        self._fall = self._rise = 0.0

    def add(self, lists: int, clicked: int, *, end: int) -> bool:
        """Take a bucket whose clicks have all come; whether it raises an alarm."""
        before, clicked_before = self._lists, self._clicked
        self._lists, self._clicked = before + lists, clicked_before + clicked
        if not before:
            return False
        rank = _hypergeometric_rank(clicked, lists, self._clicked, self._lists, self._generator.random())
        z = _NORMAL.inv_cdf(min(max(rank, 1e-15), 1 - 1e-15))
        self._rise = max(0.0, self._rise + _SHIFT * z - _SHIFT**2 / 2)
        self._fall = max(0.0, self._fall - _SHIFT * z - _SHIFT**2 / 2)
        if max(self._rise, self._fall) < self._threshold:
            return False
        self.changed_at, self.rate_before, self.rate_after = end, clicked_before / before, clicked / lists
        self._begin()
        return True


class DriftBuckets:
    """Lists of one version in buckets of time, which are tested when the windows of their lists have ended."""

    def __init__(self, drift: ClickDrift, window: int) -> None:
        self.drift, self._window = drift, window
        self._buckets: dict[int, list[int]] = {}  # number of the bucket: lists, and those with a click
        self._lists = self._clicked = 0  # of buckets that wait for more lists

    def add_list(self, stamp: int) -> None:
        """Count a list; buckets whose lists have had their window before it are tested."""
        self._buckets.setdefault(stamp // BUCKET_US, [0, 0])[0] += 1
        if len(self._buckets) > 1:
            for number in sorted(self._buckets):
                end = (number + 1) * BUCKET_US
                if stamp <= end + self._window:
                    break
                lists, clicked = self._buckets.pop(number)
                self._lists, self._clicked = self._lists + lists, self._clicked + clicked
                if self._lists >= FEWEST_LISTS:
                    self.drift.add(self._lists, self._clicked, end=end)
                    self._lists = self._clicked = 0

    def add_clicked_list(self, stamp: int) -> None:
        """Count the first click on a list that was shown then."""
        bucket = self._buckets.get(stamp // BUCKET_US)
        if bucket is not None:
            bucket[1] += 1


def _hypergeometric_rank(value: int, drawn: int, marked: int, total: int, chance: float) -> float:
    """P(X < value) + chance P(X = value) for X marked ones among ``drawn`` of ``total``, ``marked`` of which are.

    >>> round(_hypergeometric_rank(1, 1, 1, 4, 0.5), 12)  # 3/4 + 1/2 · 1/4
    0.875
    """
    at = math.exp(_log_choose(marked, value) + _log_choose(total - marked, drawn - value) - _log_choose(total, drawn))
    is_low = value * total <= drawn * marked
    # From the value outwards, on the side of the shorter tail: terms only get smaller there.
    step = -1 if is_low else 1
    tail, term, x = 0.0, at, value
    while True:
        if is_low:
            term *= x * (total - marked - drawn + x) / ((marked - x + 1) * (drawn - x + 1))
        else:
            term *= (marked - x) * (drawn - x) / ((x + 1) * (total - marked - drawn + x + 1))
        x += step
        tail += term
        if term <= 1e-17 * tail or term == 0.0:
            break
    return tail + chance * at if is_low else 1.0 - tail - (1 - chance) * at


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
