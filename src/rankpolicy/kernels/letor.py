"""LETOR text to arrays, a byte at a time. ``data/formats/letor_lines.py`` is the readable specification.

The kernel understands ordinary lines only; all others it marks NOT_UNDERSTOOD and leaves to the specification, which
reads them or says what is wrong. So it holds no error messages and no rare cases. The text must end in a newline: that
byte stops every loop.
"""

from __future__ import annotations

import numpy as np

from rankpolicy.kernels.codes import HIGHEST_FEATURE_ID, IGNORED, ITEM, NOT_UNDERSTOOD
from rankpolicy.kernels.compile import njit

TAB, NEWLINE, RETURN, SPACE, HASH, PLUS, MINUS, POINT, COLON, EQUALS, SMALL_E, CAPITAL_E = b"\t\n\r #+-.:=eE"

# Places and digits are unsigned: signed indices cost a test for Python's negative ones at every byte. All numbers they
# meet must be unsigned too, as numba adds uint64 and int64 in float64.
ONE, TEN, ZERO_SIGN = np.uint64(1), np.uint64(10), np.uint64(ord("0"))

EXACT_DIGITS = 15  # fewer than 2**53
EXACT_EXPONENT = 22  # powers of ten up to here are exact in float64
MANTISSA_LIMIT = 10**17  # one more digit still fits int64
POWERS_OF_TEN = np.array([float(f"1e{exponent}") for exponent in range(309)])


@njit(nogil=True)
def skip_space(text, at):
    while text[at] == SPACE or text[at] == TAB:
        at += ONE
    return at


@njit(nogil=True)
def digit_at(text, at):
    """The digit at this place, 0 to 9; a larger number where there is none (below "0", unsigned numbers wrap)."""
    return np.uint64(text[at]) - ZERO_SIGN


@njit(nogil=True)
def parse_number(text, at):
    """A decimal number: its value as float32(float64(text)), where it ends, and whether it was understood."""
    start = at
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += ONE
    first, mantissa, fraction = at, np.uint64(0), np.uint64(0)
    digit = digit_at(text, at)
    while digit < TEN:
        mantissa = TEN * mantissa + digit
        at += ONE
        digit = digit_at(text, at)
    digits = at - first
    if text[at] == POINT:
        at += ONE
        first = at
        digit = digit_at(text, at)
        while digit < TEN:
            mantissa = TEN * mantissa + digit
            at += ONE
            digit = digit_at(text, at)
        fraction = at - first
        digits += fraction
    if digits == 0 or digits > EXACT_DIGITS or text[at] == SMALL_E or text[at] == CAPITAL_E:
        return parse_long_number(text, start)
    value = np.float64(mantissa) / POWERS_OF_TEN[fraction]  # both exact, so the quotient is rounded once
    return np.float32(-value if negative else value), at, True


