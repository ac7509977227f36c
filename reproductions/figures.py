"""The figures on the pages, drawn from kept results with the published values as open circles: python -m reproductions.figures"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproductions.banditrank import table4, table6
from reproductions.cascade.published import TABLE_1
from reproductions.dcm.published import FIGURE_2A, FIGURE_3A, FIGURE_3A_STEPS
from reproductions.fair_pg_rank import methods as by
from reproductions.fair_pg_rank.curves import UNIFORM
from reproductions.fair_pg_rank.figure1 import AUTHORS_RUN
from reproductions.fair_pg_rank.figure3 import PUBLISHED as AUTHORS_CURVE
from reproductions.results import Result, read_result
from reproductions.target import Row

FOLDER = Path(__file__).parent / "figures"
PUBLISHED_STYLE = {
    "marker": "o",
    "linestyle": "none",
    "markerfacecolor": "white",
    "markeredgewidth": 1.6,
    "markersize": 8,
}
Rows = Sequence[Row]


def _panels(number: int = 1, *, width: float = 7.0, height: float = 4.0) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    return figure, list(figure.subplots(1, number, squeeze=False)[0])


def _colours() -> Sequence[str]:
    from rankpolicy.reports.figures import PALETTE

    return PALETTE * 4


def _legend(figure: Any, axes: Any, *, columns: int = 3) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=9)


def _by(rows: Rows, column: str) -> dict[Any, list[Row]]:
    """Rows by the value of a column, in the order in which values come."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row.get(column), []).append(row)
    return found


def _dots(
    axes: Any,
    labels: Sequence[str],
    ours: Sequence[float],
    errors: Sequence[float],
    theirs: Sequence[float | None],
    unit: str,
) -> None:
    """One line per label: ours as a dot with two standard errors, the published value as an open circle."""
    places = list(range(len(labels)))
    colours = _colours()
    known = [(value, place) for place, value in enumerate(theirs) if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), color=colours[1], label="published", **PUBLISHED_STYLE)
    axes.errorbar(
        ours,
        places,
        xerr=[2 * error for error in errors],
        fmt="o",
        markersize=4,
        color=colours[0],
        label="ours, ± 2 standard errors",
    )
    axes.set_yticks(places, labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel(unit)


def _regret_by_cutoff(rows: Rows, published: Mapping[tuple[int, int, float], float], title: str) -> Any:
    """Regret against the number of positions, one line per number of items and gap."""
    figure, [axes] = _panels()
    regrets = {row["cell"]: row for row in rows}
    for colour, (items, gap) in zip(
        _colours(), dict.fromkeys((items, gap) for items, _, gap in published), strict=False
    ):
        cutoffs = [cutoff for of_items, cutoff, of_gap in published if (of_items, of_gap) == (items, gap)]
        own = [regrets[f"L={items} K={cutoff} Δ={gap:g}"] for cutoff in cutoffs]
        axes.errorbar(
            cutoffs,
            [row["regret"] for row in own],
            [2 * row["standard_error"] for row in own],
            marker=".",
            color=colour,
            label=f"L = {items}, Δ = {gap:g}",
        )
        axes.plot(cutoffs, [published[items, cutoff, gap] for cutoff in cutoffs], color=colour, **PUBLISHED_STYLE)
    axes.plot([], [], color="black", label="published", **PUBLISHED_STYLE)
    axes.set(xlabel="positions K", ylabel=f"regret of {title}", xticks=[2, 4, 8])
    axes.set_ylim(bottom=0)
    _legend(figure, axes, columns=4)
    return figure


def dcm_figure2a(result: Result) -> Any:
    return _regret_by_cutoff(result.rows, FIGURE_2A, "dcmKL-UCB")


def cascade_table1(bandit: str) -> Callable[[Result], Any]:
    def draw(result: Result) -> Any:
        published = {cell: of_bandits[bandit].regret for cell, of_bandits in TABLE_1.items()}
        return _regret_by_cutoff([row for row in result.rows if row["bandit"] == bandit], published, bandit)

    return draw


def cascade_table2(result: Result) -> Any:
    figure, panels = _panels(2, width=9)
    for axes, (bandit, rows) in zip(panels, _by(result.rows, "bandit").items(), strict=True):
        places = range(len(rows))
        axes.plot([row["best_first"] for row in rows], places, "s", color=_colours()[1], label="best item first")
        axes.plot([row["regret"] for row in rows], places, "o", color=_colours()[0], label="best item last")
        axes.set_yticks(places, [row["cell"] for row in rows], fontsize=9)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"regret of {bandit.partition(',')[0]}")
    _legend(figure, panels[0])
    return figure


