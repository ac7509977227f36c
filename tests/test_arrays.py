"""Helpers that serve numpy and torch alike: the same values for both, kinds and dtypes kept."""

import numpy as np
import pytest
import torch

from rankpolicy import arrays
from rankpolicy.types import RankPolicyError

KINDS = [np.asarray, torch.as_tensor]
VALUES = np.array([[0.5, -1.0, 3.0], [2.0, 0.25, -4.0]])
INDICES = np.array([[[2, 0], [1, 1]], [[0, 1], [2, 0]]])


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("masked_fill", (VALUES, VALUES > 0, -7.0), {}),
        ("masked_fill", (VALUES, VALUES[0] > 0, -np.inf), {}),
        ("clip", (VALUES, 0.0), {}),
        ("clip", (VALUES, None, 1.0), {}),
        ("gather", (VALUES, INDICES), {}),
        ("scatter", (VALUES, INDICES[0, :, ::-1].copy(), -VALUES[:, :2]), {}),
        ("scatter", (VALUES, np.array([[[2, 0], [1, 0]], [[0, 1], [2, 0]]]), 9.0), {}),
        ("resized", (VALUES[0], 5), {}),
        ("resized", (VALUES[0], 2), {}),
        ("log_sum_exp", (1e3 * VALUES,), {}),
        ("log_sum_exp", (VALUES,), {"keepdims": True}),
        ("log_cumsum_exp", (1e3 * VALUES,), {}),
        ("log_sigmoid", (1e3 * VALUES,), {}),
        ("detached", (VALUES,), {}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numpy_and_torch_agree_and_keep_the_dtype(name: str, arguments: tuple, options: dict, dtype: type) -> None:
    def cast(argument: object) -> object:
        is_floating = isinstance(argument, np.ndarray) and argument.dtype == np.float64
        return argument.astype(dtype) if is_floating else argument

    cast_arguments = [cast(argument) for argument in arguments]
    function = getattr(arrays, name)
    by_numpy = function(*cast_arguments, **options)
    by_torch = function(*(torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in cast_arguments), **options)
    assert isinstance(by_numpy, np.ndarray)
    assert isinstance(by_torch, torch.Tensor)
    assert by_numpy.dtype == dtype == by_torch.numpy().dtype
    np.testing.assert_allclose(by_numpy, by_torch.numpy(), rtol=1e-6 if dtype == np.float32 else 1e-12)


def test_one_tensor_makes_all_arrays_tensors() -> None:
    tensor, array, nothing = arrays.alike(torch.zeros(2), np.ones(2, np.float32), None)
    assert isinstance(tensor, torch.Tensor)
    assert isinstance(array, torch.Tensor)
    assert array.dtype == torch.float32
    assert nothing is None


@pytest.mark.parametrize("kind", KINDS)
def test_log_sums_of_what_is_never_chosen_stay_finite(kind) -> None:
    never = arrays.masked_fill(kind(VALUES), kind(np.ones_like(VALUES, bool)), arrays.lowest(kind(VALUES)))
    assert np.isfinite(arrays.to_numpy(arrays.log_cumsum_exp(never))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_their_generator_and_distribution(kind) -> None:
    like = kind(VALUES)

    def drawn() -> list:
        generator = arrays.new_generator(3, like=like)
        return [
            arrays.to_numpy(values)
            for values in (
                arrays.uniform((20_000,), like=like, generator=generator),
                arrays.exponential((20_000,), like=like, generator=generator),
                arrays.choices(kind(np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 2.0]])), 20_000, generator=generator),
            )
        ]

    for first, second in zip(drawn(), drawn(), strict=True):
        np.testing.assert_array_equal(first, second)
    uniform, exponential, choices = drawn()
    assert 0 <= uniform.min() < uniform.max() < 1
    assert uniform.mean() == pytest.approx(0.5, abs=0.01)
    assert exponential.min() > 0
    assert exponential.mean() == pytest.approx(1.0, abs=0.03)
    assert choices.shape == (20_000, 2)
    assert (choices[:, 0] == 1).mean() == pytest.approx(0.75, abs=0.015)
    assert (choices[:, 1] == 2).all()


@pytest.mark.parametrize(
    ("kind", "generator"), [(np.asarray, torch.Generator()), (torch.as_tensor, np.random.default_rng(0))]
)
def test_a_generator_of_the_other_kind_is_refused(kind, generator) -> None:
    with pytest.raises(RankPolicyError, match=r"generator must be a .*Generator for"):
        arrays.uniform((2,), like=kind(VALUES), generator=generator)
