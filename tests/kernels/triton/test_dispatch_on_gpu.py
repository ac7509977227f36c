"""The estimators on a GPU: glue tested with arrays that are said to lie there, and on a real device where there is one."""

import os
import subprocess
import sys

import pytest
import torch

from rankpolicy.gradients import exact, reinforce
from rankpolicy.kernels import HAS_TRITON, on_gpu
from rankpolicy.metrics import parse_metric
from rankpolicy.policies import PlackettLuce

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from rankpolicy.kernels.triton import gumbel, pl_rank, race, race_in_registers
from rankpolicy.kernels.triton import reinforce, relu_network

NUMBERS = {"mask": "*i1", "seed": "*i64", "relevant_from": "fp32", "stop_scale": "fp32", "empty": "fp32"}
NUMBERS |= {"steps": "*fp64", "parts": "*i64", "size": "i32", "per_group": "i32", "rows_per_part": "i32"}
NUMBERS |= {"rows": "*i64", "offsets": "*i64", "queries": "*i64"}
NUMBERS |= {"draws": "*u8", "draws_of": "*i64", "thresholds": "*i32", "are_open": "*u8", "activations": ("*fp32",) * 3}
NUMBERS |= {"active": "*i32"}
WHOLE = ("visited", "pairs", "kinds", "cutoffs", "rankings")

def cubin(kernel, num_warps=1, **constants):
    def kind(name):
        if name in constants:
            return "constexpr"
        if name.startswith("num_") or name in ("cutoff", "depth"):
            return "i32"
        return NUMBERS.get(name) or ("*i32" if name in WHOLE else "*fp32")
    source = ASTSource(fn=kernel, signature={name: kind(name) for name in kernel.arg_names}, constexprs=constants)
    return len(compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": num_warps}).asm["cubin"])

for counts, nodes, gather, num_warps in ((16, 8, True, 1), (1024, 1, False, 4)):
    for parts in (1, 2, 3):
        constants = dict(NODES=nodes, COUNTS=counts, GATHER=gather, ITEMS=256, PARTS=parts)
        assert cubin(race.race_kernel, num_warps, STEP=0.5, BEFORE=5.0, AFTER=2.8, **constants)
assert cubin(race.race_sum_kernel, ITEMS=256, PARTS=3)
constants = dict(NODES=32, COUNTS=3, SEGMENT=2, ITEMS=256, PARTS=3)
assert cubin(race_in_registers.race_in_registers_kernel, STEP=0.5, BEFORE=5.0, AFTER=2.8, **constants)
shape = dict(D=7, HIDDEN=(20, 6, 9), PADDED=(32, 16, 16), BLOCK=16, DROPS=True, PRECISION="tf32x3")
assert cubin(relu_network.scores_kernel, 4, INPUTS=32, **shape)
assert cubin(relu_network.slopes_kernel, 4, **shape)
assert cubin(relu_network.products_kernel, 4, D=7, WIDTH=20, PADDED=32, ROWS=32, COLUMNS=64, PRECISION="tf32x3")
assert cubin(relu_network.sum_kernel, 4, PARTS=16, BLOCK=128)
NUMBERS |= {"pairs": "*i64"}
assert cubin(gumbel.gumbel_kernel, ITEMS=32, POSITIONS=16)
assert cubin(pl_rank.pl_rank_kernel, ITEMS=32, POSITIONS=16)
NUMBERS |= {"pairs": "*i32"}
assert cubin(reinforce.draw_kernel, LINEAR=False, ITEMS=128, POSITIONS=16)
assert cubin(reinforce.advantage_kernel, CONTROL=0, SAMPLES=16)
assert cubin(reinforce.gradient_kernel, ITEMS=128)
"""


def batch():
    scores = torch.tensor([[0.5, -1.0, 2.0, 0.0], [1.0, 1.5, -0.5, 0.0]])
    labels = torch.tensor([[0.0, 2.0, 1.0, 3.0], [1.0, 0.0, 2.0, 0.0]])
    return scores, labels, torch.tensor([[True] * 4, [True, True, True, False]])


@pytest.fixture
def said_to_be_on_gpu(device, monkeypatch):
    """Estimators take the kernels for whatever device these tests run on."""
    if device.type == "cpu":
        for name in ("gradients.exact", "gradients.reinforce", "policies.race"):
            module = sys.modules[f"rankpolicy.{name}"]  # its package gives its name to a function
            monkeypatch.setattr(module, "on_gpu", lambda array: array.dtype != torch.float64)
            monkeypatch.setattr(module, "HAS_NUMBA", False, raising=False)
    return device


def test_kernels_serve_float32_on_cuda_unless_they_are_turned_off(monkeypatch):
    assert not on_gpu(torch.zeros(1))
    assert not on_gpu(torch.zeros(1, device="meta"))
    if HAS_TRITON and torch.cuda.is_available():
        assert on_gpu(torch.zeros(1, device="cuda"))
        assert not on_gpu(torch.zeros(1, device="cuda", dtype=torch.float64))
        monkeypatch.setenv("RANKPOLICY_TRITON", "0")
        assert not on_gpu(torch.zeros(1, device="cuda"))


@pytest.mark.parametrize("name", ["ndcg@2", "0.5*avg_rank@2 + p@3"])
def test_exact(said_to_be_on_gpu, name):
    reward = parse_metric(name)
    arrays = [array.to(said_to_be_on_gpu) for array in batch()]
    found = exact(*arrays, reward=reward)
    expected = exact(batch()[0].double(), *batch()[1:], reward=reward)
    torch.testing.assert_close(found.gradient.cpu().double(), expected.gradient, rtol=0, atol=2e-4)
    torch.testing.assert_close(found.reward.cpu().double(), expected.reward, rtol=0, atol=2e-4)


def test_exposure_of_the_policy(said_to_be_on_gpu):
    scores, _, mask = (array.to(said_to_be_on_gpu) for array in batch())
    expected = PlackettLuce(scores.cpu().double(), mask.cpu()).exposure(cutoff=2)
    found = PlackettLuce(scores, mask).exposure(cutoff=2)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["ndcg@2 + 0.5*ap", "ndcg * ap"])  # the kernel, and the torch reference
def test_reinforce(said_to_be_on_gpu, name):
    reward = parse_metric(name)
    arrays = [array.to(said_to_be_on_gpu) for array in batch()]
    first, again = (
        reinforce(*arrays, reward=reward, num_samples=4, generator=torch.Generator(said_to_be_on_gpu).manual_seed(1))
        for _ in range(2)
    )
    assert torch.equal(first.gradient, again.gradient)
    assert set(first.metrics) == {"ndcg@2" if "@" in name else "ndcg", "ap"}
    assert first.gradient.shape == (2, 4)
    assert first.gradient[1, 3] == 0
    # The gradient of Plackett-Luce does not move the mean score.
    torch.testing.assert_close(first.gradient.sum(-1).cpu(), torch.zeros(2), rtol=0, atol=1e-5)


def test_kernels_compile_for_hopper(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", COMPILE], check=True, env=environment)
