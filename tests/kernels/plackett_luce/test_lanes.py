import numpy as np
import pytest

numba = pytest.importorskip("numba")

from rankpolicy.kernels.plackett_luce.lanes import WIDTH, clip, exponential, load, spread, store, total  # noqa: E402


@numba.njit
def combined(a, b, out):
    x, y = load(a, 1), load(b, 0)
    store(out, 2, x * y + x - spread(b[0]))
    return total(x)


@numba.njit
def exponentials(x, lowest, highest, out):
    for at in range(0, len(x), WIDTH):
        store(out, at, exponential(clip(load(x, at), lowest, highest)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_are_the_numbers_of_an_array_from_an_index_on(dtype):
    a, b, out = np.arange(WIDTH + 1, dtype=dtype), 2 + np.arange(WIDTH, dtype=dtype), np.full(WIDTH + 3, -1, dtype)
    assert combined(a, b, out) == a[1:].sum()
    np.testing.assert_array_equal(out[2:-1], a[1:] * b + a[1:] - 2)
    np.testing.assert_array_equal(out[[0, 1, -1]], -1)


def test_the_exponential_is_right_to_the_last_digit_but_one():
    x = np.concatenate([np.linspace(-700, 700, 1000 * WIDTH), np.linspace(-1, 1, 1000 * WIDTH), np.zeros(WIDTH)])
    out = np.empty_like(x)
    exponentials(x, -700.0, 700.0, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=4.5e-16)
    exponentials(x, -2.0, 0.5, out)
    np.testing.assert_allclose(out, np.exp(np.clip(x, -2.0, 0.5)), rtol=4.5e-16)


def test_lanes_are_rounded_to_the_dtype_they_are_stored_in():
    x, out = np.linspace(0, 1, WIDTH), np.empty(WIDTH, np.float32)
    exponentials(x, -700.0, 700.0, out)
    np.testing.assert_array_equal(out, np.exp(x).astype(np.float32))
