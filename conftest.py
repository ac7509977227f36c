"""Without an NVIDIA driver the kernels of rankpolicy.kernels.triton are tested in Triton's interpreter.

It must be chosen before anything imports triton.
"""

import importlib.util
import os
from pathlib import Path

if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# These modules import triton: where it is missing they are not searched for doctests.
collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/rankpolicy/kernels/triton/*.py"]
