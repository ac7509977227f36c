"""Two processes never give one name to two functions in the machine code that they cache."""

import os
import re
import subprocess
import sys

import pytest

SORTS = """
import re
import numba
import numpy as np
from {module} import {name} as _

def symbols(function):
    kernel = numba.njit(function)
    kernel(np.zeros(3))
    return " ".join(sorted(set(re.findall(r"run_quicksortB[0-9]+v[0-9]+", *kernel.inspect_llvm().values()))))
"""
ORDERED = "print(symbols(lambda x: np.argsort(x)[0]), flush=True)\n"
FORKED = f"""
import os
print(symbols(lambda x: np.sort(x)[0]), flush=True)
child = os.fork()
if child == 0:
    {ORDERED}    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
{ORDERED}
"""


def printed(program: str) -> list[set[str]]:
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return [set(line.split()) for line in output.splitlines()]


@pytest.mark.parametrize(
    ("module", "name"),
    [("rankpolicy.kernels.compile", "njit"), ("rankpolicy.kernels.bandits.step", "compiled")],
)
def test_processes_name_their_functions_apart(module, name):
    program = SORTS.format(module=module, name=name) + ORDERED
    (first,), (second,) = printed(program), printed(program)
    assert first
    assert not first & second
    assert all(re.search(r"v[0-9]{6,}$", symbol) for symbol in first)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_names_its_functions_apart_from_its_parent():
    _, in_child, in_parent = printed(SORTS.format(module="rankpolicy.kernels.compile", name="njit") + FORKED)
    assert in_child
    assert in_parent
    assert not in_child & in_parent
