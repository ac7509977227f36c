"""Names that other libraries (LightGBM, XGBoost, scikit-learn) have for settings, and what they are called here, for error messages."""

from __future__ import annotations

_ITERATIONS = ("num_trees", "epochs", "rounds", "max_passes")

# The settings that a familiar name may mean; a ranker has the first of them that is among its settings.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "n_estimators": _ITERATIONS,
    "num_boost_round": _ITERATIONS,
    "num_iterations": _ITERATIONS,
    "n_epochs": _ITERATIONS,
    "max_iter": _ITERATIONS,
    "early_stopping_rounds": ("patience",),
    "early_stopping": ("patience",),
    "n_iter_no_change": ("patience",),
    "eta": ("learning_rate",),
    "lr": ("learning_rate",),
    "max_depth": ("num_leaves",),
    "max_leaves": ("num_leaves",),
    "min_child_samples": ("min_items_in_leaf",),
    "min_data_in_leaf": ("min_items_in_leaf",),
    "subsample": ("bagging_fraction",),
    "colsample_bytree": ("feature_fraction",),
    "reg_lambda": ("l2", "weight_decay"),
    "lambda_l2": ("l2", "weight_decay"),
    "lambdarank_truncation_level": ("truncation",),
    "batch_size": ("batch_queries",),
    "objective": ("reward", "loss"),
    "metric": ("valid_metric", "reward"),
    "eval_metric": ("valid_metric", "reward"),
    "eval_at": ("valid_metric", "reward"),
    "seed": ("random_state",),
    "random_seed": ("random_state",),
    "n_jobs": ("jobs",),
    "num_threads": ("jobs",),
}

# What is said of a familiar name beside, or instead of, the setting it means.
ADVICE: dict[str, str] = {
    "categorical_feature": "give a frame: its columns of categories (pandas .astype('category'), polars .cast(pl.Categorical)) are "
    "recognised",
    "early_stopping_rounds": "training stops early where fit is given validation data",
    "eval_at": "a cutoff is part of the name of a metric, as in 'ndcg@10', and rankpolicy.evaluate measures many",
    "max_depth": "the size of a tree is bounded by its number of leaves",
    "n_jobs": "the environment variable OMP_NUM_THREADS sets the number of threads",
    "num_threads": "the environment variable OMP_NUM_THREADS sets the number of threads",
    "objective": "what is learned is chosen with the ranker: PGRank for any reward, LambdaMART, ListNet, Regression, ...",
    "verbose": "it is an argument of fit: fit(..., verbose=True)",
    "verbosity": "verbose is an argument of fit: fit(..., verbose=True)",
}


def what_is_meant(name: str, settings: tuple[str, ...], *, owner: str | None = None) -> str | None:
    """What a familiar name is called here, as the end of an error message; None for a name that is not familiar.

    >>> what_is_meant("n_estimators", ("num_trees", "learning_rate"))
    "here it is called 'num_trees'"
    """
    setting = next((candidate for candidate in SYNONYMS.get(name, ()) if candidate in settings), None)
    called = None if setting is None else f"here it is called {setting!r}"
    if setting is not None and owner is not None:
        called = f"here it is a setting of the ranker: {owner}({setting}=...)"
    return "; ".join(text for text in (called, ADVICE.get(name)) if text is not None) or None
