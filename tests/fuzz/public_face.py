"""Calls of the public face with one or two odd arguments: a result, or an error of ours.

``python -m tests.fuzz.public_face 20000`` makes a longer run and prints every raw exception once.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars

import rankpolicy as rp
from tests.fuzz.odd_values import odd_value

Call = tuple[Callable[..., Any], dict[str, Any]]
# A wrong or missing name of an argument is Python's own TypeError; LookupError is what indexing is expected to raise.
_MOST_BYTES = 10 << 30
_EXPECTED = (rp.RankPolicyError, rp.MissingDependencyError)


def calls() -> dict[str, Call]:
    """Functions and methods by name, each with arguments that work."""
    data = rp.make_web_search(12, items_per_query=(2, 5), num_features=8, random_state=0)
    train, valid = data[:8], data[8:]
    groups = np.array(["a", "b"])[np.arange(data.num_items) % 2]
    X, y, qid = data.features, data.labels, data.query_ids[data.query_of_item]
    frame = polars.DataFrame({"qid": qid, "label": y, "x": X[:, 0]})
    linear = rp.Regression().fit(data)
    network = rp.PGRank(epochs=1, num_networks=1, model=rp.models.MLP(hidden=(2,))).fit(data)
    log = rp.clicks.log_from_lists(queries=["q", "q"], items=[["a", "b"], ["b", "a"]], clicks=[[1, 0], [0, 1]])
    table = rp.evaluate(linear, data)
    bandit = rp.bandits.BANDITS["cascade-kl-ucb"](num_items=5, cutoff=2)
    quick: dict[str, Any] = {"epochs": 1, "num_networks": 1, "model": "linear"}
    found: dict[str, Call] = {
        "make_web_search": (rp.make_web_search, {"num_queries": 3, "items_per_query": (2, 3), "num_features": 8, "random_state": 0}),
        "from_arrays": (rp.from_arrays, {"features": X, "labels": y, "qid": qid}),
        "from_arrays by group": (rp.from_arrays, {"features": X, "labels": y, "group": data.sizes, "item_ids": None, "protected": groups}),
        "from_frame": (rp.from_frame, {"frame": frame, "qid": "qid", "label": "label", "features": ["x"]}),
        "from_texts": (rp.from_texts, {"queries": ["a"], "items": [["b", "c"]], "labels": [[0, 1]]}),
        "read_letor": (rp.read_letor, {"path": "data.txt", "num_features": 8}),
        "read_parquet": (rp.read_parquet, {"path": "data.parquet", "qid": "qid", "label": "label"}),
        "read_click_log": (rp.read_click_log, {"path": "log.csv"}),
        "read_click_table": (rp.read_click_table, {"path": "table.csv"}),
        "load": (rp.load, {"path": "model.rp"}),
        "save": (linear.save, {"path": "saved.rp"}),
        "split_queries": (rp.split_queries, {"dataset": data, "fractions": (0.5, 0.5), "random_state": 0}),
        "k_fold": (lambda **a: list(rp.data.k_fold(**a)), {"dataset": data, "num_folds": 3, "random_state": 0}),
        "evaluate": (rp.evaluate, {"ranker_or_scores": linear, "dataset": data, "metrics": "ndcg@10"}),
        "evaluate scores": (rp.evaluate, {"ranker_or_scores": np.zeros(data.num_items), "dataset": data, "metrics": ["map"]}),
        "confidence_interval": (table.confidence_interval, {"metric": "map", "random_state": 0}),
        "fit dataset": (rp.Regression().fit, {"X": train, "valid": valid}),
        "fit arrays": (rp.Regression().fit, {"X": X, "y": y, "qid": qid}),
        "fit eval_set": (rp.Regression().fit, {"X": X, "y": y, "qid": qid, "eval_set": [(X, y)], "eval_qid": [qid]}),
        "fit network": (rp.ListNet(**quick).fit, {"X": X, "y": y, "group": data.sizes, "checkpoint": None, "resume": False}),
        "fit trees": (rp.LambdaMART(num_trees=2, min_items_in_leaf=1).fit, {"X": X, "y": y, "qid": qid}),
        "fit fair": (rp.FairPGRank(epochs=1).fit, {"X": data, "protected": groups}),
        "predict": (network.predict, {"X": X, "qid": qid}),
        "rank": (network.rank, {"X": X, "group": data.sizes}),
        "sample": (network.sample, {"X": X, "qid": qid, "num_samples": 2, "random_state": 0}),
        "exposure": (network.exposure, {"X": data, "rank_weights": [1.0, 0.5], "cutoff": 2}),
        "policy": (network.policy, {"X": data}),
        "set_params": (rp.PGRank().set_params, {"epochs": 2, "learning_rate": 0.1, "model__hidden": (2,)}),
        "PGRank": (rp.PGRank, {"reward": "ndcg@10", "epochs": 2, "patience": 3, "model": "mlp", "scaling": "none", "random_state": 0}),
        "LambdaMART": (rp.LambdaMART, {"num_trees": 3, "num_leaves": 3, "valid_metric": "map", "truncation": 3}),
        "FairPGRank": (rp.FairPGRank, {"strength": 1.0, "fairness": "group", "merit": "identity", "estimator": "exact"}),
        "MLP": (rp.models.MLP, {"hidden": (2,), "dropout": 0.1}),
        "Conventions": (rp.Conventions, {"gain": "exp2", "empty": 0, "relevant_from": 1.0, "max_label": 4.0}),
        "bandit": (rp.bandits.BANDITS["cascade-kl-ucb"], {"num_items": 4, "cutoff": 2, "random_state": 0}),
        "bandit.rank": (bandit.rank, {"available": [0, 1, 2]}),
        "bandit.learn": (bandit.learn, {"ranking": [0, 1], "clicks": [1, 0]}),
        "bandit.learn_log": (bandit.learn_log, {"rankings": [[0, 1]], "clicks": [[1, 0]]}),
        "fit_click_model": (rp.fit_click_model, {"name": "pbm", "log": log, "iterations": 5}),
        "estimate_position_bias": (rp.estimate_position_bias, {"log": log, "method": "all-pairs"}),
        "log_from_lists": (rp.clicks.log_from_lists, {"queries": ["q"], "items": [["a", "b"]], "clicks": [[1, 0]]}),
        "dataset[]": (lambda queries: data[queries], {"queries": [0, 1]}),
        "concatenate": (rp.data.concatenate, {"datasets": [data, data]}),
        "drop_queries": (data.drop_queries_without_relevant_items, {"relevant_from": 1.0}),
        "parse_metric": (rp.metrics.parse_metric, {"text": "mean(ap, ndcg@3)"}),
        "write_letor": (rp.data.write_letor, {"dataset": data, "path": "written.txt"}),
        "write_run": (rp.data.write_run, {"dataset": data, "scores": np.zeros(data.num_items), "path": "written.run", "tag": "t"}),
    }  # fmt: skip
    rp.data.write_letor(data, "data.txt")
    rp.data.write_parquet(data, "data.parquet")
    linear.save("model.rp")
    with open("log.csv", "w") as file:
        file.write("session,query,item,position,clicked\ns,q,a,1,1\ns,q,b,2,0\n")
    with open("table.csv", "w") as file:
        file.write("query_text,item_text,clicked\ntea,pot,1\ntea,cup,0\n")
    return found


def run(num_calls: int, *, seed: int) -> Counter[str]:
    """Raw exceptions by description, and how often each came up."""
    rng, raw = random.Random(seed), Counter[str]()
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            known = calls()
            for name, (function, arguments) in known.items():
                function(**arguments)  # all of them work as they stand
                assert name
            for _ in range(num_calls):
                name = rng.choice(sorted(known))
                function, arguments = known[name]
                odd = {
                    key: odd_value(rng)
                    for key in rng.sample(sorted(arguments), min(len(arguments), rng.choice([1, 1, 2])))
                }
                found = _raw_exception(function, arguments | odd)
                if found is not None:
                    raw[f"{name}({', '.join(f'{key}={value!r:.40}' for key, value in odd.items())}): {found}"] += 1
        finally:
            os.chdir(here)
    return raw


def _raw_exception(function: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            repr(function(**arguments))
    except (*_EXPECTED, MemoryError):
        return None
    except IndexError:
        if function.__name__ == "<lambda>":  # dataset[...], where Python's own loops rely on it
            return None
        raise
    except Exception as error:
        if "allocate memory" in str(error):  # torch's words for it: billions of numbers were asked for
            return None
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:100]} ({os.path.basename(place.filename)}:{place.lineno})"
    return None


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    outcome = run(int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    by_function: dict[str, list[str]] = {}
    for text in outcome:
        by_function.setdefault(text.partition("(")[0], []).append(text)
    for texts in by_function.values():
        print("\n".join(texts[:6]))
    print(f"{sys.argv[1]} calls, {sum(outcome.values())} raw exceptions in {len(by_function)} functions")
    sys.exit(bool(outcome))