def cascade_second(result: Result) -> Any:
    """Relative to the published value, so that cells of different regret share an axis."""
    figure, [axes] = _panels(height=5.5)
    labels = [f"{row['bandit'].removeprefix('cascade-')}, {row['cell']}" for row in result.rows]
    for offset, name, label in ((-0.15, "package", "the package"), (0.15, "second", "second implementation")):
        axes.errorbar(
            [row[f"{name}_regret"] / row["paper"] for row in result.rows],
            [place + offset for place in range(len(labels))],
            xerr=[2 * row[f"{name}_standard_error"] / row["paper"] for row in result.rows],
            fmt="o",
            markersize=4,
            color=_colours()[0 if name == "package" else 2],
            label=label,
        )
    axes.errorbar(
        [1.0] * len(labels),
        range(len(labels)),
        xerr=[2 * row["paper_standard_error"] / row["paper"] for row in result.rows],
        color=_colours()[1],
        elinewidth=0.8,
        label="published",
        **PUBLISHED_STYLE,
    )
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlabel("regret / published regret, ± 2 standard errors")
    _legend(figure, axes)
    return figure


def dcm_figure2b(result: Result) -> Any:
    figure, [axes] = _panels()
    for colour, cutoff in zip(_colours(), (2, 4, 8), strict=False):
        own = [row for row in result.rows if row["cell"].startswith(f"K={cutoff} ")]
        shares = [float(row["cell"].partition("γ=")[2]) for row in own]
        axes.errorbar(
            shares,
            [row["regret"] for row in own],
            [2 * row["standard_error"] for row in own],
            marker=".",
            color=colour,
            label=f"K = {cutoff}",
        )
        axes.plot(
            shares, [row["lower_bound"] for row in own], ":", color=colour, label=f"K = {cutoff}, bound of Theorem 3"
        )
    axes.set(xlabel="γ, the probability to stop after a click", ylabel="regret of dcmKL-UCB")
    axes.set_ylim(bottom=0)
    _legend(figure, axes)
    return figure


def dcm_figure2c(result: Result) -> Any:
    figure, panels = _panels(2, width=9)
    positions = range(1, 10)  # what follows a click on the last position leaves no trace
    for axes, (suffix, title) in zip(
        panels, (("_last_click", "the last click taken for a stop"), ("", "by EM")), strict=True
    ):
        for colour, row in zip(_colours(), result.rows, strict=False):
            axes.plot(
                positions,
                [row[f"v_{position}{suffix}"] for position in positions],
                marker="o",
                markersize=4,
                color=colour,
                label=row["query"],
            )
            if not suffix:
                low, high = ([row[f"v_{position}_{end}"] for position in positions] for end in ("low", "high"))
                axes.fill_between(positions, low, high, color=colour, alpha=0.12)
        axes.set(xlabel="position", title=title, ylim=(0, 1))
    panels[0].set_ylabel("v, probability to stop after a click")
    _legend(figure, panels[0], columns=5)
    return figure


def _curves_of_bandits(result: Result, published: Mapping[str, Sequence[float]]) -> Any:
    figure, [axes] = _panels()
    lines = {bandit: rows for bandit, rows in _by(result.rows, "bandit").items() if len(rows) > 1}
    for colour, (bandit, rows) in zip(_colours(), lines.items(), strict=False):
        steps = [row["step"] for row in rows]
        axes.plot(steps, [row["regret"] for row in rows], marker=".", color=colour, label=bandit)
        if bandit in published:
            axes.plot(FIGURE_3A_STEPS, published[bandit], color=colour, **PUBLISHED_STYLE)
    axes.plot([], [], color="black", label="published", **PUBLISHED_STYLE)
    axes.set(xlabel="steps", ylabel="regret", xscale="log")
    axes.set_ylim(bottom=0)
    _legend(figure, axes, columns=4)
    return figure


