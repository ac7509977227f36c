"""Names of compiled functions that no other process gives.

Numba numbers the functions of a process from 1 and puts the number into the names of machine code, which it caches. Two short processes
give one name to different functions, such as the quicksorts inside np.sort and np.argsort; a third process that loads the code of both
runs one for the other and computes something else, without an error (issues 10128 and 10486 of numba). Here the numbers of each process
begin at a random one. To be imported before anything is compiled.
"""

from __future__ import annotations

import itertools
import os
import secrets

from numba.core.bytecode import FunctionIdentity


def _begin_anywhere() -> None:
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


_begin_anywhere()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anywhere)
