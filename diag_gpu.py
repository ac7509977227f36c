"""Variants of the step of 32 policies."""

import time

from benchmarks import gpu_training as training
from rankpolicy.kernels.triton import race, relu_network

start = time.perf_counter()
yahoo = training.data(19_944, 24, 700)
VARIANTS = [
    {},
    {"_ROWS": 64},
    {"_ROWS": 64, "_COLUMNS": 32},
    {"_ROW_BLOCKS": (32,)},
    {"_WARPS": 8},
    {"_PRECISION": "tf32"},
    {"_SEGMENT": 2},
    {"_NODES": 16},
]
for variant in VARIANTS:
    before = {name: getattr(race if hasattr(race, name) else relu_network, name) for name in variant}
    for name, value in variant.items():
        setattr(race if name in ("_SEGMENT", "_NODES") else relu_network, name, value)
    try:
        found = training.epoch("32", yahoo, num_policies=32, goal=0.16)
        print(variant, found["epoch_s"], found["longest_us"], round(time.perf_counter() - start), flush=True)
    except Exception as error:
        print(variant, repr(error)[:200], flush=True)
    for name, value in before.items():
        setattr(race if name in ("_SEGMENT", "_NODES") else relu_network, name, value)
