"""Plant one error at a time in the formulas and count those that the tests catch.

    python scripts/mutations.py                     # 40 errors drawn at random, one after the other
    python scripts/mutations.py --sample 200 --seed 3 --out mutations.json
    python scripts/mutations.py --only disparity    # in modules whose path contains this

An error is a formula changed in one operator, comparison, sign, number or reduction. Each runs the tests of its module in a copy of the
package; it is caught when they fail or do not end. Errors that leave all results the same (a tolerance, a speed-up) survive and are
named in ``EQUIVALENT`` with the reason. Tests that fail without an error would catch everything: they run first.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/rankpolicy")
SECONDS = 1800  # tests of a folder take a minute or two alone; endless loops end here

# Modules of formulas, or folders of them, and the tests that must catch errors in them.
FORMULAS: dict[str, tuple[str, ...]] = {
    "metrics": ("tests/metrics", "tests/contracts/test_metrics.py"),
    "fairness": ("tests/fairness", "tests/rankers/post_processing/test_fairness_competitors.py"),
    "clicks/position_bias": ("tests/clicks/position_bias", "tests/contracts/test_position_bias.py"),
    "clicks/models": ("tests/clicks/models", "tests/contracts/test_click_models.py"),
    "off_policy/estimators.py": ("tests/off_policy", "tests/contracts/test_off_policy_estimators.py"),
    "off_policy/weights.py": ("tests/off_policy", "tests/contracts/test_off_policy_estimators.py"),
    "gradients": ("tests/gradients", "tests/contracts/test_estimators.py"),
    "objectives": ("tests/objectives", "tests/contracts/test_objectives.py"),
    "policies": ("tests/policies", "tests/contracts/test_policies.py"),
    "bandits/index.py": ("tests/bandits/test_index_bandits.py", "tests/bandits/test_kl_ucb.py"),
    "simulation/theory.py": ("tests/simulation/test_theory.py",),
    "evaluation/mean_bound.py": ("tests/evaluation/test_mean_bound.py",),
    "training/optimizer.py": ("tests/training/test_ensemble.py",),
}
NO_FORMULAS = ("__init__.py", "members.py", "parse.py", "estimate.py", "by_click_model.py")
# Errors after which results are the same: module or folder, what the formula then has and did not have before, and why.
EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    ("clicks/position_bias", "clicks.sum(1) >= 0", "lists without clicks add 0 to every sum"),
    ("clicks/position_bias", "weighted.mean(1)", "the scale of relevance cancels in the step that follows"),
    ("clicks/position_bias", "np.clip(step, -1.0, 2.0)", "a longer Newton step ends at the same maximum"),
    ("clicks/position_bias", "clicks.mean(0) > 0", "a mean is positive where the sum is"),
    ("fairness", "xp.log(as_double(ends))", "the base of the logarithm cancels in total / worst"),
    ("fairness", "objectives > objectives.max() - _SAME", "differs at a tie of the tolerance only"),
)

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "sum": "mean", "mean": "sum", "log2": "log", "cumsum": "cumprod", "exp2": "exp"}


class Mutant(NamedTuple):
    """One planted error."""

    module: str
    line: int
    before: str  # the changed formula
    after: str
    source: str  # the text of the module with the error

    def tests(self) -> tuple[str, ...]:
        return tests_of(self.module)


def modules() -> list[str]:
    """The modules of formulas."""
    paths: list[str] = []
    for name in FORMULAS:
        path = ROOT / PACKAGE / name
        files = [path] if path.suffix else sorted(path.glob("*.py"))
        paths += [str(file.relative_to(ROOT / PACKAGE)) for file in files if file.name not in NO_FORMULAS]
    return paths


def tests_of(module: str) -> tuple[str, ...]:
    """The tests of a module, or of its folder."""
    return FORMULAS.get(module) or FORMULAS[str(Path(module).parent)]


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every error that can be planted in the functions of a module."""
    tree = ast.parse((ROOT / PACKAGE / module).read_text(encoding="utf-8"))
    for number, (statement, node) in enumerate(_formulas(tree)):
        for variant in _variants(node):
            changed = copy.deepcopy(tree)
            changed_statement, target = list(_formulas(changed))[number]
            before = ast.unparse(statement)
            for name, value in variant.items():
                setattr(target, name, value)
            after = ast.unparse(changed_statement)
            if after != before:
                yield Mutant(module, node.lineno, before, after, ast.unparse(ast.fix_missing_locations(changed)))


