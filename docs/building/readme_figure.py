"""The figure of the README, drawn from a kept result: python -m docs.building.readme_figure"""

from __future__ import annotations

from pathlib import Path

from reproductions.results import read_result

FILE = Path(__file__).parents[1] / "assets" / "fair-exposure.svg"
PANEL = "linear, without the group"
SHOWN = {
    "FairExposure": "FairExposure",
    "FairPGRank, price": "FairPGRank",
    "FairLP, price": "FairLP",
    "DELTR, sorted": "DELTR",
}


def draw(file: Path = FILE) -> None:
    """Draw utility against disparity of four methods.

    Parameters
    ----------
    file
        Where the figure goes.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from rankpolicy.reports.figures import PALETTE, STYLE

    result = read_result("fair-pg-rank/figure1")
    if result is None:
        raise SystemExit("there is no kept result of fair-pg-rank/figure1")
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "readme", "svg.fonttype": "path"}):
        figure, axes = plt.subplots(figsize=(7, 3.2), facecolor="white", layout="constrained")
        for colour, (method, name) in zip(PALETTE, SHOWN.items(), strict=False):
            rows = [row for row in result.rows if row["panel"] == PANEL and row["method"] == method]
            points = sorted((float(str(row["disparity"])), float(str(row["utility"]))) for row in rows)
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=name)
        axes.set(
            xlabel="group disparity of exposure on new queries (0 is fair)",
            ylabel="expected NDCG",
            xlim=(-0.0004, 0.0145),
        )
        axes.legend(loc="lower right")
        figure.savefig(file, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    draw()
