"""Every public function, class and method with arguments that work, for the fuzzer of the public face to change."""

from __future__ import annotations

import importlib
import inspect
import os
import types
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import polars

import rankpolicy as rp
from rankpolicy.bandits import BANDITS, INDICES
from rankpolicy.clicks import CLICK_MODELS
from rankpolicy.models import MODELS
from rankpolicy.off_policy import OffPolicyLog, TargetProbabilities
from rankpolicy.online import ONLINE_RANKERS
from rankpolicy.rankers import RANKERS
from rankpolicy.simulation import cascade_user, stationary

Call = tuple[Callable[..., Any], dict[str, Any]]
PACKAGES = (
    "bandits",
    "clicks",
    "data",
    "evaluation",
    "executors",
    "experiments",
    "models",
    "off_policy",
    "online",
    "rankers",
    "service",
    "simulation",
)
# Settings that only make a run longer or larger: an odd but valid value would take hours.
_SIZES = {
    "epochs", "num_trees", "rounds", "restarts", "num_iterations", "max_iterations", "num_networks", "hidden", "num_samples", "steps",
    "num_steps", "patience", "max_repeats", "batch_queries", "device", "num_leaves", "iterations", "max_tokens", "recurrent",
    "num_trials", "jobs",
}  # fmt: skip
# Public names that users do not call: results that functions return, bases, and what needs files that are not here.
NOT_CALLED = {
    "errors": {
        "MissingDependencyError", "RankPolicyError", "ConflictError", "DamagedStoreError", "ServiceError", "UnavailableError",
    },
    "starts processes": {"fit_on_workers"},
    "a service that runs": {"RankingService", "SqliteStore", "Store", "serve"},
    "kinds of values": {"LabelKind"},
    "results": {
        "BiasedLog", "ClickComparison", "ClickEvidence", "Comparison", "IPSWeights", "MethodToRun", "MetricTable", "OffPolicyLog",
        "PairCounts", "PairedComparison", "ShownLists", "Perplexity", "Phase", "PolicyEstimate",
        "PositionBias", "Problem", "RobustnessMatrix", "ScannedOffPolicyLog", "SeedValue",
        "Selection", "Simulation", "TargetProbabilities", "Tradeoff", "TradeoffPoint", "Trial", "Tuned",
        "UtilityDisparity", "ClickLog", "Fold",
        "RankingDataset", "Texts", "User", "Vocabulary", "HashingVocabulary", "WordVectors", "Shop", "Directness",
    },
    "bases": {"Average", "Bandit", "ClickModel", "CountIndex", "OnlineRanker", "FirstClick", "LastClick", "IndexBandit", "Model", "Ranker"},
    "data that is not here": {"TextFeatures", "read_german_credit", "read_insuranceqa", "read_open_bandit", "read_wikiqa", "read_glove"},
    "inner": {
        "affine_relevance", "doubly_robust_relevance", "draw_clicks", "evaluate_scores",
        "make_job_candidates", "opened", "Executor", "Serial", "Shared",
    },
}  # fmt: skip


def public_callables() -> dict[str, Any]:
    """Functions and classes that the package and its packages export, by name."""
    found: dict[str, Any] = {}
    for module in (rp, *(importlib.import_module(f"rankpolicy.{name}") for name in PACKAGES)):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, types.ModuleType):
                found[name] = value
    return found


def _run_of(data: rp.RankingDataset) -> dict[str, dict[str, float]]:
    """A run that ranks every item of every query."""
    items = data.source_rows if data.item_ids is None else data.item_ids
    rows = zip(data.query_ids, data.offsets[:-1], data.offsets[1:], strict=True)
    return {str(query): {str(item): 0.5 for item in items[start:end]} for query, start, end in rows}


