"""One text for numpy and torch: what array code here needs beyond the array API standard, which ``array_api_compat`` gives to both.

A function that takes arrays begins with ``a, b = alike(a, b)`` where users call it, and with ``xp = namespace(a)``; it gives back arrays of
the kind that came, on the device they lie on. Torch is loaded only where a tensor came. Autograd follows tensors, and nothing here looks at
values of arrays or copies between host and device, so that CUDA graphs can be captured.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import numpy as of_numpy
from numpy.typing import NDArray

from rankpolicy.types import Array as Array, Generator as Generator, RankPolicyError

if TYPE_CHECKING:
    pass


def is_tensor(array: Any) -> bool:
    """Whether it is a tensor of torch, which is loaded only where there is one."""
    return hasattr(array, "is_cuda")  # training steps ask dozens of times: quicker than looking torch up


def namespace(*arrays: Array) -> Any:
    """The array API namespace of arrays of one kind.

    >>> namespace(np.ones(2)).sum(np.ones(2))
    np.float64(2.0)
    """
    return _of_tensors() if any(map(is_tensor, arrays)) else of_numpy


@cache
def _of_tensors() -> Any:
    from array_api_compat import torch

    return torch


def alike(*arrays: Array) -> tuple[Array, ...]:
    """The arrays as one kind: tensors on the device of the first tensor where there is one, otherwise numpy arrays; None stays None.

    >>> alike([1, 2], None)
    (array([1, 2]), None)
    """
    if all(map(is_tensor, arrays)):
        return arrays
    tensor = next(filter(is_tensor, arrays), None)
    if tensor is None:
        return tuple([None if array is None else np.asarray(array) for array in arrays])
    import torch

    device = tensor.device
    return tuple([x if x is None or is_tensor(x) else torch.as_tensor(x, device=device) for x in arrays])


def to_numpy(array: Array) -> NDArray[Any]:
    """Values on the host, without gradients."""
    return array.detach().cpu().numpy() if is_tensor(array) else np.asarray(array)


def as_like(values: Any, array: Array) -> Array:
    """Values (numbers, or an array of either kind) in the kind and dtype of ``array`` and on its device; autograd follows them.

    >>> as_like([1, 2], np.zeros(1))
    array([1., 2.])
    """
    if is_tensor(array):
        import torch

        return torch.as_tensor(values, dtype=array.dtype, device=array.device)
    return np.asarray(values, dtype=array.dtype)


def as_double(array: Array) -> Array:
    """The array in float64."""
    return array.double() if is_tensor(array) else array.astype(np.float64, copy=False)


def no_values(*, dtype: Any = None, device: Any = None, like: Any = None) -> Array:
    """An empty array of a dtype (by default float64) on a device: a tensor where one of the three is torch's, in the dtype of ``like``."""
    torch = sys.modules.get("torch")
    if torch and (device is not None or isinstance(dtype, torch.dtype) or is_tensor(like)):
        return torch.empty(
            0, dtype=dtype or getattr(like, "dtype", None), device=device or getattr(like, "device", None)
        )
    return np.empty(0, dtype or np.float64)


def detached(array: Array) -> Array:
    """The array without gradients."""
    return array.detach() if is_tensor(array) else array


def on_host(array: Array) -> bool:
    """Whether kernels for a processor can read the array: numpy's are, and tensors of the CPU."""
    return not is_tensor(array) or array.device.type == "cpu"


def as_floats(array: Array) -> Array:
    """The array as it is where it holds floats, otherwise as float64, a tensor as float32."""
    if is_floating(array):
        return array
    return array.float() if is_tensor(array) else array.astype(np.float64)


def is_floating(array: Array) -> bool:
    """Whether the values are floating-point numbers."""
    return array.dtype.is_floating_point if is_tensor(array) else array.dtype.kind == "f"


def masked_fill(array: Array, mask: Array, value: float) -> Array:
    """``array`` with ``value`` where ``mask``, which is broadcast, is True.

    >>> masked_fill(np.array([1.0, 2.0]), np.array([True, False]), 0.0)
    array([0., 2.])
    """
    return array.masked_fill(mask, value) if is_tensor(array) else np.where(mask, value, array)


def clip(array: Array, low: float | None = None, high: float | None = None) -> Array:
    """Values raised to ``low`` and lowered to ``high``; array_api_compat's own copies numbers to the device."""
    return array.clamp(low, high) if is_tensor(array) else np.clip(array, low, high)


def gather(values: Array, indices: Array) -> Array:
    """``values[..., indices]`` along the last axis; ``values`` (query, item) serve every ranking of ``indices`` (..., query, position).

    >>> gather(np.array([[5.0, 6.0, 7.0]]), np.array([[[2, 0]], [[1, 1]]])).tolist()
    [[[7.0, 5.0]], [[6.0, 6.0]]]
    """
    spread = namespace(values).broadcast_to(values, (*indices.shape[:-1], values.shape[-1]))
    return spread.gather(-1, indices) if is_tensor(values) else np.take_along_axis(spread, indices, -1)


