"""Every model on every real set: errors, precision and recall, seconds and peak memory.

    SIDELIGHT_DATA=DIR python -m benchmarks.models [--out FILE] [SET ...]

Prints one Markdown table for each set and split. With ``--out`` the cells are kept in FILE as
lines of JSON, and those that it has already are not measured again.

One fifth of the entries (known rows) or of the rows (new rows) is held out, or the set's own test
part. Settings are chosen on an inner split of the training part of the same kind: one parameter
after the other, in the order of GRIDS, from the first value of each. One-class sets choose by
R@20, ratings by RMSE (by R@20 where a model does not predict ratings); there an entry above 4 is
relevant (LIKED). A model of known positives averages over samples of negatives at the end
(SAMPLES), over one in the choice, unless all unobserved cells count. Each cell runs in a process
of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import sidelight as sl
from benchmarks.parts import peak
from sidelight.evaluation import known_entries, measure_rows, new_rows, rmse
from sidelight.models import BY_NAME

SAMPLES = {"medline": 2}  # of negatives, averaged over; 5 elsewhere
TOLS = {
    "constrained": 1e-3,
    "trace": 1e-2,
    "mvgp": 1e-3,
    "kpmf": 1e-3,
    "pmf": 1e-3,
    "prodige": 1e-2,
}
LIKED = {"filmtrust": 3.5}  # ratings above it are relevant, 4 elsewhere: its scale ends at 4
COLUMNS = ("model", "RMSE", "P@20", "R@20", "seconds", "of which the fit", "peak MB", "settings")


@dataclass(frozen=True)
class Part:
    """Some entries of a set to learn from, and others to find."""

    data: sl.Dataset
    train: np.ndarray
    test: np.ndarray
    split: str
    liked: float

    @cached_property
    def known(self) -> sl.Dataset:
        """The set with its training entries alone."""
        return self.data.with_entries(self.data.pairs[self.train], self.data.values[self.train])

    def inner(self) -> Part:
        """Split the training part once more."""
        known = self.known
        train, test = next(_SPLITS[self.split](known.pairs, 5, 1))
        return Part(known, train, test, self.split, self.liked)


_SPLITS = {"known rows": known_entries, "new rows": new_rows, "its own": known_entries}
SETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "omim": ("entries", ("known rows", "new rows")),
    "medline": ("entries_sparse", ("known rows", "new rows")),
    "hetionet": ("entries", ("known rows", "new rows")),
    "epinions": ("entries", ("known rows",)),
    "ciaodvd": ("entries", ("known rows",)),
    "filmtrust": ("entries", ("known rows",)),
    "flixster_monti": ("train", ("its own",)),
    "ml100k": ("train", ("its own",)),
}


def load(name: str, split: str) -> Part:
    """Read a set and split it."""
    folder, entries = Path(os.environ["SIDELIGHT_DATA"]) / name, SETS[name][0]
    data, liked = sl.read_dataset(folder, entries=entries), LIKED.get(name, 4.0)
    if split != "its own":
        return Part(data, *next(_SPLITS[split](data.pairs, 5, 0)), split, liked)
    test = sl.read_dataset(folder, entries="test")
    both = data.with_entries(np.vstack([data.pairs, test.pairs]), np.r_[data.values, test.values])
    count = len(data.pairs)
    return Part(both, np.arange(count), np.arange(count, count + len(test.pairs)), split, liked)


def covariances(name: str, known: sl.Dataset) -> dict[str, Any]:
    """Return the covariances by a name of the grid: graphs where there are any."""
    plain = [sl.Identity(size) for size in known.shape]
    heat = list(sl.covariances(known))

    def far(cov: Any) -> Any:
        if not isinstance(cov, sl.Diffusion):
            return cov
        return sl.RandomWalk(cov.graph, 0.6) + 0.3 * sl.Diffusion(cov.graph, 3.0, 0.0)

    def wide(cov: Any) -> Any:
        return sl.Diffusion(cov.graph, 4.0, 0.02) if isinstance(cov, sl.Diffusion) else cov

    made: dict[str, Any] = {
        "identity": lambda: plain,
        "graphs": lambda: heat,
        "row graph": lambda: [heat[0], plain[1]],
        "far rows": lambda: [10.0 * far(heat[0]), plain[1]],
        "far": lambda: [far(heat[0]), wide(heat[1])],
        "shared": lambda: sl.covariances(_bare(known), shared_entries=0.5),
        "graphs+shared": lambda: sl.covariances(known, shared_entries=0.5),
    }
    return dict(zip(("row_cov", "col_cov"), made[name](), strict=True))


def _bare(data: sl.Dataset) -> sl.Dataset:
    return sl.Dataset(data.row_ids, data.col_ids, data.pairs, data.values, data.one_class)


def grid(model: str, name: str, part: Part) -> dict[str, tuple[Any, ...]]:
    """Return the values to try of each parameter, the first to start with."""
    rows, cols = (side.graph is not None for side in (part.data.rows, part.data.cols))
    graph = ("graphs",) if rows or cols else ()
    if part.data.one_class:
        return _one_class_grid(model, name, part.split == "new rows")
    mean = ("graph-biases",) if graph else ("biases",)
    sides = ("identity", *graph, "shared", *(f"{g}+shared" for g in graph))
    return {
        "constrained": {"cov": sides, "sigma2": (0.1, 1.0), "tau": TAUS, "mean": mean},
        "trace": {"cov": ("identity", sides[-1]), "tau": TAUS, "mean": mean},
        "mvgp": {"cov": sides[1:], "sigma2": (1.0, 3.0, 10.0), "mean": mean},
        "kpmf": {
            "cov": (*graph, sides[-1]),
            "sigma2": (10.0, 5.0, 20.0),
            "n_factors": (3, 10, 30),
            "mean": mean,
        },
        "pmf": {"sigma2": (10.0, 5.0, 20.0), "n_factors": (3, 10, 30), "mean": ("biases",)},
        "prodige": {"cov": (sides[-1],), "C": (0.1, 0.01, 1.0)},
        "popularity": {},
        "bias": {"cov": ("identity", *graph), "mean": (*mean, "biases")},
        "propagation": {"cov": graph, "alpha": (0.5, 0.8)} if graph else {"cov": ()},
    }[model]


TAUS = (40.0, 28.0, 20.0, 14.0, 10.0, 7.0, 5.0, 3.5)


def _one_class_grid(model: str, name: str, new: bool) -> dict[str, tuple[Any, ...]]:
    kernels = ("similarity", "similarity+dirac")
    usual: dict[str, dict[str, tuple[Any, ...]]] = {
        "constrained": {
            "cov": ("graphs", "row graph", "identity"),
            "lam": (10.0, 3.0),
            "unobserved_weight": (0.1, 0.0),
        },
        "trace": {"cov": ("graphs",), "lam": (10.0, 3.0), "unobserved_weight": (0.1,)},
        "mvgp": {"cov": ("graphs", "row graph", "far"), "sigma2": (1.0, 0.1)},
        "kpmf": {"cov": ("graphs",), "n_factors": (50, 10), "unobserved_weight": (0.1,)},
        "pmf": {"n_factors": (50, 10), "unobserved_weight": (0.1,)},
        "prodige": {
            "cov": ("graphs",),
            "kernel": (*kernels, "dirac", "multitask"),
            "C": (1.0, 0.1),
        },
        "popularity": {},
        "bias": {"cov": ("graphs",), "mean": ("biases", "graph-biases")},
        "propagation": {
            "cov": ("graphs",),
            "over": ("both", "rows", "columns"),
            "alpha": (0.5, 0.7, 0.9),
        },
    }
    # most diseases of omim have one gene: the graphs alone tell, at full rank
    omim = {
        "constrained": {"cov": ("far",), "lam": (0.02,), "unobserved_weight": (0.001,)},
        "trace": {"cov": ("row graph",), "lam": (3.0,), "unobserved_weight": (0.1,)},
        "mvgp": {"cov": ("graphs",), "sigma2": (1.0,)},
        "kpmf": {"cov": ("graphs",), "n_factors": (10,), "unobserved_weight": (0.1,)},
        "prodige": {"cov": ("graphs",), "kernel": kernels, "C": (1.0,)},
    }
    medline = {
        "constrained": {
            "cov": ("row graph", "far rows" if new else "identity"),
            "lam": (10.0,) if new else (10.0, 20.0),
            "unobserved_weight": (0.1,),
        },
        "trace": {"cov": ("row graph",), "lam": (20.0,), "unobserved_weight": (0.1,)},
        "mvgp": {"cov": ("row graph", "graphs"), "sigma2": (1.0,)},
        "kpmf": {"cov": ("row graph",), "n_factors": (30,), "unobserved_weight": (0.1,)},
        "pmf": {"n_factors": (30,), "unobserved_weight": (0.1,)},
        "prodige": {"cov": ("graphs",), "kernel": kernels[:1], "C": (1.0,)},
    }
    return (usual | {"omim": omim, "medline": medline}.get(name, {}))[model]


def build(model: str, name: str, settings: dict[str, Any], part: Part, samples: int) -> Any:
    """Make the estimator of some settings."""
    given = dict(settings)
    covs = covariances(given.pop("cov", "identity"), part.known)
    if "kernel" in given:
        covs["row_cov"] = sl.row_kernel(given.pop("kernel"), covs["row_cov"])
    if "tau" in given:
        given["lam"] = given.pop("tau") / given.get("sigma2", 1.0)
    if model in TOLS:
        given["tol"] = TOLS[model]
    made = BY_NAME[model](**covs, **given)
    if not part.data.one_class or made.takes_positives():
        return made
    value = -1.0 if model == "prodige" else 0.0
    return sl.Bagged(made, sl.Negatives(value=value), samples)


def learn(model: str, made: Any, part: Part) -> Any:
    """Fit to the training entries: those that are liked, for a model of classes."""
    pairs, values = part.known.pairs, part.known.values
    if part.data.one_class:
        return made.fit(pairs)
    if model in ("prodige", "popularity", "propagation"):
        values = np.where(values > part.liked, 1.0, -1.0 if model == "prodige" else 0.0)
    return made.fit(pairs, values)


def measure(model: str, fitted: Any, part: Part) -> dict[str, float]:
    """Return RMSE for ratings, and P@20 and R@20 where anything is relevant."""
    pairs, values = part.data.pairs[part.test], part.data.values[part.test]
    found = {}
    if not part.data.one_class:
        if model not in ("prodige", "popularity", "propagation"):
            found["RMSE"] = rmse(values, fitted.predict(pairs))
        pairs = pairs[values > part.liked]
    if len(pairs):
        known = part.data.pairs[part.train]
        rows = measure_rows(fitted.scores, pairs, known, part.data.shape, (20,))
        found |= {"P@20": rows.precision.mean(), "R@20": rows.recall.mean()}
    return {key: float(value) for key, value in found.items()}


def loss(scores: dict[str, float], one_class: bool) -> float:
    """Return what the choice of settings minimises."""
    return -scores["R@20"] if one_class or "RMSE" not in scores else scores["RMSE"]


def choose(model: str, name: str, part: Part) -> dict[str, Any]:
    """Choose the settings on an inner split, one parameter after the other."""
    values = grid(model, name, part)
    best = {key: options[0] for key, options in values.items() if options}
    if all(len(options) < 2 for options in values.values()):
        return best
    inner, tried = part.inner(), {}

    def tell(settings: dict[str, Any]) -> float:
        key = json.dumps(settings, sort_keys=True)
        if key not in tried:
            fitted = learn(model, build(model, name, settings, inner, 1), inner)
            tried[key] = loss(measure(model, fitted, inner), part.data.one_class)
            print(f"  {model} {key} {tried[key]:.4f}", file=sys.stderr, flush=True)
        return tried[key]

    for parameter, options in values.items():
        if parameter == "tau":
            continue
        for option in options:
            best = min(best, _settled(best | {parameter: option}, values, tell), key=tell)
    return best


def _settled(settings: dict[str, Any], values: dict[str, Any], tell: Any) -> dict[str, Any]:
    """Go down the path of ``tau`` until two steps in a row were worse, where there is one."""
    best = settings
    for step, tau in enumerate(values.get("tau", ())):
        now = settings | {"tau": tau}
        if step == 0 or tell(now) < tell(best) - 1e-9:
            best = now
        elif tell(now) > tell(best) + 1e-9 and step > values["tau"].index(best["tau"]) + 1:
            break
    return best


def cell(name: str, split: str, model: str) -> dict[str, Any]:
    """Choose, fit and measure one model on one split of one set."""
    started, part = time.perf_counter(), load(name, split)
    if model == "propagation" and not grid(model, name, part)["cov"]:
        return {}
    settings = choose(model, name, part)
    before = time.perf_counter()
    fitted = learn(model, build(model, name, settings, part, SAMPLES.get(name, 5)), part)
    fit = time.perf_counter() - before
    return {
        **measure(model, fitted, part),
        "seconds": time.perf_counter() - started,
        "of which the fit": fit,
        "peak MB": peak(),
        "settings": settings,
    }


def cells(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Name every cell of the tables."""
    for name in names or SETS:
        for split in SETS[name][1]:
            for model in reversed(BY_NAME):
                yield name, split, model


