import json
import warnings

import pytest

pytest.importorskip("numba")

QUICK = ["--steps", "200", "--runs", "3", "--items", "6", "--cutoff", "2"]


def test_json_csv_and_figures(rankpolicy, tmp_path):
    result = rankpolicy("simulate", "--bandits", "dcm-kl-ucb,random", *QUICK, "--theory", "--out", tmp_path, "--json")
    assert result.status == 0
    document = result.json
    assert document == json.loads((tmp_path / "simulate.json").read_text())
    assert document["problem"]["users"] == "dcm"
    assert document["problem"]["attraction"] == [0.2, 0.2, 0.05, 0.05, 0.05, 0.05]
    policy = document["policies"]["random"]
    assert policy["steps"][-1] == 200
    assert len(policy["regret"]) == len(policy["standard_error"]) == len(policy["steps"])
    assert set(document["theory"]) == {"upper bound", "lower bound"}
    rows = (tmp_path / "regret.csv").read_text().splitlines()
    assert rows[0] == "bandit,step,regret,standard_error"
    assert len(rows) == 1 + 2 * len(policy["steps"])
    assert rows[-1].startswith("random,200,")
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "regret.svg").read_text()
    assert "random: 3/3 runs" in result.stderr


def test_cascade_users_get_the_bound_of_proposition_1(rankpolicy, tmp_path):
    """Items 16, lists of 8: 834 after 100,000 steps where Theorem 1, which divides by 0.8^7, would say 3978."""
    result = rankpolicy("simulate", "--bandits", "random", "--users", "cascade", "--items", 16, "--cutoff", 8, "--runs", 1,
                        "--steps", 100_000, "--theory", "--out", tmp_path, "--json")  # fmt: skip
    assert round(result.json["theory"]["upper bound"][-1]) == 834


def test_settings_reach_one_bandit_or_all(rankpolicy, tmp_path):
    result = rankpolicy("simulate", "--bandits", "dcm-ts,epsilon-greedy", *QUICK, "--set", "epsilon-greedy.epsilon=0.2",
                        "--set", "discount=0.99", "--out", tmp_path, "--log-axis", "--json")  # fmt: skip
    settings = result.json["run"]["settings"]
    assert settings["dcm-ts"]["discount"] == settings["epsilon-greedy"]["discount"] == 0.99
    assert settings["epsilon-greedy"]["epsilon"] == 0.2
    assert "epsilon" not in settings["dcm-ts"]


def test_the_order_of_positions_is_a_setting(rankpolicy, refused, tmp_path):
    users = ["--users", "dcm", "--termination", "0.1,0.9", "--attraction", "random"]
    call = ["simulate", "--bandits", "dcm-kl-ucb,dcm-full", *QUICK, *users, "--out", tmp_path, "--json"]
    best_first, placed = (rankpolicy(*call, *more).json for more in ([], ["--set", "dcm-kl-ucb.positions=0.1,0.9"]))
    regrets = [result["policies"]["dcm-kl-ucb"]["regret"][-1] for result in (best_first, placed)]
    assert regrets[1] < regrets[0]
    assert placed["policies"]["dcm-full"] == best_first["policies"]["dcm-full"]
    assert "positions must be numbers from 0 on" in refused(*call, "--set", "dcm-kl-ucb.positions=0,2")


def test_the_same_seed_gives_the_same_numbers(rankpolicy, tmp_path):
    call = ["simulate", *QUICK, "--users", "dbn", "--attraction", "random", "--out", tmp_path, "--json", "--seed"]
    first, again, other = (rankpolicy(*call, seed).json["policies"] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_table(rankpolicy, tmp_path):
    result = rankpolicy("simulate", "--bandits", "dcm-ts", *QUICK, "--termination", "0.9,0.3", "--out", tmp_path)
    assert "regret after 200 steps" in result.stdout
    assert "dcm-ts" in result.stdout


def test_no_regret_at_all_is_drawn_without_a_warning(rankpolicy, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call = [
            "--bandits",
            "dcm-ts",
            "--items",
            2,
            "--cutoff",
            2,
            "--attraction",
            "0.3,0.3",
            "--steps",
            5,
            "--runs",
            2,
        ]
        result = rankpolicy("simulate", *call, "--out", tmp_path, "--json")
    assert result.json["policies"]["dcm-ts"]["regret"][-1] == 0


def test_a_fitted_click_model_is_a_user(rankpolicy, refused, tmp_path):
    from rankpolicy.clicks import fit_click_model, log_from_lists

    log = log_from_lists(
        queries=["q"] * 4 + ["r"] * 2,
        items=[["a", "b"], ["b", "c"], ["c", "a"], ["a", "b"], ["x", "y"], ["y", "x"]],
        clicks=[[1, 0], [1, 1], [0, 0], [0, 1], [0, 1], [1, 0]],
    )
    fit_click_model("dcm", log).save(tmp_path / "fitted.json")
    call = ["simulate", "--users", tmp_path / "fitted.json", "--steps", 50, "--runs", 2, "--out", tmp_path / "out"]
    document = rankpolicy(*call, "--cutoff", 2, "--query", "q", "--json").json
    assert document["problem"]["items"] == 3
    both = rankpolicy(*call, "--cutoff", 1, "--json").json
    assert [each["items"] for each in both["problem"]["mean_over"]] == [3, 2]
    assert "Unknown query of the click model 'p'" in refused(*call, "--query", "p")
    assert "smaller --cutoff" in refused(*call, "--cutoff", 9)
    assert "leave --items out" in refused(*call, "--items", 3)


def test_bad_input(refused, tmp_path):
    call = ["simulate", *QUICK, "--out", tmp_path]
    assert "Did you mean 'dcm-ts'" in refused(*call, "--bandits", "dcm-tss")
    assert "at least one bandit" in refused(*call, "--bandits", ",")
    assert "Did you mean 'dcm'" in refused(*call, "--users", "dmc")
    assert "two numbers" in refused(*call, "--attraction", "0.1,0.2,0.3")
    assert "numbers separated by commas" in refused(*call, "--attraction", "high")
    assert "probabilities" in refused(*call, "--attraction", "1.2,0.1")
    assert "each of 2 positions" in refused(*call, "--termination", "0.1,0.2,0.3")
    assert "--users dcm" in refused(*call, "--users", "pbm", "--termination", "0.1")
    assert "--users FILE" in refused(*call, "--query", "q")
    assert "dcm-kl-ucb, dcm-ts have no setting 'radius'; it is a setting of the bandits dcm-ucb1" in refused(
        *call, "--set", "radius=2"
    )
    assert "cannot forget" in refused(*call, "--bandits", "ranked-exp3", "--set", "window=5")
