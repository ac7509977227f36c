"""rankpolicy distil

Parameters
----------
data
    Items to learn the scores on, such as the training data: LETOR text, .csv or .parquet of features. Labels are not read.
out
    The file of the new model, such as trees.rp.
num_trees
    How many trees to grow. More are closer and slower.

Examples
--------
rankpolicy distil model.rp --data train.txt --out trees.rp
rankpolicy export trees.rp --format opensearch --out model.json
"""

from __future__ import annotations

from pathlib import Path

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import check_can_write, print_json, show


def distil(
    model: options.Model,
    *,
    data: Path,
    out: Path,
    num_trees: int = 300,
    columns: options.ColumnsOnDisk,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Make one ensemble of trees that scores as a model does, for search engines and other programs that compute trees."""
    import numpy as np

    from rankpolicy.rankers.distillation import distil as distil_ranker

    check_can_write(out, option="--out", inputs={"the model": model, "--data": data})
    ranker = options.load_ranker(model)
    dataset = columns.read_for(ranker, data, needs_labels=False)
    trees = distil_ranker(ranker, dataset, num_trees=num_trees, random_state=seed)
    trees.save(out)
    correlation = float(np.corrcoef(ranker.predict(dataset), trees.predict(dataset))[0, 1])
    if as_json:
        described = {"model": str(model), "method": ranker.name, "out": str(out), "trees": trees.best_iteration_}
        print_json(described | {"correlation": correlation})
    else:
        show(f"{trees.best_iteration_} trees, correlation with the scores of {ranker.name} {correlation:.4f}: {out}")
