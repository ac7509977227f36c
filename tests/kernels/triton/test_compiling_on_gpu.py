"""Kernels that compute in float64, and that of the affinity policy, compile for a GPU; no GPU is needed for that."""

import os
import subprocess
import sys

COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from rankpolicy.kernels.triton import affinity, bandit_codes, bandits, click_models, segment_sums

def cubin(kernel, num_warps, kinds, other, **constants):
    signature = {name: "constexpr" if name in constants else kinds.get(name, other) for name in kernel.arg_names}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    return len(compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": num_warps}).asm["cubin"])

kinds = {name: "i32" for name in ("num_segments", "num_cells", "num_positions", "num_lists")}
kinds |= {name: "*i32" for name in ("places", "bounds", "pairs", "slots", "lengths")}
assert cubin(segment_sums.segment_sum_kernel, 4, kinds, "*fp64", HAS_PLACES=True, BLOCK=128)
assert cubin(click_models.examination_kernel, 4, kinds, "*fp64", BLOCK=128)
assert cubin(click_models.cascade_kernel, 4, kinds, "*fp64", BLOCK=128)

kinds = {name: "i32" for name in bandit_codes.NUMBERS} | {"available": "*i1", "shown_positions": "*i32"}
kinds |= {name: "*i64" for name in ("wanted", "seeds", "shown_clicks")}
kinds["recent"] = "*i8"
for index, name in enumerate(bandit_codes.KINDS):
    constants = dict(INDEX=index, FEEDBACK=index % 4, BEST_LAST=index == 0, FORGETS=index == 1, TABLES=4)
    assert cubin(bandits.kernel_of(index), 1, kinds, "*fp64", ITEMS=16, COLUMNS=8 if index == 0 else 1, TRACE=index == 2, **constants)

kinds = {name: "i32" for name in ("num_items", "num_samples", "num_terms", "depth", "width")}
kinds |= {name: "*i32" for name in ("kinds", "cutoffs", "rankings")} | {"mask": "*i1", "seed": "*i64"}
kinds |= {name: "fp32" for name in ("relevant_from", "stop_scale", "empty")}
assert cubin(affinity.affinity_kernel, 1, kinds, "*fp32", LINEAR=False, ITEMS=32, POSITIONS=16)
"""


def test_kernels_compile_for_hopper(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", COMPILE], check=True, env=environment)
