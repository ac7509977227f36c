"""rankpolicy doctor

Examples
--------
rankpolicy doctor
rankpolicy doctor --json
"""

from __future__ import annotations

import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import print_json, show, show_table, styled
from rankpolicy.kernels import HAS_TRITON, TRITON_SWITCH, triton_is_on
from rankpolicy.optional import how_to_install, versions_of
from rankpolicy.threads import affinity_cpus, cpu_quota, usable_cpus
from rankpolicy.version import __version__

# By the name that pip knows: the module and what it is for.
PACKAGES = {
    "torch": ("torch", "networks"),
    "numba": ("numba", "compiled CPU kernels (without it the torch reference serves)"),
    "triton": ("triton", "GPU kernels (without it the torch reference serves)"),
    "scipy": ("scipy", "significance tests"),
    "lightgbm": ("lightgbm", "boosted trees"),
    "polars": ("polars", "Parquet and CSV tables, polars frames"),
    "safetensors": ("safetensors", "saving and loading models"),
    "matplotlib": ("matplotlib", "figures of the HTML report"),
    "jinja2": ("jinja2", "HTML reports, and the dashboard of the service"),
    "zstandard": ("zstandard", "data files packed as .zst"),
    "transformers": ("transformers", "text features"),
    "tokenizers": ("tokenizers", "text features"),
    "onnx": ("onnx", "rankers as ONNX files"),
    "onnxscript": ("onnxscript", "networks of texts as ONNX files"),
    "onnxruntime": ("onnxruntime", "checking ONNX files before they are written"),
    "starlette": ("starlette", "the ranking service"),
    "uvicorn": ("uvicorn", "the ranking service"),
    "msgspec": ("msgspec", "the ranking service"),
    "apsw": ("apsw", "the log of the ranking service"),
    "httpx": ("httpx", "the client of the ranking service"),
    "psycopg": ("psycopg", "several servers with one PostgreSQL database"),
    "optuna": ("optuna", "rankpolicy tune"),
    "ray": ("ray", "experiments on a cluster"),
    "scikit-learn": ("sklearn", "pipelines, clone and cross-validation around rankers"),
    "pandas": ("pandas", "pandas frames as input"),
}


def doctor(
    *,
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Show what is installed, which fast paths are on, and where tests and reproductions look for data."""
    document = {
        "versions": {"python": platform.python_version(), "rankpolicy": __version__} | versions_of("torch", "numpy"),
        "threads": _threads(),
        "fast_paths": _fast_paths(),
        "packages": _packages(),
        "data": _data_directory(),
    }
    if as_json:
        print_json(document)
    else:
        _show(document)


def _fast_paths() -> dict[str, dict[str, Any]]:
    numba_on = importlib.util.find_spec("numba") is not None
    paths = {"numba kernels": {"on": numba_on, "detail": _numba_threads() if numba_on else "pip install numba"}}
    if importlib.util.find_spec("torch") is None:
        return paths | {"torch on CPU": {"on": False, "detail": how_to_install("torch")}}
    import torch

    cuda = torch.cuda.is_available()
    triton_on = cuda and triton_is_on()
    return paths | {
        "torch on CPU": {"on": True, "detail": f"{torch.get_num_threads()} threads of {os.cpu_count()} cores"},
        "torch on CUDA": {"on": cuda, "detail": torch.cuda.get_device_name(0) if cuda else "no CUDA device"},
        "triton kernels": {"on": triton_on, "detail": _triton_detail(cuda)},
        "steps as CUDA graphs": {"on": cuda, "detail": "device='auto' trains on CUDA" if cuda else "no CUDA device"},
    }


def _triton_detail(cuda: bool) -> str:
    if not cuda:
        return "no CUDA device"
    if not HAS_TRITON:
        return "pip install triton (without it the torch reference serves on the GPU)"
    if not triton_is_on():
        return f"turned off by {TRITON_SWITCH}=0; the torch reference serves"
    return f"triton {_version('triton')}: gradients, metrics of validation, relu networks"


def _version(package: str) -> str:
    """The version of an installed package; builds of torch bring some under other names."""
    return versions_of(package).get(package, "unknown")


def _threads() -> dict[str, Any]:
    """The cores and the CPU quota of this process, and how OpenMP threads wait."""
    return {
        "cores": affinity_cpus(),
        "quota": cpu_quota(),
        "usable": usable_cpus(),
        "openmp_waiting": os.environ.get("OMP_WAIT_POLICY", "as GOMP_SPINCOUNT or KMP_BLOCKTIME say").lower(),
    }


def _numba_threads() -> str:
    """Number of threads and threading layer of compiled kernels, as they are when a kernel runs."""
    import numba
    import numpy as np

    from rankpolicy.kernels.clicks.expectation import weighted_counts_of_rows

    num_threads = min(numba.get_num_threads(), usable_cpus())
    if num_threads == 1:
        return "1 thread"
    # numba chooses the layer when the first parallel kernel runs.
    codes, weights = np.zeros(100_000, np.int32), np.ones((2, 100_000))
    weighted_counts_of_rows(codes, codes, weights, 1)
    return f"{num_threads} threads, layer {numba.threading_layer()}"  # type: ignore[attr-defined]


def _packages() -> dict[str, dict[str, Any]]:
    packages: dict[str, dict[str, Any]] = {}
    for name, (module, purpose) in PACKAGES.items():
        present = importlib.util.find_spec(module) is not None
        version = _version(name) if present else None
        packages[name] = {"version": version, "for": purpose, "install": None if present else how_to_install(name)}
    return packages


def _data_directory() -> dict[str, Any]:
    """The folder that RANKPOLICY_DATA names; only tests and reproductions on real data need it."""
    value = os.environ.get("RANKPOLICY_DATA")
    if not value:
        return {"path": None, "status": "RANKPOLICY_DATA is not set; only tests on real data need it", "holds": []}
    directory = Path(value)
    if not directory.is_dir():
        return {"path": value, "status": "RANKPOLICY_DATA must be a directory; there is none at this path", "holds": []}
    holds = sorted(path.name for path in directory.iterdir() if path.is_dir())
    return {"path": value, "status": f"found, {len(holds)} datasets", "holds": holds}


def _show(document: dict[str, Any]) -> None:
    show(", ".join(f"{name} {version}" for name, version in document["versions"].items()))
    threads = document["threads"]
    quota = "no CPU quota" if threads["quota"] is None else f"CPU quota {threads['quota']:g}"
    show(
        f"threads: {threads['usable']} usable ({threads['cores']} cores, {quota}), OpenMP waits {threads['openmp_waiting']}"
    )
    on, off, missing = styled("on", "green"), styled("off", "yellow"), styled("missing", "yellow")
    paths = [(name, on if facts["on"] else off, facts["detail"]) for name, facts in document["fast_paths"].items()]
    show_table(("fast path", "", "detail"), paths, numbers_from=None)
    packages = [
        (name, facts["version"] or missing, facts["for"], facts["install"] or "")
        for name, facts in document["packages"].items()
    ]
    show_table(("package", "version", "is for", "to get it"), packages, numbers_from=None)
    show(f"data: {document['data']['path'] or ''} {document['data']['status']}".replace("  ", " "))