def scatter(values: Array, indices: Array, updates: Array | float) -> Array:
    """A copy of ``values`` (..., item) with ``updates`` at ``indices`` (..., position); all are broadcast to the rows of ``indices``.

    >>> scatter(np.zeros(3), np.array([[2, 0], [1, 2]]), np.array([8.0, 9.0])).tolist()
    [[9.0, 0.0, 8.0], [0.0, 8.0, 9.0]]
    """
    xp = namespace(values, indices)
    spread = xp.broadcast_to(values, (*indices.shape[:-1], values.shape[-1]))
    if not isinstance(updates, float):
        updates = xp.broadcast_to(updates, indices.shape)
    if is_tensor(values):
        return spread.scatter(-1, indices, updates)
    changed = spread.copy()
    np.put_along_axis(changed, indices, updates, -1)
    return changed


def scatter_add(values: Array, indices: Array, updates: Array) -> Array:
    """A copy of ``values`` (row, item) with ``updates`` (row, update) added at ``indices`` (row, update) or (update,).

    >>> scatter_add(np.zeros((1, 3)), np.array([2, 0, 2]), np.array([[1.0, 2.0, 4.0]]))
    array([[2., 0., 5.]])
    """
    if is_tensor(values):
        return values.scatter_add(-1, indices.expand(updates.shape), updates)
    total = values.copy()
    np.add.at(total, (np.arange(len(total))[:, None], indices), updates)
    return total


def put(values: Array, indices: Array, updates: Array | float) -> None:
    """Write ``updates`` into ``values`` (..., item) at ``indices`` (..., position), in place."""
    if is_tensor(values):
        values.scatter_(-1, indices, updates)
    else:
        np.put_along_axis(values, indices, updates, -1)


def arange(count: int, *, like: Array) -> Array:
    """0, 1, ..., ``count`` - 1, on the device of ``like``."""
    return namespace(like).arange(count, device=like.device)


def zeros(shape: tuple[int, ...], *, like: Array, dtype: Any = None) -> Array:
    """Zeros on the device of ``like``, by default in its dtype."""
    return namespace(like).zeros(shape, dtype=dtype or like.dtype, device=like.device)


def pair_indices(count: int, *, like: Array) -> tuple[Array, Array]:
    """The first and the second of all pairs of two indices below ``count``, the lower one first.

    >>> first, second = pair_indices(3, like=np.zeros(1))
    >>> first.tolist(), second.tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    if is_tensor(like):
        import torch

        first, second = torch.triu_indices(count, count, 1, device=like.device)
        return first, second
    return np.triu_indices(count, 1)


def resized(vector: Array, length: int) -> Array:
    """The first ``length`` values of a vector, 0 past its end.

    >>> resized(np.array([1.0, 2.0]), 3), resized(np.array([1.0, 2.0]), 1)
    (array([1., 2., 0.]), array([1.]))
    """
    xp, missing = namespace(vector), max(0, length - len(vector))
    return xp.concat([vector[:length], xp.zeros(missing, dtype=vector.dtype, device=vector.device)])


def lowest(array: Array) -> float:
    """A log weight of what is never chosen, for the floats of ``array``: finite, since backwards through logcumsumexp -inf is NaN."""
    return float(namespace(array).finfo(array.dtype).min) / 4  # sums of some of them are finite too


def log_sum_exp(array: Array, *, keepdims: bool = False) -> Array:
    """log Σ exp(array) over the last axis."""
    if is_tensor(array):
        return array.logsumexp(-1, keepdim=keepdims)
    total = np.logaddexp.reduce(array, axis=-1)
    return total[..., None] if keepdims else total


def log_cumsum_exp(array: Array) -> Array:
    """log of the running sums of exp(array) along the last axis.

    >>> np.exp(log_cumsum_exp(np.log(np.array([1.0, 2.0, 3.0]))))
    array([1., 3., 6.])
    """
    return array.logcumsumexp(-1) if is_tensor(array) else np.logaddexp.accumulate(array, axis=-1)


def log_sigmoid(array: Array) -> Array:
    """log(1 / (1 + exp(-array))), without overflow."""
    if is_tensor(array):
        import torch

        return torch.nn.functional.logsigmoid(array)
    return -np.logaddexp(array.dtype.type(0), -array)


def sign(array: Array) -> Array:
    """-1, 0 or 1; array_api_compat's own takes more steps on a device."""
    return array.sign() if is_tensor(array) else np.sign(array)


def sigmoid(array: Array) -> Array:
    """1 / (1 + exp(-array)), without overflow."""
    if is_tensor(array):
        return array.sigmoid()
    from scipy.special import expit

    return expit(array)