def _formulas(tree: ast.AST) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The expressions in bodies of functions with their statements; not annotations, error texts and docstrings."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for statement in _simple_statements(function.body):
            if not _is_text(statement):
                for field in ("value", "test", "iter"):
                    for node in ast.walk(getattr(statement, field, None) or ast.Pass()):
                        if isinstance(node, ast.expr):
                            yield statement, node


def _simple_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        blocks = [getattr(statement, name, []) for name in ("body", "orelse")]
        # An 'if' that refuses its input is no formula.
        if isinstance(statement, ast.If) and any(isinstance(inner, ast.Raise) for inner in statement.body):
            yield from _simple_statements(statement.orelse)
            continue
        yield statement
        for block in blocks:
            yield from _simple_statements(block)


def _is_text(statement: ast.stmt) -> bool:
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_docstring or isinstance(statement, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom)


def _variants(node: ast.expr) -> Iterator[dict[str, object]]:
    """What to change in an expression, by name of its field."""
    match node:
        case ast.BinOp(op=operator) if type(operator) in OPERATORS:
            yield {"op": OPERATORS[type(operator)]()}
        case ast.BoolOp(op=operator):
            yield {"op": OPERATORS[type(operator)]()}
        case ast.Compare(ops=[operator]) if type(operator) in OPERATORS:
            yield {"ops": [OPERATORS[type(operator)]()]}
        case ast.UnaryOp(op=ast.USub()):
            yield {"op": ast.UAdd()}
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() | float() as value):
            yield {"value": value + 1}
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
            yield {"func": ast.Attribute(node.func.value, NAMES[name], ast.Load())}  # type: ignore[attr-defined]


def is_caught(mutant: Mutant, checkout: Path) -> bool:
    """Whether the tests of the module fail with the error in a copy of the sources."""
    path = checkout / PACKAGE / mutant.module
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    # Compiled modules are told apart by second and size, which two errors may share.
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()
    environment = os.environ | {"PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{checkout}"}
    doctests = str(PACKAGE / mutant.module)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", doctests, *mutant.tests()]
    try:
        run = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, timeout=SECONDS, check=False)
        return run.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(original, encoding="utf-8")


def reason_of_equivalence(mutant: Mutant) -> str | None:
    """Why an error that survived changes no result; None where it does."""
    for folder, text, reason in EQUIVALENT:
        if mutant.module.startswith(folder) and text in mutant.after and text not in mutant.before:
            return reason
    return None


def main() -> int:
    """Draw errors, plant each and print the score and the survivors; exit status 1 where one survives that is not equivalent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    mutants = [mutant for module in modules() if options.only in module for mutant in mutants_of(module)]
    drawn = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    print(f"{len(drawn)} of {len(mutants)} errors in {len(modules())} modules", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "conftest.py"):
            shutil.copy(ROOT / name, checkout)
        for module in {mutant.tests(): mutant.module for mutant in drawn}.values():
            unchanged = (ROOT / PACKAGE / module).read_text(encoding="utf-8")
            if is_caught(Mutant(module, 0, "", "", unchanged), checkout):
                raise SystemExit(f"the tests of {module} fail without an error in it: {' '.join(tests_of(module))}")
        for mutant in drawn:
            reason = reason_of_equivalence(mutant)
            verdict = "caught" if is_caught(mutant, checkout) else "survived" if reason is None else "equivalent"
            rows.append(mutant._asdict() | {"verdict": verdict, "reason": reason})
            print(f"{verdict:10} {mutant.module}:{mutant.line}  {mutant.before}  ->  {mutant.after}", flush=True)
    counts = {
        verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("caught", "equivalent", "survived")
    }
    print(f"score {counts['caught']} of {len(rows) - counts['equivalent']}; {counts['equivalent']} equivalent")
    if options.out:
        for row in rows:
            del row["source"]
        options.out.write_text(json.dumps({"seed": options.seed, **counts, "errors": rows}, indent=1), encoding="utf-8")
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
