"""EM of click models on a GPU: the parameters of the CPU kernels, the same bits every time."""

import numpy as np
import pytest
import torch

from rankpolicy.clicks import CLICK_MODELS, fit_click_model, log_from_lists
from rankpolicy.clicks.log.pairs import pairs_of
from rankpolicy.clicks.models import fit
from rankpolicy.clicks.models.on_device import em
from rankpolicy.clicks.models.on_device.counting import distinct_rows
from rankpolicy.kernels.triton.segment_sums import LONGEST, SegmentSums
from rankpolicy.types import RankPolicyError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
BY_EM = [name for name, kind in CLICK_MODELS.items() if kind.uses_em]


def click_log(num_sessions, *, num_queries=6, num_items=7, longest=5, random_state=0):
    """Lists of 1 to ``longest`` items; the first query has most of the sessions, so some pairs are in many lists."""
    generator = np.random.default_rng(random_state)
    queries = np.minimum(generator.geometric(0.4, num_sessions), num_queries) - 1
    lists = [generator.permutation(num_items)[: generator.integers(1, longest + 1)] for _ in range(num_sessions)]
    attraction = generator.beta(1, 3, (num_queries, num_items))
    clicks = []
    for query, items in zip(queries, lists, strict=True):
        marks = generator.random(len(items)) < attraction[query, items] / np.sqrt(1 + np.arange(len(items)))
        clicks.append(marks.astype(int))
    return log_from_lists([f"q{query}" for query in queries], [[f"i{i}" for i in items] for items in lists], clicks)


@pytest.fixture
def em_runs_there(device, monkeypatch):
    """device="cuda" is where these tests run, which may be Triton's interpreter."""
    monkeypatch.setattr(em, "CUDA", device)
    monkeypatch.setattr(fit, "takes_cuda", lambda name, **_: name == "cuda")


@pytest.mark.parametrize("length", [0, 1, LONGEST, LONGEST + 1, 3 * LONGEST**2])
def test_sums_by_key_do_not_depend_on_anything_but_the_values(device, length):
    generator = torch.Generator().manual_seed(length)
    keys = torch.randint(0, 3, (length,), generator=generator)
    keys[: length // 2] = 4  # one key has most of the entries, and the last one none
    values = torch.randn(length, generator=generator, dtype=torch.float64)
    sums = SegmentSums(keys.to(device), 6)
    found = sums(values.to(device))
    expected = np.bincount(keys.numpy(), values.numpy(), 6)
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(found, sums(values.to(device)))


def test_sums_of_some_places(device):
    values = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64, device=device)
    keys, places = torch.tensor([1, 0], device=device), torch.tensor([3, 1], device=device)
    assert SegmentSums(keys, 2, places=places)(values).tolist() == [2.0, 8.0]


def test_rows_with_equal_hashes_are_told_apart(device, monkeypatch):
    from rankpolicy.clicks.models.on_device import counting

    monkeypatch.setattr(counting, "_MULTIPLIER", 0)  # all hashes are then equal
    rows = torch.tensor([[1, 2], [3, 4], [1, 2], [4, 3]], device=device)
    first, inverse = distinct_rows(rows)
    assert first[inverse].tolist() == [0, 1, 0, 3]


@pytest.mark.parametrize(
    ("name", "prior"), [*((name, (1, 1)) for name in BY_EM), ("pbm", None), ("dbn", None), ("ubm", "empirical")]
)
def test_parameters_are_those_of_the_cpu(em_runs_there, name, prior):
    log = click_log(300)
    options = {"prior": prior, "iterations": 3, "tolerance": 0.0}
    expected = fit_click_model(name, log, **options)
    found = fit_click_model(name, log, device="cuda", **options)
    for parameter, values in expected.parameters.items():
        np.testing.assert_allclose(found.parameters[parameter], values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.objectives, expected.objectives, rtol=1e-12)
    assert found.defaults == pytest.approx(expected.defaults)


def test_the_same_bits_every_time(em_runs_there):
    found, again = (fit_click_model("dbn", click_log(100), device="cuda", iterations=2) for _ in range(2))
    assert all((again.parameters[own] == values).all() for own, values in found.parameters.items())


def test_a_log_in_parts(em_runs_there, monkeypatch):
    from rankpolicy.clicks.models.on_device import counting

    log = click_log(90)
    expected = fit_click_model("ubm", log, iterations=3)
    monkeypatch.setattr(counting, "SESSIONS_OF_A_PART", 40)
    found = fit_click_model("ubm", log, iterations=3, device="cuda")
    np.testing.assert_allclose(found.parameters["attraction"], expected.parameters["attraction"], rtol=0, atol=1e-9)


def test_models_in_closed_form_have_nothing_to_do_there(em_runs_there):
    log = click_log(30)
    found, expected = fit_click_model("dctr", log, device="cuda"), fit_click_model("dctr", log)
    assert (found.parameters["attraction"] == expected.parameters["attraction"]).all()


def test_a_device_and_an_executor_exclude_each_other(em_runs_there):
    with pytest.raises(RankPolicyError, match="not both"):
        fit_click_model("pbm", click_log(30), device="cuda", executor="processes")


@pytest.mark.parametrize("name", ["pbm", "ubm", "dbn"])
def test_large_logs(only_on_gpu, name):
    log = click_log(60_000, num_queries=300, num_items=30, longest=10)
    options = {"iterations": 20, "tolerance": 0.0}
    expected, found = fit_click_model(name, log, **options), fit_click_model(name, log, device="cuda", **options)
    for parameter, values in expected.parameters.items():
        np.testing.assert_allclose(found.parameters[parameter], values, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", BY_EM)
def test_models_say_whether_they_start_in_closed_form(name):
    log, kind = click_log(30), CLICK_MODELS[name]
    assert kind.starts_in_closed_form == (kind.closed_form(pairs_of(log).view(log)) is not None)
