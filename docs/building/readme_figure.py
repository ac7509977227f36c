"""The figure of the README and the words under it, from a kept result: python -m docs.building.readme_figure"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproductions.results import read_result

FILE = Path(__file__).parents[1] / "assets" / "fair-exposure.svg"
TARGET, PANEL = "fair-pg-rank/figure1", "linear, without the group"
UNIFORM, BEST = "uniform random policy", "FairExposure"
NOT_COMPARED = {
    "FairExposure, two-sided": "aims at another disparity than the one drawn",
    "FairPGRank, price, REINFORCE, twice the epochs": "one point, to see that the curve of REINFORCE has converged",
}
Points = list[tuple[float, float]]


def series() -> dict[str, Points]:
    """(disparity, utility) of every method of the panel, in the order of its settings."""
    result = read_result(TARGET)
    if result is None:
        raise SystemExit(f"there is no kept result of {TARGET}")
    curves: dict[str, Points] = {}
    for row in result.rows:
        if row["panel"] == PANEL and row["method"] not in NOT_COMPARED:
            curves.setdefault(row["method"], []).append((row["disparity"], row["utility"]))
    return curves


def caption() -> str:
    """What the figure shows, in words: who reaches no disparity and with what NDCG, and how fair the others get."""
    curves = {method: points for method, points in series().items() if method != UNIFORM}
    fair = {
        method: max(utility for disparity, utility in points if disparity == 0)  # to the six decimals that are kept
        for method, points in curves.items()
        if any(disparity == 0 for disparity, _ in points)
    }
    rest = {method: min(points) for method, points in curves.items() if method not in fair}
    highest = sorted(fair.items(), key=lambda item: -item[1])
    reached = ", ".join(f"{method} {utility:.4f}" for method, utility in highest)
    fairest = "; ".join(
        f"{method} {disparity:.4f} at {utility:.4f}"
        for method, (disparity, utility) in sorted(rest.items(), key=lambda item: item[1])
    )
    return f"NDCG without any disparity: {reached}. The least disparity of the others, and their NDCG there: {fairest}."


def drawn() -> Any:
    """All points on the left, those with the highest utility enlarged on the right."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from rankpolicy.reports.figures import MARKERS, PALETTE, STYLE

    curves = series()
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": "readme", "svg.fonttype": "path"}):
        figure, (everything, enlarged) = plt.subplots(1, 2, figsize=(9, 4), facecolor="white", layout="constrained")
        lines = [name for name in curves if name != UNIFORM]
        for number, name in enumerate(sorted(lines, key=lambda name: name != BEST)):
            x, y = zip(*curves[name], strict=True)
            for axes in (everything, enlarged):
                axes.plot(
                    x,
                    y,
                    marker=MARKERS[number % len(MARKERS)],
                    markersize=4,
                    linestyle="-" if number < len(PALETTE) else "--",
                    linewidth=2.4 if name == BEST else 1.2,
                    color=PALETTE[number % len(PALETTE)],
                    label=name,
                )
        for axes in (everything, enlarged):
            axes.plot(*zip(*curves[UNIFORM], strict=True), "x", color="black", label=UNIFORM)
            axes.set_xlabel("group disparity of exposure, new queries")
        everything.set(ylabel="expected NDCG")
        everything.text(0.0, 1.02, "all points", transform=everything.transAxes)
        enlarged.text(0.0, 1.02, "enlarged", transform=enlarged.transAxes)
        enlarged.set(xlim=(-0.0004, 0.0145), ylim=(0.975, 0.993))
        figure.legend(*everything.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
        return figure


def draw(file: Path = FILE) -> None:
    """Write the figure.

    Parameters
    ----------
    file
        Where the figure goes.
    """
    import matplotlib.pyplot as plt

    figure = drawn()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    draw()
    print(caption())