def x_log_y(x: Array, y: Array) -> Array:
    """x log(y), and 0 where x is 0."""
    if is_tensor(x):
        return x.xlogy(y)
    from scipy.special import xlogy

    return xlogy(x, y)


def log_factorial(array: Array) -> Array:
    """log(array!), elementwise."""
    if is_tensor(array):
        return (array + 1).lgamma()
    from scipy.special import gammaln

    return gammaln(array + 1)


def called(function: Callable[..., Any], *arrays: Array) -> Any:
    """What a user's own function gives: of tensors where torch is installed, as in training, unless it takes arrays only."""
    if any(map(is_tensor, arrays)) or find_spec("torch") is None:
        return function(*arrays)
    import torch

    try:
        return function(*map(torch.tensor, arrays))
    except (AttributeError, TypeError):
        return function(*arrays)


def new_generator(seed: int, *, like: Array) -> Generator:
    """A source of randomness for arrays like this one."""
    if is_tensor(like):
        import torch

        return torch.Generator(device=like.device).manual_seed(seed)
    return np.random.default_rng(seed)


def random_seed(generator: Any, *, like: Array) -> int:
    """A seed for a kernel, drawn from the generator of arrays like this one."""
    if is_tensor(like):
        import torch

        device = None if generator is None else generator.device
        return int(torch.randint(2**62, (), generator=_for_tensors(generator), device=device))
    return int(_for_numpy(generator).integers(2**62))


def uniform(shape: tuple[int, ...], *, like: Array, generator: Any = None) -> Array:
    """Draws from 0 to 1 in the dtype and on the device of ``like``.

    Tensors draw from a ``torch.Generator``, by default torch's own; numpy arrays from a ``numpy.random.Generator``, by default a new one.
    """
    if is_tensor(like):
        import torch

        return torch.rand(shape, dtype=like.dtype, device=like.device, generator=_for_tensors(generator))
    return _for_numpy(generator).random(shape).astype(like.dtype, copy=False)


def exponential(shape: tuple[int, ...], *, like: Array, generator: Any = None) -> Array:
    """Draws of the standard exponential distribution in float64, on the device of ``like``."""
    if is_tensor(like):
        import torch

        empty = torch.empty(shape, dtype=torch.float64, device=like.device)
        return empty.exponential_(generator=_for_tensors(generator))
    # The lowest draw is above 0: its logarithm is taken.
    return np.maximum(_for_numpy(generator).standard_exponential(shape), math.ldexp(1.0, -60))


def choices(weights: Array, num_samples: int, *, generator: Any = None) -> Array:
    """Indices (sample, row) drawn with replacement, row by row in proportion to ``weights`` (row, choice)."""
    if is_tensor(weights):
        import torch

        return torch.multinomial(weights, num_samples, replacement=True, generator=_for_tensors(generator)).T
    steps = np.cumsum(weights, axis=-1, dtype=np.float64)
    drawn = _for_numpy(generator).random((num_samples, len(weights), 1)) * steps[:, -1:]
    return np.minimum((steps <= drawn).sum(-1), weights.shape[-1] - 1)  # a product may be rounded up to the sum


def permutation(count: int, *, like: Array, generator: Any = None) -> NDArray[np.int64]:
    """The numbers below ``count`` in random order."""
    if is_tensor(like):
        import torch

        device = None if generator is None else generator.device
        return torch.randperm(count, generator=_for_tensors(generator), device=device).cpu().numpy()
    return _for_numpy(generator).permutation(count)


def generator_state(generator: Any) -> Array:
    """The state of a source of randomness, as bytes (byte,) of the kind of its arrays."""
    if isinstance(generator, np.random.Generator):
        return np.frombuffer(json.dumps(generator.bit_generator.state).encode(), np.uint8)
    return generator.get_state()


def restore_generator(generator: Any, state: Array) -> None:
    """Put a source of randomness where it was when ``generator_state`` gave these bytes."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = json.loads(state.tobytes())
    else:
        generator.set_state(state)


def reseed(generator: Any, seed: int) -> None:
    """Put a source of randomness where a new one with this seed begins."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = np.random.default_rng(seed).bit_generator.state
    else:
        generator.manual_seed(seed)


def _for_tensors(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        raise RankPolicyError(
            "generator must be a torch.Generator for tensors; got one of numpy. Pass numpy arrays, or torch.Generator()."
        )
    return generator


def _for_numpy(generator: Any) -> np.random.Generator:
    if generator is not None and not isinstance(generator, np.random.Generator):
        raise RankPolicyError(
            f"generator must be a numpy.random.Generator for numpy arrays; got {type(generator).__name__}. "
            "Pass numpy.random.default_rng(0), or tensors."
        )
    return np.random.default_rng() if generator is None else generator
