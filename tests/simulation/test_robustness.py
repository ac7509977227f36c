import numpy as np
import pytest

from rankpolicy.bandits import BANDITS
from rankpolicy.simulation import robustness_matrix
from rankpolicy.simulation.robustness import OUT_OF_ORDER, USERS
from rankpolicy.types import RankPolicyError

pytest.importorskip("numba")


def test_shares_are_of_the_regret_of_random_lists():
    matrix = robustness_matrix(
        ["random", "dcm-ts", "pbm-ts"], users=["dcm", OUT_OF_ORDER, "pbm"], num_steps=400, num_runs=3, num_draws=2
    )
    assert matrix.regrets.shape == (3, 3, 3)
    np.testing.assert_array_equal(matrix.shares()[0], 1.0)
    shares = matrix.shares()
    assert (shares[1:] < 0.7).all()
    assert shares[1, 0] < shares[1, 1]  # dcmTS puts the best item first, which is wrong where v rises
    assert shares[2, 2] < shares[1, 2]
    np.testing.assert_array_equal(matrix.is_made_for(), [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    assert matrix.to_dict()["users"] == ["dcm", OUT_OF_ORDER, "pbm"]
    assert (matrix.standard_errors()[1:] > 0).all()


def test_every_bandit_has_users_it_is_made_for():
    assert {bandit.made_for for bandit in BANDITS.values()} <= set(USERS)


def test_unknown_users():
    with pytest.raises(RankPolicyError, match="Did you mean 'cascade'"):
        robustness_matrix(["random"], users=["cascades"])


def test_the_figure_has_all_cells():
    pytest.importorskip("matplotlib")
    from rankpolicy.reports import figures
    from rankpolicy.reports.simulation_figures import robustness_figure

    matrix = robustness_matrix(["dcm-ts", "random"], users=["dcm", "pbm"], num_steps=50, num_runs=1, num_draws=1)
    text = figures.svg(robustness_figure(matrix, title="t"), "label")
    assert text.count("<svg") == 1
    assert figures.file(robustness_figure(matrix, title="t"), "png").startswith(b"\x89PNG")


def test_numbers_on_cells_have_enough_contrast():
    pytest.importorskip("matplotlib")
    from matplotlib.colors import to_rgb

    from rankpolicy.reports.simulation_figures import _luminance, robustness_figure

    matrix = robustness_matrix(["dcm-ts", "random"], users=["dcm", "pbm"], num_steps=50, num_runs=1, num_draws=1)
    axes = robustness_figure(matrix, title="t").axes[0]
    (image,) = axes.images
    assert axes.texts
    for text in axes.texts:
        column, row = text.get_position()
        cell = image.to_rgba(image.get_array()[row, column])
        low, high = sorted((_luminance(cell), _luminance(to_rgb(text.get_color()))))
        assert (high + 0.05) / (low + 0.05) >= 4.5