def dcm_figure3a(result: Result) -> Any:
    return _curves_of_bandits(result, FIGURE_3A)


def dcm_figure3b(result: Result) -> Any:
    return _curves_of_bandits(result, {"dcm-kl-ucb": FIGURE_3A["dcm-kl-ucb"]})


def dcm_figure3c(result: Result) -> Any:
    figure, panels = _panels(2, width=9, height=3.2)
    means = [row for row in result.rows if "mean over" in row["cell"]]
    for axes, (cell, rows) in zip(panels, _by(means, "cell").items(), strict=True):
        axes.barh([row["bandit"] for row in rows], [row["regret"] for row in rows], color=_colours()[0])
        axes.invert_yaxis()
        axes.set_xlabel("regret after 10,000 steps")
        axes.set_title(cell, fontsize=10)
    panels[1].set_yticklabels([])
    return figure


def dcm_robustness(result: Result) -> Any:
    figure, [axes] = _panels(height=6.5)
    users, bandits = list(_by(result.rows, "users")), list(_by(result.rows, "bandit"))
    shares = [
        [next(row["share_of_random_regret"] for row in rows if row["users"] == user) for user in users]
        for rows in _by(result.rows, "bandit").values()
    ]
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="viridis_r", aspect="auto")
    axes.set_xticks(range(len(users)), users, rotation=30, ha="right", fontsize=9)
    axes.set_yticks(range(len(bandits)), bandits, fontsize=8)
    axes.grid(visible=False)
    figure.colorbar(image, label="share of the regret of random lists")
    return figure


def _utility_against_disparity(axes: Any, rows: Rows, *, by_authors: bool = False) -> None:
    """One curve per method, with the same colour in every panel."""
    x, y = ("authors_disparity", "authors_utility") if by_authors else ("disparity", "utility")
    for number, name in enumerate((by.OURS, *by.COMPETITORS)):
        points = [row for row in rows if row["method"] == name]
        axes.plot(
            [row[x] for row in points],
            [row[y] for row in points],
            marker=".",
            linestyle="-" if number < 6 else "--",
            linewidth=1.2,
            color=_colours()[number],
            label=name,
        )
    uniform = [row for row in rows if row["method"] == UNIFORM]
    axes.plot([row[x] for row in uniform], [row[y] for row in uniform], "x", color="black", label=UNIFORM)
    axes.locator_params(axis="x", nbins=5)


def fair_figure1(result: Result) -> Any:
    panels = _by(result.rows, "panel")
    shown = [name for name in panels if name.startswith(("linear", "networks"))]
    figure, axes = _panels(len(shown), width=11, height=4.4)
    for place, name in zip(axes, shown, strict=True):
        _utility_against_disparity(place, panels[name])
        place.set(xlabel="group disparity", xlim=(-0.0005, 0.0155), ylim=(0.87, 1.0))
        place.set_title(name, fontsize=10)
    axes[0].set_ylabel("expected NDCG, new queries")
    _legend(figure, axes[0], columns=5)
    return figure


def fair_figure1_authors(result: Result) -> Any:
    rows = [row for row in result.rows if row["panel"].startswith("as the authors")]
    figure, [axes] = _panels(height=3.4)
    _utility_against_disparity(axes, rows, by_authors=True)
    axes.plot(
        AUTHORS_RUN.disparity,
        AUTHORS_RUN.utility,
        color=_colours()[1],
        label="a run of the authors' code",
        **PUBLISHED_STYLE,
    )
    axes.set(xlabel="group disparity by the authors' measure, queries trained on", ylabel="NDCG, their measure")
    _legend(figure, axes)
    return figure


def fair_figure2(result: Result) -> Any:
    figure, panels = _panels(2, width=9)
    for number, ((data, model), rows) in enumerate(
        _by([{**row, "key": (row["data"], row["model"])} for row in result.rows], "key").items()
    ):
        for axes, measure in zip(panels, ("utility", "disparity"), strict=True):
            strengths = [row["strength"] for row in rows]
            axes.plot(
                strengths,
                [row[f"test_{measure}"] for row in rows],
                marker=".",
                color=_colours()[number],
                label=f"{data}, {model}",
            )
            axes.plot(strengths, [row[f"train_{measure}"] for row in rows], ":", color=_colours()[number])
    for axes, label in zip(panels, ("expected NDCG (dotted: training queries)", "individual disparity"), strict=True):
        axes.set_xscale("symlog", linthresh=1)
        axes.set(xlabel="λ", ylabel=label)
    _legend(figure, panels[0], columns=4)
    return figure


