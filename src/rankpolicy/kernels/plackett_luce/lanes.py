"""Numbers side by side in the processor's vector registers, for kernels whose arrays LLVM cannot prove to be apart.

``load(array, index)`` takes WIDTH consecutive numbers of a flat array, ``store`` puts them back; +, - and * work number by number.
"""

import math
import operator
from typing import Any

import numba.extending
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

from rankpolicy.kernels.compile import njit

WIDTH = 8

_insert_function: Any = cgutils.get_or_insert_function
intrinsic: Any = numba.extending.intrinsic  # its functions are called without the typing context that they declare


class Lanes(types.Type):
    """WIDTH numbers of one dtype."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Any) -> None:
        super().__init__(manager, lanes, _vector(lanes.dtype))  # type: ignore[no-untyped-call]


def _vector(dtype: Any) -> Any:
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), WIDTH)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _vector(array_type.dtype).as_pointer())


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """array[index : index + WIDTH], a flat array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    """array[index : index + WIDTH] = lanes, a flat array; rounded to its dtype."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, values = _pointer(context, builder, signature.args[0], *arguments[:2]), arguments[2]
        if array.dtype != lanes.dtype:
            values = builder.fptrunc(values, _vector(array.dtype))
        builder.store(values, pointer, align=array.dtype.bitwidth // 8)

    return types.void(array, types.intp, lanes), generate


@intrinsic
def total(typing_context: Any, lanes: Any) -> Any:
    """The sum of all lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = _vector(lanes.dtype).element
        name = f"llvm.vector.reduce.fadd.v{WIDTH}f{lanes.dtype.bitwidth}"
        function = _insert_function(builder.module, ir.FunctionType(number, [number, _vector(lanes.dtype)]), name)
        return builder.call(function, [ir.Constant(number, -0.0), arguments[0]], fastmath=("reassoc",))

    return lanes.dtype(lanes), generate


@intrinsic
def spread(typing_context: Any, number: Any) -> Any:
    """The same number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _vector(number)
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[0], ir.IntType(32)(0))
        return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))

    return Lanes(number)(number), generate


@intrinsic
def _power_of_two(typing_context: Any, shifted: Any) -> Any:
    """2^k of k + 1.5 * 2^52, a number whose last bits are k."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integers = ir.VectorType(ir.IntType(64), WIDTH)
        bits = builder.shl(builder.bitcast(arguments[0], integers), ir.Constant(integers, [52] * WIDTH))
        return builder.bitcast(builder.add(bits, ir.Constant(integers, [1023 << 52] * WIDTH)), _vector(shifted.dtype))

    return shifted(shifted), generate


def _lane_by_lane(name: str) -> Any:
    @intrinsic
    def call(typing_context: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = _vector(left.dtype)
            kind = f"llvm.{name}.v{WIDTH}f{left.dtype.bitwidth}"
            function = _insert_function(builder.module, ir.FunctionType(vector, [vector, vector]), kind)
            return builder.call(function, arguments)

        return left(left, right), generate

    return call


_smaller, _larger = _lane_by_lane("minnum"), _lane_by_lane("maxnum")


@njit()
def clip(lanes, lowest, highest):
    """Each number, not below the lowest nor above the highest."""
    return _smaller(_larger(lanes, spread(lowest)), spread(highest))


def _register(operation: Any, instruction: str) -> None:
    @type_callable(operation)
    def type_of(context: Any) -> Any:
        def typer(left: Any, right: Any) -> Any:
            return left if isinstance(left, Lanes) and left == right else None

        return typer

    @lower_builtin(operation, Lanes, Lanes)  # type: ignore[no-untyped-call]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments, flags=("contract",))


for _operation, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _register(_operation, _instruction)


_SHIFT = 1.5 * 2.0**52  # adding this to a number rounds it to a whole one
_LOG2_E = 1 / math.log(2)
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # ln 2 in two parts, the first with zeros to spare
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1 / math.factorial(j) for j in range(2, 14))


@njit()
def exponential(x):
    """e^x of float64 lanes from -700 to 700, to the last digit but one.

    e^x = 2^k e^r with k = round(x / ln 2), and e^r by 14 terms of its series.
    """
    shifted = x * spread(_LOG2_E) + spread(_SHIFT)
    k = shifted - spread(_SHIFT)
    r = (x - k * spread(_LN2_HIGH)) - k * spread(_LN2_LOW)
    high = (((spread(_C13) * r + spread(_C12)) * r + spread(_C11)) * r + spread(_C10)) * r + spread(_C9)
    middle = (((high * r + spread(_C8)) * r + spread(_C7)) * r + spread(_C6)) * r + spread(_C5)
    low = ((middle * r + spread(_C4)) * r + spread(_C3)) * r + spread(_C2)
    return ((low * r + spread(1.0)) * r + spread(1.0)) * _power_of_two(shifted)
