"""Variants of the step of 32 policies, and the phases of a trade-off curve."""

import cProfile
import io
import pstats
import time

from benchmarks import gpu_experiments as experiments
from benchmarks import gpu_training as training
from rankpolicy.kernels.triton import race, relu_network

start = time.perf_counter()
yahoo = training.data(19_944, 24, 700)
VARIANTS = [
    {},
    {"_MOST_REGISTERS": 168},
    {"_SEGMENT": 2},
    {"_SEGMENT": 2, "_MOST_REGISTERS": 128},
    {"_SEGMENT": 3, "_MOST_REGISTERS": 168},
    {"_ROWS": 64},
    {"_ROWS": 64, "_COLUMNS": 32},
]
for variant in VARIANTS:
    modules = {name: relu_network if name in ("_ROWS", "_COLUMNS") else race for name in variant}
    before = {name: getattr(modules[name], name) for name in variant}
    for name, value in variant.items():
        setattr(modules[name], name, value)
    try:
        found = training.epoch("32", yahoo, num_policies=32, goal=0.16)
        one = training.epoch("1", yahoo, goal=0.045) if "_ROWS" not in variant else found
        longest = list(found["longest_us"].items())[:4]
        print(variant, found["epoch_s"], one["epoch_s"], longest, round(time.perf_counter() - start), flush=True)
    except Exception as error:
        print(variant, repr(error)[:200], flush=True)
    for name, value in before.items():
        setattr(modules[name], name, value)
del yahoo
print(experiments.tradeoff(), flush=True)
trains = [experiments.make_fair_synthetic(random_state=2 * seed) for seed in experiments.SEEDS]
tests = [experiments.make_fair_synthetic(random_state=2 * seed + 1) for seed in experiments.SEEDS]
methods = {"fair-pg-rank": {"model": "mlp", "device": "cuda"}}
for strengths, seeds in (([1.0], [0]), (experiments.STRENGTHS, experiments.SEEDS)):
    profile, begin = cProfile.Profile(), time.perf_counter()
    profile.enable()
    own = slice(0, len(seeds))
    experiments.sweep_tradeoff(trains[own], tests[own], methods, strengths=strengths, seeds=seeds, jobs=1)
    profile.disable()
    print("profiled", time.perf_counter() - begin)
    for order in ("cumtime", "tottime"):
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats(order).print_stats(26)
        lines = [line for line in text.getvalue().splitlines() if "rankpolicy" in line or "{" in line]
        for line in lines[:24]:
            numbers, _, place = line.partition("/src/rankpolicy/")
            print(" ".join(numbers.split()[:4]), place or " ".join(numbers.split()[5:])[:60])