def fair_figure3(result: Result) -> Any:
    figure, axes = _panels(2, width=10, height=4.4)
    linear = [row for row in result.rows if row["panel"] == "linear"]
    _utility_against_disparity(axes[0], linear)
    axes[0].set(xlabel="group disparity", ylabel="expected NDCG, new people", xlim=(-0.002, 0.06))
    _utility_against_disparity(axes[1], linear, by_authors=True)
    utility, disparity = AUTHORS_CURVE
    axes[1].plot(disparity, utility, color="black", label="published, read off the figure", **PUBLISHED_STYLE)
    axes[1].set(xlabel="the same by the authors' measure", xlim=(-0.0005, 0.012))
    _legend(figure, axes[1], columns=4)
    return figure


def bandit_table4(result: Result) -> Any:
    rows = [row for row in result.rows if not row["method"].startswith("paper") and "averaged" not in row["method"]]
    theirs = {
        f"{table4.PAPER_1}, γ = 1": table4.PAPER_MCAN,
        f"{table4.PAPER_1}, γ = 0.75": "paper, Scenario 1: γ = 0.75",
        f"{table4.FROZEN_2}, γ = 1": "paper, Scenario 2: BERT-base, γ = 1",
        f"{table4.TUNED_2}, γ = 1": table4.PAPER_BERT,
    }
    figure, [axes] = _panels(width=8, height=4.6)
    published = [table4.PAPER[theirs[row["method"]]]["map"] if row["method"] in theirs else None for row in rows]
    spread = [(row["lowest map"], row["highest map"]) if row.get("lowest map") else (row["map"],) * 2 for row in rows]
    places = range(len(rows))
    axes.plot(
        *zip(*((value, place) for place, value in enumerate(published) if value), strict=True),
        color=_colours()[1],
        label="published, with BERT: base, and large beside the fine-tuned",
        **PUBLISHED_STYLE,
    )
    axes.hlines(places, *zip(*spread, strict=True), color=_colours()[0])
    axes.plot(
        [row["map"] for row in rows],
        places,
        "o",
        markersize=5,
        color=_colours()[0],
        label="ours, lowest to highest seed",
    )
    axes.set_yticks(places, [row["method"] for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("MAP on WikiQA's test questions")
    _legend(figure, axes)
    return figure


def bandit_table6(metric: str) -> Callable[[Result], Any]:
    """Relative to LambdaMART, since the paper's means count empty queries and ours leave them out."""

    def draw(result: Result) -> Any:
        rows = {row["method"]: row for row in result.rows}
        names = [name for name in table6.PAPER if name in rows and name != table6.LAMBDA_MART]
        base, theirs = rows[table6.LAMBDA_MART][metric], table6.PAPER[table6.LAMBDA_MART][metric]
        figure, [axes] = _panels(height=3.2)
        axes.axvline(0, color="black", linewidth=0.8, linestyle=":")
        axes.plot(
            [table6.PAPER[name][metric] - theirs for name in names],
            range(len(names)),
            color=_colours()[1],
            label="published",
            **PUBLISHED_STYLE,
        )
        axes.plot(
            [rows[name][metric] - base for name in names],
            range(len(names)),
            "o",
            markersize=5,
            color=_colours()[0],
            label="ours, means of ten splits",
        )
        axes.set_yticks(range(len(names)), names, fontsize=9)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(f"{metric.upper()} minus that of LambdaMART")
        _legend(figure, axes)
        return figure

    return draw


def bandit_figure1(result: Result) -> Any:
    figure, panels = _panels(2, width=9)
    for axes, metric in zip(panels, ("map", "ndcg@10"), strict=True):
        for colour, row in zip(_colours(), result.rows, strict=False):
            means = [float(mean) for mean in row[f"{metric} by epoch"].split()]
            axes.plot(range(1, len(means) + 1), means, color=colour, label=f"{row['reward']} = {row['expression']}")
        axes.set(xlabel="epoch", ylabel=f"{metric}, test queries")
    _legend(figure, panels[0])
    return figure


def bandit_table2(result: Result) -> Any:
    figure, panels = _panels(2, width=9, height=2.6)
    for axes, (pools, rows) in zip(panels, _by(result.rows, "pools").items(), strict=True):
        axes.hlines(
            range(len(rows)),
            [row["lowest p@1"] for row in rows],
            [row["highest p@1"] for row in rows],
            color=_colours()[0],
        )
        axes.plot([row["p@1"] for row in rows], range(len(rows)), "o", color=_colours()[0])
        axes.set_yticks(
            range(len(rows)), [row["method"] for row in rows] if axes is panels[0] else [""] * len(rows), fontsize=9
        )
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("P@1, lowest to highest seed")
        axes.set_title(pools, fontsize=10)
    return figure


def _counts(rows: Rows, columns: Iterable[str], key: str, pairs: Iterable[tuple[str, str]]) -> Any:
    """Our counts divided by the published ones."""
    by_key = {row[key]: row for row in rows}
    found = [
        (f"{column} {name}".strip() if len(by_key) > 2 else column, by_key[ours][column] / by_key[theirs][column])
        for ours, theirs, name in ((o, t, o) for o, t in pairs)
        for column in columns
    ]
    figure, [axes] = _panels(height=0.9 + 0.3 * len(found))
    axes.plot([1.0] * len(found), range(len(found)), color=_colours()[1], label="published", **PUBLISHED_STYLE)
    axes.plot(
        [ratio for _, ratio in found], range(len(found)), "o", markersize=4, color=_colours()[0], label="counted here"
    )
    axes.set_yticks(range(len(found)), [label for label, _ in found], fontsize=9)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set(xlabel="count / published count", xlim=(0.9, 1.1))
    _legend(figure, axes)
    return figure


def bandit_table3(result: Result) -> Any:
    return _counts(
        result.rows,
        ("questions", "correct answers"),
        "part",
        [(part, f"paper, {part}") for part in ("train", "dev", "test")],
    )


def bandit_table5(result: Result) -> Any:
    columns = [name for name, value in result.rows[1].items() if name != "source" and value is not None]
    return _counts(result.rows, columns, "source", [("counted here", "paper")])


def cross_synthetic(result: Result) -> Any:
    figure, [axes] = _panels(height=2.8)
    _dots(
        axes,
        [row["arm"] for row in result.rows],
        [row["test_accuracy"] for row in result.rows],
        [row["standard_error"] for row in result.rows],
        [None] * len(result.rows),
        "test accuracy after the last epoch",
    )
    _legend(figure, axes)
    return figure


def cross_correction(result: Result) -> Any:
    figure, panels = _panels(2, width=9)
    for axes, eta in zip(panels, (1, 0), strict=True):
        arms = _by([row for row in result.rows if row["eta"] == eta], "arm")
        for colour, (arm, rows) in zip(_colours(), arms.items(), strict=False):
            axes.errorbar(
                [row["clicks"] for row in rows],
                [row["ndcg@10"] for row in rows],
                [2 * row["standard error"] for row in rows],
                marker="o",
                markersize=4,
                color=colour,
                label=arm,
            )
        for style, row in zip(("-", ":"), (row for row in result.rows if row["eta"] is None), strict=False):
            axes.axhline(row["ndcg@10"], color="black", linewidth=0.8, linestyle=style, label=row["arm"])
        axes.set(xscale="log", xlabel="clicks", title=f"η = {eta}" + (", no bias" if eta == 0 else ""))
    panels[0].set_ylabel("NDCG@10 on MQ2007's test queries")
    _legend(figure, panels[0])
    return figure


def cross_clicks(result: Result) -> Any:
    rows = [row for row in result.rows if row["arm"] not in ("best possible (true relevance)",)]
    figure, [axes] = _panels(height=4.6)
    axes.plot([row["true NDCG"] for row in rows], range(len(rows)), "o", color=_colours()[0])
    axes.set_yticks(range(len(rows)), [row["arm"] for row in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("true NDCG, means over logs")
    return figure


def clicks_clara2(result: Result) -> Any:
    extras = ("clicks over expected", "prior")  # variants that no statement is about
    rows = [
        row for row in result.rows if row.get("ndcg") is not None and not any(word in row["method"] for word in extras)
    ]
    figure, [axes] = _panels(height=0.9 + 0.24 * len(rows))
    axes.plot([row["ndcg"] for row in rows], range(len(rows)), "o", color=_colours()[0])
    axes.set_yticks(range(len(rows)), [row["method"] for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("NDCG on human grades")
    return figure


# By target: the name of the file, what it shows, and the function that draws it.
FIGURES: dict[str, dict[str, tuple[str, Callable[[Result], Any]]]] = {
    "fair-pg-rank/figure1": {
        "fair-figure1": ("NDCG against disparity of all methods in three panels", fair_figure1),
        "fair-figure1-authors": (
            "the paper's method by the authors' measure, with a run of their code",
            fair_figure1_authors,
        ),
    },
    "fair-pg-rank/figure2": {"fair-figure2": ("NDCG and individual disparity by λ", fair_figure2)},
    "fair-pg-rank/figure3": {
        "fair-figure3": ("NDCG against disparity on German Credit, with the published point", fair_figure3)
    },
    "banditrank/table2": {"bandit-table2": ("P@1 by share of the reward", bandit_table2)},
    "banditrank/table3": {"bandit-table3": ("counts beside the published ones", bandit_table3)},
    "banditrank/table4": {"bandit-table4": ("MAP with the published values", bandit_table4)},
    "banditrank/table5": {"bandit-table5": ("counts beside the published ones", bandit_table5)},
    "banditrank/table6": {
        f"bandit-table6-{metric.replace('@', '')}": (
            f"{metric} relative to LambdaMART, ours and published",
            bandit_table6(metric),
        )
        for metric in ("map", "p@1")
    },
    "banditrank/figure1": {"bandit-figure1": ("MAP and nDCG@10 by epoch of six rewards", bandit_figure1)},
    "dcm/figure2a": {"dcm-figure2a": ("regret by positions, items and gap, with the published values", dcm_figure2a)},
    "dcm/figure2b": {"dcm-figure2b": ("regret by γ, with the lower bound", dcm_figure2b)},
    "dcm/figure2c": {"dcm-figure2c": ("probability to stop after a click, two estimates", dcm_figure2c)},
    "dcm/figure3a": {"dcm-figure3a": ("regret by step, with the published curves", dcm_figure3a)},
    "dcm/figure3b": {"dcm-figure3b": ("regret by step, with the published curve", dcm_figure3b)},
    "dcm/figure3c": {"dcm-figure3c": ("regret of five bandits on the users of a real log", dcm_figure3c)},
    "dcm/robustness": {"dcm-robustness": ("every bandit against every kind of user", dcm_robustness)},
    "cascade/table1": {
        f"cascade-table1-{bandit.removeprefix('cascade-')}": (
            f"regret of {bandit}, with the printed values",
            cascade_table1(bandit),
        )
        for bandit in ("cascade-ucb1", "cascade-kl-ucb")
    },
    "cascade/table2": {"cascade-table2": ("regret with the best item first and last", cascade_table2)},
    "cascade/second": {"cascade-second": ("two implementations relative to the printed values", cascade_second)},
    "matching-cross/synthetic": {"cross-synthetic": ("test accuracy of five networks", cross_synthetic)},
    "matching-cross/correction": {"cross-correction": ("NDCG@10 by number of clicks", cross_correction)},
    "matching-cross/clicks": {"cross-clicks": ("true NDCG of every network", cross_clicks)},
    "clicks/clara2": {"clicks-clara2": ("NDCG on grades of every way to learn relevance", clicks_clara2)},
}


def figure_of(target: str, name: str) -> Any:
    """A figure, drawn from the kept result of its target."""
    from matplotlib import rc_context

    from rankpolicy.reports.figures import STYLE

    result = read_result(target)
    assert result is not None, f"{target} has figures, so that its result must be kept"
    ink = {key: "black" for key, value in STYLE.items() if value == STYLE["text.color"]}
    with rc_context(STYLE | ink | {"svg.hashsalt": name, "svg.fonttype": "path"}):
        return FIGURES[target][name][1](result)


def main() -> None:
    from matplotlib import rc_context

    FOLDER.mkdir(exist_ok=True)
    for target, figures in FIGURES.items():
        for name in figures:
            with rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
                figure_of(target, name).savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
