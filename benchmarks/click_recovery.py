"""Parameters of every click model from a million simulated sessions: 0.01 over the largest error, which must be 1 or more.

Two queries of six items, lists of five in random order: few pairs, so that a million sessions give each to three digits. Examination and
attraction of PBM and UBM have a free factor; it is set so that the mean examination is 1. What follows a click on the last position
leaves no trace: DCM's last stop is left out, and so are cells of UBM that cannot occur.
"""

from __future__ import annotations

import json

import numpy as np

from benchmarks.timing import use_two_threads
from rankpolicy.clicks import CLICK_MODELS, ClickModel, fit_click_model, make_click_log, make_click_model

NUM_SESSIONS = 1_000_000


def identified(model: ClickModel) -> dict[str, np.ndarray]:
    """The parameters of a model that a log determines."""
    found = dict(model.parameters)
    if "examination" in found:
        examination = found["examination"]
        examination = examination[np.tri(*examination.shape, dtype=bool)] if examination.ndim == 2 else examination
        scale = examination.mean()
        found |= {"attraction": found["attraction"] * scale, "examination": examination / scale}
    if "stop" in found:
        found["stop"] = found["stop"][:-1]
    return found


def measure(name: str, seed: int) -> dict[str, object]:
    truth = make_click_model(name, random_state=seed)
    log = make_click_log(truth, NUM_SESSIONS, random_state=seed + 1)
    to_the_end = {"iterations": 2000, "tolerance": 1e-10} if CLICK_MODELS[name].uses_em else {}
    fitted = fit_click_model(name, log, prior=None, **to_the_end)
    wanted, found = identified(truth), identified(fitted)
    errors = {parameter: float(abs(found[parameter] - wanted[parameter]).max()) for parameter in wanted}
    return {
        "name": f"{name}-recovery",
        "ratio": round(0.01 / max(errors.values()), 2),
        "floor": 1,
        "what": f"0.01 / largest error after {NUM_SESSIONS} sessions",
        "errors": {parameter: round(error, 5) for parameter, error in errors.items()},
        "iterations": len(fitted.objectives),
    }


if __name__ == "__main__":
    use_two_threads()
    for name in [name for name in CLICK_MODELS if name != "coec"]:  # no maximum of the likelihood
        print(json.dumps(measure(name, seed=0)), flush=True)