def write_files() -> rp.RankingDataset:
    """Write small files of every kind into the working directory; returns their data."""
    data = rp.make_web_search(12, items_per_query=(2, 5), num_features=8, random_state=0)
    rp.data.write_letor(data, "data.txt")
    rp.data.write_parquet(data, "data.parquet")
    rp.data.to_frame(data).write_csv("data.csv")
    rp.Regression(model="linear").fit(data).save("model.rp")
    rows = [(f"s{s}", "q", i, p, (s + p) % 2) for s in range(12) for p, i in enumerate("ab" if s % 2 else "ba", 1)]
    with open("log.csv", "w") as file:
        file.write("session,query,item,position,clicked\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    polars.read_csv("log.csv").write_parquet("log.parquet")
    with open("logged.csv", "w") as file:
        file.write("session,query,item,position,clicked,propensity\n1,q,b,1,0,0.5\n1,q,a,2,1,1\n")
    rounds = {"context": [0], "items": [[0, 1]], "rewards": [[1.0, 0.0]], "propensities": [[0.5, 1.0]]}
    polars.DataFrame(rounds).write_parquet("off_policy.parquet")
    with open("table.csv", "w") as file:
        file.write("query_text,item_text,clicked\ntea,pot,1\ntea,cup,0\nmilk,cup,0\nmilk,jug,1\n")
    with open("qa.jsonl", "w") as file:
        file.write('{"query": "what is tea", "items": ["a drink", "a car"], "labels": [1, 0]}\n')
    for number in (1, 2):
        os.makedirs(f"folds/Fold{number}", exist_ok=True)
        for part in ("train", "vali", "test"):
            rp.data.write_letor(data, f"folds/Fold{number}/{part}.txt")
    with open("service.toml", "w") as file:
        file.write('window_seconds = 5\n[policies.own]\nkind = "given"\n')
    with open("qrels.txt", "w") as file:
        file.write("q 0 a 1\n")
    with open("run.trec", "w") as file:
        file.write("q Q0 a 1 0.5 tag\n")
    return data


def calls() -> dict[str, Call]:
    """Functions and methods by name, each with arguments that work; they read the files of ``write_files``."""
    data = write_files()
    train, valid = data[:8], data[8:]
    groups = np.array(["a", "b"])[np.arange(data.num_items) % 2]
    X, y, qid = data.features, data.labels, data.query_ids[data.query_of_item]
    weights = np.ones(data.num_items)
    frame = polars.DataFrame(
        {"qid": qid, "label": y, "x": X[:, 0], "id": np.arange(data.num_items).astype(str), "g": groups}
    )
    texts = rp.from_texts(["what is tea", "and milk"], [["a drink", "a car"], ["white", "a drink"]], [[1, 0], [0, 1]])
    linear = rp.Regression(model="linear").fit(data)
    trees = rp.LambdaMART(num_trees=2, min_items_in_leaf=1).fit(data)
    network = rp.PGRank(epochs=1, num_networks=1, model=rp.models.MLP(hidden=(2,))).fit(data, progress=False)
    reader = rp.BanditRank(epochs=1, model=rp.models.MCAN(recurrent=2, hidden=(2,), embedding_size=2)).fit(
        texts, progress=False
    )
    clicked = rp.read_click_table("table.csv")
    small = rp.models.MatchingCross(hidden=(2,), embedding_size=2, num_buckets=16)
    matching = rp.MatchingCross(epochs=1, model=small).fit(clicked, progress=False)
    log = rp.clicks.log_from_lists(
        queries=["q"] * 4, items=[["a", "b"], ["b", "a"]] * 2, clicks=[[1, 0], [0, 1], [0, 0], [1, 1]]
    )
    bias = rp.estimate_position_bias(log, num_resamples=2)
    bias.save("bias.json")
    click_model = rp.fit_click_model("pbm", log)
    table = rp.evaluate(linear, data)
    bandit = BANDITS["cascade-kl-ucb"](num_items=5, cutoff=2)
    contextual = BANDITS["cascade-lin-ucb"](num_items=5, cutoff=2, features=np.eye(5))
    nobody = httpx.MockTransport(lambda request: httpx.Response(200, json={"policies": []}))
    client = rp.Client("http://service", attempts=1, transport=nobody)
    by_query = rp.bandits.QueryBandit(bandit="cascade-ts", cutoff=2)
    user = cascade_user([0.5, 0.3, 0.2])
    problem = stationary(user, 2)
    simulated = rp.simulation.simulate(["random"], problem, num_steps=5, num_runs=1)
    logged = OffPolicyLog(
        items=np.array([[0], [1]], np.int32),
        rewards=np.array([[1.0], [0.0]]),
        contexts=np.zeros(2, np.int64),
        propensities=np.full((2, 1), 0.5),
    )
    shown_items = rp.data.from_arrays(np.eye(2), qid=["q", "q"], item_ids=["a", "b"])
    target = TargetProbabilities(steps=np.full((2, 1), 0.5))
    relevance = np.array([[0.9, 0.5, 0.1]])
    fold = rp.data.Fold(name="one", train=train, valid=valid, test=valid)
    folder: dict[str, Any] = {
        "qid": "qid",
        "label": "label",
        "features": None,
        "item_id": None,
        "protected": None,
        "ignore": (),
    }
    fit: dict[str, Any] = {
        "X": X, "y": y, "qid": qid, "group": None, "protected": None, "sample_weight": weights, "valid": None, "eval_set": [(X, y)],
        "eval_qid": [qid], "eval_group": None, "eval_names": ["one"], "init": None, "callbacks": [lambda progress: None], "verbose": False,
        "progress": False, "checkpoint": None, "resume": False,
    }  # fmt: skip
    ranked: dict[str, Any] = {"X": X, "qid": qid, "group": None, "protected": None}
    quick: dict[str, Any] = {"epochs": 1, "num_networks": 1, "model": "linear"}
    cut = rp.QueryKFold(3)
    found: dict[str, Call] = {
        "make_web_search": _call(
            rp.make_web_search, num_queries=3, items_per_query=(2, 3), num_features=8, random_state=0
        ),
        "make_ranking": _call(
            rp.data.make_ranking,
            num_queries=3,
            items_per_query=(2, 3),
            num_features=4,
            num_informative=3,
            effects="interacting",
            noise=0.5,
            num_grades=3,
            relevant_share=0.3,
            query_shift=0.1,
            random_state=0,
        ),
        "make_fair_synthetic": _call(
            rp.data.make_fair_synthetic, num_queries=3, num_items=4, minority_share=0.2, random_state=0
        ),
        "make_shop": _call(rp.data.make_shop, num_products=40, num_queries=3, num_sessions=4, random_state=0),
        "scores_of_run": _call(rp.data.scores_of_run, run=_run_of(data), dataset=data, name="x"),
        "from_arrays": _call(rp.from_arrays, features=X, labels=y, qid=qid, feature_names=None, label_kind="grades"),
        "from_arrays by group": _call(
            rp.from_arrays, features=X, labels=y, group=data.sizes, item_ids=None, protected=groups
        ),
        "from_frame": (
            rp.from_frame,
            {"frame": frame, **folder, "features": ["x"], "item_id": "id", "protected": "g", "text_is": "error"},
        ),
        "from_texts": _call(
            rp.from_texts, queries=["a"], items=[["b", "c"]], labels=[[0, 1]], query_ids=["q"], item_ids=[["x", "y"]]
        ),
        "from_click_table": _call(
            rp.data.from_click_table,
            frame=polars.read_csv("table.csv"),
            columns=None,
            side=None,
            categories=(),
            needs_clicks=True,
        ),
        "read_letor": _call(rp.read_letor, path="data.txt", num_features=8),
        "read_parquet": _call(rp.read_parquet, path="data.parquet", **folder),
        "scan_letor": _call(rp.data.scan_letor, path="data.txt", num_features=8, cache="cache", progress=False),
        "scan_parquet": _call(rp.data.scan_parquet, path="data.parquet", cache="cache", progress=False),
        "read_csv": _call(rp.data.read_csv, path="data.csv", **folder),
        "read_dataset": _call(
            rp.data.read_dataset,
            path="data.csv",
            num_features=None,
            feature_names=None,
            needs_labels=True,
            qid="qid",
            label="label",
            protected=None,
            ignore=(),
        ),
        "read_click_log": _call(rp.read_click_log, path="log.csv", format=None, columns=None, lenient=False),
        "read_off_policy_log": _call(
            rp.off_policy.read_off_policy_log, source="logged.csv", dataset=shown_items, columns=None
        ),
        "scan_click_log": _call(
            rp.clicks.scan_click_log, path="log.parquet", columns=None, lenient=False, executor=None
        ),
        "read_click_table": _call(
            rp.read_click_table, path="table.csv", columns=None, side=None, categories=(), needs_clicks=True
        ),
        "read_question_answering": _call(rp.data.read_question_answering, path="qa.jsonl"),
        "read_qrels": _call(rp.data.read_qrels, path="qrels.txt"),
        "read_run": _call(rp.data.read_run, path="run.trec"),
        "read_position_bias": _call(rp.clicks.read_position_bias, path="bias.json", method=None),
        "read_folds": _call(rp.data.read_folds, directory="folds"),
        "load": _call(rp.load, path="model.rp", model=None),
        "write_letor": _call(rp.data.write_letor, dataset=data, path="written.txt"),
        "write_parquet": _call(rp.data.write_parquet, dataset=data, path="written.parquet"),
        "write_qrels": _call(rp.data.write_qrels, dataset=data, path="written.qrels"),
        "write_run": _call(
            rp.data.write_run, dataset=data, scores=np.zeros(data.num_items), path="written.run", tag="t"
        ),
        "to_frame": _call(rp.data.to_frame, dataset=data),
        "tokenize": _call(rp.data.tokenize, text="a word"),
        "split_queries": _call(rp.split_queries, dataset=data, fractions=(0.5, 0.5), random_state=0),
        "split_by_time": _call(rp.split_by_time, dataset=_timed(), fractions=(0.5, 0.5)),
        "k_fold": _call(lambda **a: list(rp.data.k_fold(**a)), dataset=data, num_folds=3, random_state=0),
        "QueryKFold": _call(rp.QueryKFold, n_splits=3, shuffle=True, random_state=0),
        "QueryKFold.split": _call(lambda **a: list(cut.split(**a)), X=X, y=y, groups=None, qid=qid),
        "concatenate": _call(rp.data.concatenate, datasets=[data, data]),
        "dataset[]": _call(lambda queries: data[queries], queries=[0, 1]),
        "dataset.has_relevant_items": _call(data.has_relevant_items, relevant_from=1.0),
        "dataset.drop_queries": _call(data.drop_queries_without_relevant_items, relevant_from=1.0),
        "dataset.in_query_order": _call(data.in_query_order, values=weights),
        "dataset.in_row_order": _call(data.in_row_order, values=weights),
        "evaluate": _call(
            rp.evaluate, ranker_or_scores=linear, dataset=data, metrics="ndcg@10", conventions=rp.Conventions()
        ),
        "evaluate scores": _call(rp.evaluate, ranker_or_scores=np.zeros(data.num_items), dataset=data, metrics=["map"]),
        "table.confidence_interval": _call(
            table.confidence_interval, metric="map", level=0.95, num_resamples=20, random_state=0
        ),
        "table[]": _call(lambda metric: table[metric], metric="map"),
        "table.to_dict": _call(table.to_dict, per_query=True),
        "compare_tables": _call(
            rp.evaluation.compare_tables, tables={"a": table, "b": table}, tests=["t-test"], random_state=0
        ),
        "bootstrap_interval": _call(
            rp.evaluation.bootstrap_interval,
            values=np.arange(4.0),
            query_weights=None,
            level=0.9,
            num_resamples=20,
            random_state=0,
        ),
        "fisher_randomization": _call(
            rp.evaluation.fisher_randomization, a=[1.0, 2.0], b=[0.0, 1.0], random_state=0, num_flips=20
        ),
        "paired_t_test": _call(rp.evaluation.paired_t_test, a=[1.0, 2.5], b=[0.0, 1.0]),
        "wilcoxon_signed_rank": _call(rp.evaluation.wilcoxon_signed_rank, a=[1.0, 2.5], b=[0.0, 1.0]),
        "holm": _call(rp.evaluation.holm, p_values=[0.1, 0.2]),
        "upper_mean": _call(rp.evaluation.upper_mean, values=[0.0, 0.5, 0.25], highest=1.0, level=0.95),
        "parse_metric": _call(rp.metrics.parse_metric, text="mean(ap, ndcg@3)", conventions=rp.Conventions()),
        "parse_metrics": _call(rp.metrics.parse_metrics, text="ap, ndcg@3"),
        "metric_named": _call(rp.metrics.metric_named, name="ap"),
        "as_reward": _call(rp.metrics.as_reward, value="ap"),
        "reward_to_maximise": _call(rp.metrics.reward_to_maximise, value="ap"),
        "fit dataset": _call(rp.Regression(model="linear").fit, X=train, valid=valid),
        "fit arrays": (rp.PGRank(**quick).fit, fit),
        "fit by group": _call(
            rp.ListNet(**quick).fit,
            X=X,
            y=y,
            group=data.sizes,
            eval_set=[(X, y)],
            eval_group=[data.sizes],
            checkpoint=None,
            resume=False,
        ),
        "fit trees": (rp.LambdaMART(num_trees=2, min_items_in_leaf=1).fit, fit),
        "fit linear": (rp.RankSVM().fit, fit),
        "fit fair": _call(rp.FairPGRank(epochs=1).fit, X=data, protected=groups, progress=False),
        "fit from init": _call(rp.LambdaMART(num_trees=2, min_items_in_leaf=1).fit, X=data, init=trees),
        "fit network from init": _call(
            rp.PGRank(epochs=1, num_networks=1, model=rp.models.MLP(hidden=(2,))).fit,
            X=data,
            init=network,
            progress=False,
        ),
        "predict": (network.predict, ranked),
        "predict by trees": (trees.predict, ranked),
        "predict one row": _call(network.predict, X=X),
        "rank": _call(network.rank, X=X, group=data.sizes),
        "score": _call(linear.score, X=X, y=y, qid=qid, sample_weight=weights),
        "sample": _call(network.sample, **ranked, num_samples=2, random_state=0),
        "exposure": _call(network.exposure, X=data, rank_weights=[1.0, 0.5], cutoff=2),
        "policy": _call(network.policy, X=data),
        "rank_texts": _call(reader.rank_texts, query="tea", items=["a", "b"]),
        "onnx_inputs": _call(matching.onnx_inputs, X=clicked),
        "predict click table": _call(matching.predict, X=polars.read_csv("table.csv")),
        "ranker.save": _call(linear.save, path="saved.rp"),
        "ranker.export_onnx": _call(linear.export_onnx, path="saved.onnx"),
        "ranker.onnx_inputs": _call(linear.onnx_inputs, X=X, qid=None, group=None),
        "ranker.explain": _call(
            linear.explain,
            data=data,
            query=str(data.query_ids[0]),
            item=None,
            over=None,
            of="score",
            background=None,
            num_samples=2,
            random_state=0,
        ),
        "ranker.feature_importance": _call(
            linear.feature_importance,
            data=data,
            method="permutation",
            metric="ndcg@10",
            num_repeats=1,
            level=0.9,
            random_state=0,
        ),
        "ranker.get_params": _call(linear.get_params, deep=True),
        "ranker.set_params": _call(
            lambda **a: rp.PGRank().set_params(**a), epochs=2, learning_rate=0.1, model__hidden=(2,)
        ),
        "ranker_class_named": _call(rp.rankers.ranker_class_named, name="pg-rank"),
        "as_model": _call(rp.models.as_model, model="mlp"),
        "compare_rankers": _call(
            rp.experiments.compare_rankers,
            folds=[fold],
            methods=["regression"],
            metrics="map",
            tune=False,
            random_state=0,
            progress=False,
            report_fit=None,
        ),
        "fit_best": _call(
            rp.experiments.fit_best,
            ranker_class=rp.Regression,
            settings={"model": "linear"},
            train=train,
            valid=valid,
            max_candidates=1,
            progress=False,
        ),
        "scan_off_policy_log": _call(rp.off_policy.scan_off_policy_log, path="off_policy.parquet", columns=None),
        "distil": _call(
            rp.distil,
            ranker=linear,
            data=data,
            into="trees",
            num_trees=2,
            num_leaves=3,
            learning_rate=0.1,
            random_state=0,
        ),
        "tune": _call(
            rp.tune,
            ranker=rp.Regression(model="linear"),
            space={"scaling": ["standardize", "none"]},
            data=train,
            valid=valid,
            num_trials=2,
            scheduler="asha",
            study=None,
            executor=None,
            random_state=0,
            report_trial=None,
            progress=False,
        ),
        "Between": _call(rp.experiments.Between, low=1, high=2, log=False),
        "default_space": _call(rp.experiments.default_space, ranker=rp.LambdaMART()),
        "fit_best_of": _call(
            rp.experiments.fit_best_of,
            ranker_class=rp.Regression,
            candidates=[{"model": "linear"}],
            train=train,
            valid=valid,
            progress=False,
        ),
        "fit_best_mix": _call(
            rp.experiments.fit_best_mix,
            ranker_class=rp.PGRank,
            settings=quick,
            train=train,
            valid=valid,
            metrics=["map", "ndcg@10"],
            denominator=1,
            progress=False,
        ),
        "settings_to_try": _call(rp.experiments.settings_to_try, ranker_class=rp.PGRank, settings={}),
        "methods_to_run": _call(rp.experiments.methods_to_run, methods=["pg-rank"]),
        "reward_mixes": _call(rp.experiments.reward_mixes, metrics=["map", "ndcg@10"], denominator=2),
        "hypervolume": _call(
            rp.experiments.hypervolume,
            points=[rp.experiments.UtilityDisparity(0.5, 0.1)],
            reference=rp.experiments.UtilityDisparity(0.0, 1.0),
        ),
        "on_pareto_front": _call(rp.experiments.on_pareto_front, points=[rp.experiments.UtilityDisparity(0.5, 0.1)]),
        "sweep_tradeoff": _call(
            rp.experiments.sweep_tradeoff,
            train=rp.data.make_fair_synthetic(4),
            test=rp.data.make_fair_synthetic(4),
            methods=["fair-lp"],
            strengths=[0.0],
            seeds=(0,),
            reward="ndcg",
            fairness="group",
            executor="serial",
        ),
        "fit_click_model": _call(
            rp.fit_click_model, name="pbm", log=log, prior=(1.0, 1.0), iterations=5, tolerance=1e-06
        ),
        "ClickFitSettings": _call(
            rp.clicks.ClickFitSettings, model="pbm", prior=(1.0, 1.0), iterations=5, tolerance=1e-06
        ),
        "compare_click_models": _call(
            rp.clicks.compare_click_models,
            names=["pbm"],
            train=log,
            test=log,
            prior=(1.0, 1.0),
            iterations=5,
            tolerance=1e-06,
        ),
        "estimate_position_bias": _call(
            rp.estimate_position_bias,
            log=log,
            method="all-pairs",
            segments=None,
            resample=None,
            num_resamples=2,
            level=0.9,
            random_state=0,
        ),
        "log_from_lists": _call(
            rp.clicks.log_from_lists, queries=["q"], items=[["a", "b"]], clicks=[[1, 0]], counts=[2]
        ),
        "ips_weights": _call(rp.clicks.ips_weights, clicks=log, propensities=bias, by="item", clip=None),
        "make_biased_log": _call(
            rp.clicks.make_biased_log,
            num_sessions=5,
            propensities=np.array([1.0, 0.5]),
            relevance=relevance,
            traffic="random",
            num_rankers=2,
            random_state=0,
        ),
        "judgments_of": _call(rp.clicks.judgments_of, model=click_model, name=None, max_rating=100.0),
        "make_click_model": _call(
            rp.clicks.make_click_model, name="pbm", num_queries=2, num_items=3, num_positions=2, random_state=0
        ),
        "make_click_log": _call(
            rp.clicks.make_click_log,
            model=rp.clicks.make_click_model("pbm", random_state=0),
            num_sessions=4,
            num_positions=3,
            random_state=0,
        ),
        "pair_counts": _call(rp.clicks.pair_counts, log=log),
        "click_log_of": _call(rp.clicks.click_log_of, dataset=_timed()),
        "one_click_each": _call(rp.clicks.one_click_each, dataset=clicked),
        "weighted_by_propensity": _call(
            rp.weighted_by_propensity, dataset=_timed(), propensities=[1.0, 0.5], by="query", clip=None
        ),
        "dataset_from_clicks": _call(
            rp.dataset_from_clicks,
            dataset=_of_log(),
            clicks=log,
            propensities=bias,
            by="item",
            clip=None,
            trust=None,
            predicted=None,
        ),
        "log.split": _call(log.split, test_fraction=0.5),
        "log.of_query": _call(log.of_query, name="q"),
        "log.with_clicks": _call(log.with_clicks, clicks=log.clicks),
        "bias.of_segments": _call(
            rp.estimate_position_bias(
                log, method="randomised-by-segment", segments=["a"] * len(log.queries), num_resamples=2
            ).of_segments,
            segments=["a"],
        ),
        "bias.save": _call(bias.save, path="saved.json"),
        "bias.from_dict": _call(type(bias).from_dict, document=bias.to_dict()),
        "click_model.sample": _call(click_model.sample, query="q", items=["a", "b"], num_samples=2, random_state=0),
        "click_model.sample_clicks": _call(click_model.sample_clicks, log=log, random_state=0),
        "click_model.perplexity": _call(click_model.perplexity, log=log),
        "click_model.log_likelihood": _call(click_model.log_likelihood, log=log),
        "click_model.click_probabilities": _call(click_model.click_probabilities, log=log),
        "click_model.pair_values": _call(click_model.pair_values, name="attraction", query="q", items=["a"]),
        "click_model.user_of": _call(click_model.user_of, query="q", items=["a"]),
        "click_model.save": _call(click_model.save, path="clicks.json"),
        "click_model.from_dict": _call(type(click_model).from_dict, document=click_model.to_dict()),
        "bandit.rank": _call(bandit.rank, available=[0, 1, 2]),
        "bandit.learn": _call(bandit.learn, ranking=[0, 1], clicks=[1, 0]),
        "bandit.learn_log": _call(bandit.learn_log, rankings=[[0, 1]], clicks=[[1, 0]]),
        "bandit.forget_items": _call(bandit.forget_items, items=[0]),
        "bandit.save": _call(bandit.save, path="bandit.rp"),
        "bandit.from_dict": _call(type(bandit).from_dict, document=bandit.to_dict()),
        "bandit.add_items": _call(
            lambda **a: BANDITS["cascade-kl-ucb"](num_items=5, cutoff=2).add_items(**a), count=1, features=None
        ),
        "bandit.set_features": _call(contextual.set_features, features=np.eye(5)),
        "contextual.add_items": _call(
            lambda **a: BANDITS["cascade-lin-ucb"](num_items=5, cutoff=2, features=np.eye(5)).add_items(**a),
            count=1,
            features=np.ones((1, 5)),
        ),
        "random.propensities": _call(
            BANDITS["random"](num_items=5, cutoff=2).propensities, ranking=[0, 1], available=[0, 1, 2]
        ),
        "QueryBandit": _call(
            rp.bandits.QueryBandit, bandit="cascade-ts", cutoff=2, random_state=0, bandit_settings={"prior_clicks": 1.0}
        ),
        "query_bandit.rank": _call(by_query.rank, query="q", items=["a", "b", "c"], cutoff=1),
        "query_bandit.propensities": _call(
            rp.bandits.QueryBandit(bandit="random", cutoff=2).propensities, query="q", ranking=["b"], items=["a", "b"]
        ),
        "Client": _call(rp.Client, url="http://service", key="rp_key", timeout=1.0, attempts=1, transport=None),
        "client.rank": _call(
            client.rank,
            query="q",
            items=["a", {"id": "b"}],
            cutoff=1,
            policy=None,
            user="u",
            context={"a": 1},
            ranking_id="r",
        ),
        "client.click": _call(client.click, shown={"ranking_id": "r"}, item="a"),
        "client.event": _call(client.event, shown="r", item="a", type="view", value=1.5),
        "client.events": _call(client.events, events=[{"ranking_id": "r", "item": "a", "type": "click"}]),
        "client.ranking": _call(client.ranking, ranking_id="r"),
        "client.policies": _call(client.policies),
        "ServiceConfig": _call(
            rp.service.ServiceConfig, **_defaults(rp.service.ServiceConfig) | {"policies": {"a": {"kind": "given"}}}
        ),
        "read_config": _call(rp.service.read_config, path="service.toml"),
        "query_bandit.learn": _call(by_query.learn, query="q", ranking=["a", "b"], clicks=[1, 0]),
        "query_bandit.learn_log": _call(by_query.learn_log, queries=["q"], rankings=[["a", "b"]], clicks=[[1, 0]]),
        "query_bandit.counts_of": _call(by_query.counts_of, query="q", items=["a"]),
        "kl_ucb": _call(rp.bandits.kl_ucb, means=[0.1, 0.2], divergences=[0.5, 0.5]),
        "cascade_user": _call(cascade_user, attraction=[0.5, 0.2]),
        "dcm_user": _call(rp.simulation.dcm_user, attraction=[0.5, 0.2], termination=[0.5, 0.5]),
        "pbm_user": _call(rp.simulation.pbm_user, attraction=[0.5, 0.2], examination=[1.0, 0.5]),
        "ubm_user": _call(rp.simulation.ubm_user, attraction=[0.5, 0.2], examination=np.full((2, 3), 0.5)),
        "ccm_user": _call(rp.simulation.ccm_user, attraction=[0.5, 0.2], continuation=(0.9, 0.7, 0.3)),
        "dbn_user": _call(rp.simulation.dbn_user, attraction=[0.5, 0.2], satisfaction=[0.5, 0.2], continuation=0.9),
        "sdbn_user": _call(rp.simulation.sdbn_user, attraction=[0.5, 0.2], satisfaction=[0.5, 0.2]),
        "random_user": _call(rp.simulation.random_user, kind="dcm", num_items=4, cutoff=2, random_state=0),
        "stationary": _call(stationary, user=user, cutoff=2, name=""),
        "best_list": _call(rp.simulation.best_list, user=user, available=np.arange(3), cutoff=2),
        "expected_reward": _call(rp.simulation.expected_reward, user=user, ranking=[0, 1]),
        "abrupt_drift": _call(rp.simulation.abrupt_drift, problem=problem, attraction=[0.1, 0.2, 0.3], at=3),
        "gradual_drift": _call(
            rp.simulation.gradual_drift, problem=problem, attraction=[0.1, 0.2, 0.3], start=2, end=5, num_changes=2
        ),
        "change_items": _call(rp.simulation.change_items, problem=problem, available=[0, 1], at=3),
        "cascade_lower_bound_problem": _call(
            rp.simulation.cascade_lower_bound_problem, num_items=4, cutoff=2, best=0.2, gap=0.1
        ),
        "dcm_lower_bound_problem": _call(
            rp.simulation.dcm_lower_bound_problem, num_items=4, cutoff=2, best=0.2, gap=0.1, termination=0.5
        ),
        "linear_dcm_problem": _call(
            rp.simulation.linear_dcm_problem,
            num_items=4,
            num_features=2,
            cutoff=2,
            mean=0.2,
            spread=0.1,
            termination=0.5,
            random_state=0,
        ),
        "log_spaced_steps": _call(rp.simulation.log_spaced_steps, num_steps=100, num_points=5),
        "lower_bound": _call(rp.simulation.lower_bound, problem=problem, steps=[1, 10]),
        "cascade_bound": _call(rp.simulation.cascade_bound, attraction=[0.5, 0.3, 0.2], steps=[10], num_shown=2),
        "measure_directness": _call(
            rp.experiments.measure_directness,
            ranker_or_scores=linear,
            dataset=data,
            reward="ndcg@10",
            num_samples=2,
            reference_samples=2,
            sigma=1.0,
            random_state=0,
        ),
        "upper_bound": _call(rp.simulation.upper_bound, problem=problem, steps=[1, 10]),
        "Threads": _call(rp.executors.Threads, jobs=1),
        "Processes": _call(rp.executors.Processes, jobs=1, retries=1),
        "Ray": _call(rp.executors.Ray, jobs=1, address="10.0.0.5:6379", retries=1),
        "make_executor": _call(rp.executors.make_executor, name="ray", jobs=1, address=None),
        "simulate": _call(
            rp.simulation.simulate,
            bandits=["random"],
            problem=problem,
            num_steps=5,
            num_runs=1,
            random_state=0,
            steps=None,
            free_observations=True,
        ),
        "robustness_matrix": _call(
            rp.simulation.robustness_matrix,
            bandits=["random"],
            users=["dcm"],
            num_items=4,
            cutoff=2,
            num_steps=4,
            num_runs=1,
        ),
        "mean_over_problems": _call(rp.simulation.mean_over_problems, simulations=[simulated]),
        "simulation.mean": _call(simulated.mean, bandit="random"),
        "estimate_policy_value": _call(
            rp.estimate_policy_value, log=logged, policy=target, estimator="rips", position_weights=None, clip=None
        ),
        "Conventions": (rp.Conventions, _defaults(rp.Conventions)),
    }
    for name, ranker in RANKERS.items():
        found[f"{name}()"] = (ranker, _defaults(ranker))
        if name not in ("matching-cross", "fair-lp"):
            own = _small(ranker)
            changeable = {key: value for key, value in (_defaults(ranker) | own).items() if key not in _SIZES}
            on = rp.from_arrays(X, (y > 0).astype(float), qid=qid, protected=groups)
            found[f"{name}.fit"] = (_fitted(ranker, own, on), changeable)
    for name in MODELS:
        found[f"model {name}"] = (MODELS[name], _defaults(MODELS[name]))
    for name in BANDITS:
        more = {"features": np.eye(4)} if "-lin-" in name else {}
        found[f"bandit {name}"] = (
            _first_list(BANDITS[name]),
            {**_defaults(BANDITS[name]), "num_items": 4, "cutoff": 2, **more},
        )
    for name, online_ranker in ONLINE_RANKERS.items():
        found[f"online {name}"] = (
            _first_lists(online_ranker),
            {**_defaults(online_ranker), "num_features": 2, "cutoff": 2},
        )
    for name in INDICES:
        found[f"index {name}"] = (INDICES[name], _defaults(INDICES[name]))
    for name in CLICK_MODELS:
        found[f"click model {name}"] = (rp.fit_click_model, {"name": name, "log": log, "prior": (1.0, 1.0)})
    return {name: call for name, call in found.items() if call[1]}


def _call(function: Callable[..., Any], /, **arguments: Any) -> Call:
    return function, arguments


def not_called(found: dict[str, Call]) -> set[str]:
    """Public names that neither the calls nor the list of exceptions hold."""
    of_tables = {
        value.__name__ for table in (RANKERS, MODELS, BANDITS, INDICES, ONLINE_RANKERS) for value in table.values()
    }
    exceptions = {name for names in NOT_CALLED.values() for name in names}
    return set(public_callables()) - of_tables - exceptions - set(found)


def _defaults(cls: Any) -> dict[str, Any]:
    """The settings of a class at their defaults; those that must be given are left out."""
    parameters = inspect.signature(cls).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def _small(ranker: Any) -> dict[str, Any]:
    """Settings with which a ranker is trained in a moment."""
    wanted: dict[str, Any] = {
        "epochs": 1, "num_networks": 1, "num_trees": 2, "min_items_in_leaf": 1, "rounds": 2, "restarts": 1,
        "protected_group": "b",
    }  # fmt: skip
    if _defaults(ranker).get("model") == "mlp":
        wanted["model"] = rp.models.MLP(hidden=(2,))
    return {name: value for name, value in wanted.items() if name in ranker.setting_names()}


def _fitted(ranker: Any, own: dict[str, Any], data: rp.RankingDataset) -> Callable[..., Any]:
    return lambda **settings: ranker(**(own | settings)).fit(data, progress=False).predict(data)


def _first_list(bandit: Any) -> Callable[..., Any]:
    return lambda **settings: bandit(**settings).rank()


def _first_lists(online_ranker: Any) -> Callable[..., Any]:
    return lambda **settings: online_ranker(**settings).rank(np.ones((1, 3, 2)))


def _timed() -> rp.RankingDataset:
    """A click table whose lists have ranks and times."""
    frame = polars.DataFrame(
        {"query_text": ["tea"] * 4, "item_text": ["pot", "cup"] * 2, "clicked": [1, 0, 0, 1], "position": [1, 2] * 2}
        | {"session": ["s", "s", "t", "t"], "timestamp": [1, 1, 2, 2]}
    )
    return rp.data.from_click_table(frame)


def _of_log() -> rp.RankingDataset:
    return rp.from_arrays(np.array([[0.5], [0.1]]), qid=["q", "q"], item_ids=["a", "b"])
