"""A kernel that samples compiles for a GPU; no GPU is needed for that."""

import os
import subprocess
import sys

COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from rankpolicy.kernels.triton import pl_rank

def cubin(kernel, num_warps, kinds, other, **constants):
    signature = {name: "constexpr" if name in constants else kinds.get(name, other) for name in kernel.arg_names}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    return len(compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": num_warps}).asm["cubin"])

kinds = {name: "i32" for name in ("num_items", "num_terms", "depth")}
kinds |= {name: "*i32" for name in ("rankings", "pairs")} | {"mask": "*i1", "seed": "*i64"}
assert cubin(pl_rank.pl_rank_kernel, 1, kinds, "*fp32", ITEMS=32, POSITIONS=16)
"""


def test_the_kernel_compiles_for_hopper(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", COMPILE], check=True, env=environment)