def line(model: str, found: dict[str, Any]) -> str:
    """Return one row of a table."""
    digits = {"RMSE": ".4f", "P@20": ".4f", "R@20": ".4f"}
    texts = [model]
    for column in COLUMNS[1:-1]:
        value = found.get(column)
        texts.append("" if value is None else format(value, digits.get(column, ",.0f")))
    settings = found.get("settings", {})
    texts.append(", ".join(f"{key} {value}" for key, value in settings.items()))
    return "| " + " | ".join(texts) + " |"


def run(names: list[str], out: Path | None) -> None:
    """Measure cell after cell, and print the tables."""
    lines = out.read_text().splitlines() if out and out.exists() else []
    done = {tuple(each["cell"]): each["found"] for each in map(json.loads, lines)}
    last = None
    for key in cells(names):
        if key not in done:
            command = [sys.executable, "-m", "benchmarks.models", "--alone", *key]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            done[key] = json.loads(answer)
            if out:
                with out.open("a") as file:
                    file.write(json.dumps({"cell": key, "found": done[key]}) + "\n")
        if key[:2] != last:
            last = key[:2]
            print(f"\n### {key[0]}, {key[1]}\n\n| " + " | ".join(COLUMNS) + " |")
            print("|---" * len(COLUMNS) + "|", flush=True)
        if done[key]:
            print(line(key[2], done[key]), flush=True)


def main(args: list[str]) -> None:
    """Measure one cell (``--alone``) or all of some sets."""
    if args[:1] == ["--alone"]:
        print(json.dumps(cell(*args[1:4])))
        return
    out = Path(args[1]) if args[:1] == ["--out"] else None
    run(args[2:] if out else args, out)


if __name__ == "__main__":
    main(sys.argv[1:])