@njit(nogil=True)
def parse_long_number(text, at):  # noqa: C901 (one state machine: calls per character cost)
    """As parse_number, for numbers with an exponent or many digits."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += ONE
    mantissa, exponent, digits, exact, after_point = 0, 0, 0, True, False
    while digit_at(text, at) < TEN or (text[at] == POINT and not after_point):
        if text[at] == POINT:
            after_point = True
        else:
            digits += 1
            if mantissa < MANTISSA_LIMIT:
                mantissa = 10 * mantissa + int(digit_at(text, at))
                exponent -= after_point
            else:
                exact = False
                exponent += not after_point
        at += ONE
    if text[at] == SMALL_E or text[at] == CAPITAL_E:
        at += ONE
        sign = -1 if text[at] == MINUS else 1
        if text[at] == MINUS or text[at] == PLUS:
            at += ONE
        written, has_exponent = 0, False
        while digit_at(text, at) < TEN:
            written = min(10 * written + int(digit_at(text, at)), 10_000)
            has_exponent = True
            at += ONE
        exponent += sign * written
        digits = digits if has_exponent else 0
    if digits == 0 or abs(exponent) > 308:
        return np.float32(0), at, False
    value = np.float64(mantissa)
    value = value * POWERS_OF_TEN[exponent] if exponent >= 0 else value / POWERS_OF_TEN[-exponent]
    rounded = np.float32(-value if negative else value)
    if not exact or mantissa > 2**53 or abs(exponent) > EXACT_EXPONENT:
        # value is within 2 ulp of the decimal: float32 is certain unless a rounding boundary lies in that narrow gap.
        margin = value * 2.0**-50
        if np.float32(value - margin) != np.float32(value + margin):
            return rounded, at, False
    return rounded, at, np.isfinite(rounded)


@njit(nogil=True)
def find_item_id(text, at):
    """Start and end of the item id in a comment, and whether it was understood."""
    start = skip_space(text, at)
    at = start
    named = True
    for letter in b"docid":
        if named and text[at] == letter:
            at += ONE
        else:
            named = False
    if named:
        at = skip_space(text, at)
        named = text[at] == EQUALS
    if named:
        start = skip_space(text, at + ONE)
        end = start
        while text[end] > SPACE:
            end += ONE
    else:
        end = start
        while text[end] != NEWLINE:
            end += ONE
        while end > start and (text[end - ONE] == SPACE or text[end - ONE] == TAB or text[end - ONE] == RETURN):
            end -= ONE
    understood = not (named and start == end)
    at = start
    while text[at] != NEWLINE:
        is_text = text[at] >= SPACE or text[at] == TAB or (text[at] == RETURN and at >= end)
        understood = understood and is_text
        at += ONE
    return start, end, understood


@njit(nogil=True)
def parse_line(text, at, row, lines, first_id, has_query_ids):  # noqa: C901 (one state machine: calls per character cost)
    """Parse the line that starts at place into the arrays of lines; what it is."""
    at = skip_space(text, at)
    if text[at] == NEWLINE or (text[at] == RETURN and text[at + ONE] == NEWLINE):
        return IGNORED
    label, at, understood = parse_number(text, at)
    if not understood or label < 0 or (text[at] != SPACE and text[at] != TAB):
        return NOT_UNDERSTOOD
    lines.labels[row] = label
    at = skip_space(text, at)
    if has_query_ids:
        for letter in b"qid:":
            if text[at] != letter:
                return NOT_UNDERSTOOD
            at += ONE
        start = at
        while text[at] > SPACE and text[at] != HASH:
            at += ONE
        if start == at or (text[at] != SPACE and text[at] != TAB):
            return NOT_UNDERSTOOD
        lines.query_ids[row, 0] = start
        lines.query_ids[row, 1] = at
        at = skip_space(text, at)
    previous, lowest, width = -1, HIGHEST_FEATURE_ID, lines.features.shape[1]
    while digit_at(text, at) < TEN:
        feature = 0
        while digit_at(text, at) < TEN:
            feature = 10 * feature + int(digit_at(text, at))
            if feature > HIGHEST_FEATURE_ID:
                return NOT_UNDERSTOOD
            at += ONE
        # Rising ids show that none comes twice; other orders are left to the specification.
        if text[at] != COLON or feature <= previous:
            return NOT_UNDERSTOOD
        value, at, understood = parse_number(text, at + ONE)
        if not understood or (text[at] > SPACE and text[at] != HASH):
            return NOT_UNDERSTOOD
        lowest = min(lowest, feature)
        previous = feature
        column = feature - first_id
        if 0 <= column < width:
            lines.features[row, column] = value
        at = skip_space(text, at)
    lines.lowest[row] = lowest
    lines.highest[row] = previous
    if text[at] == HASH:
        start, end, understood = find_item_id(text, at + ONE)
        lines.item_ids[row, 0] = start
        lines.item_ids[row, 1] = end
        return ITEM if understood else NOT_UNDERSTOOD
    if text[at] == RETURN:
        at += ONE
    return ITEM if text[at] == NEWLINE else NOT_UNDERSTOOD


@njit(nogil=True)
def parse_lines(text, first_row, last_row, lines, first_id, has_query_ids):
    """Parse the lines first_row, ..., last_row - 1, whose starts are known, into the other arrays of lines."""
    for row in range(first_row, last_row):
        lines.kinds[row] = parse_line(text, np.uint64(lines.starts[row]), row, lines, first_id, has_query_ids)


@njit(nogil=True)
def copy_texts(text, spans, letters):
    """Copy the bytes at each place into a row of letters (rows, longest) uint32; False when one is not ASCII."""
    for row in range(len(spans)):
        for offset in range(spans[row, 1] - spans[row, 0]):
            letter = text[spans[row, 0] + offset]
            if letter >= 128:
                return False
            letters[row, offset] = letter
    return True
