"""Posterior means and standard deviations of a table's missing cells: time, memory and error.

    python -m benchmarks.postdata [--repeats N] [NAME ...]

Prints one Markdown row for each method, each measured in its own process with two threads; without
names, all methods on both tables. The first run installs the peers in ``benchmarks/.peers`` and
computes the exact answers there, densely: it takes a while and 4 GB.

Every method knows the covariances and the noise, and warms up on a corner of the table. Seconds
are medians, from the data to all missing cells. Where a method's standard deviations are too slow
for all cells, a random part is timed, its time multiplied up and marked ≈. Errors of the mean are
relative to the standard deviation of the true table, those of the standard deviation to itself.
"""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts import peak

Array = NDArray[Any]
Answer = Callable[[Array], Array]  # indices of missing cells -> one number for each

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / ".peers"
SHAPE, SHARE, NOISE = (300, 200), 0.3, 0.1
SCALES = {"rbf": 0.1, "laplacian": 0.2}
BLOCK = 2000
CORNER = (30, 20)
ARRAYS = ("X", "Z", "truth", "pairs", "y", "missing")
SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2"),
    "SIDELIGHT_THREADS": "2",
    "PYTHONWARNINGS": "ignore",
}
COLUMNS = (
    "method",
    "seconds, mean",
    "seconds, mean + sd",
    "cells with sd",
    "error of mean, max / median",
    "error of sd, max / median",
    "peak MB",
)


@dataclass(frozen=True)
class Problem:
    """A table with known entries: items are points of the unit interval on both axes."""

    kernel: str
    scale: float
    X: Array
    Z: Array
    truth: Array
    pairs: Array
    y: Array
    missing: Array

    def covariance(self, A: Array, B: Array) -> Array:
        """Return the kernel of two sets of points."""
        distance = np.abs(A[:, None] - B[None, :]) / self.scale
        return np.exp(-(distance**2) / 2 if self.kernel == "rbf" else -distance)

    def between(self, A: Array, B: Array) -> Array:
        """Return the covariance of two lists of cells."""
        rows, cols = self.covariance(self.X, self.X), self.covariance(self.Z, self.Z)
        found = rows[np.ix_(A[:, 0], B[:, 0])]
        found *= cols[np.ix_(A[:, 1], B[:, 1])]
        return found

    def corner(self) -> Problem:
        """Return the problem of the table's first rows and columns."""
        known, absent = ((cells < CORNER).all(axis=1) for cells in (self.pairs, self.missing))
        m, n = CORNER
        data = self.pairs[known], self.y[known], self.missing[absent]
        return Problem(self.kernel, self.scale, self.X[:m], self.Z[:n], self.truth[:m, :n], *data)


@dataclass(frozen=True)
class Fitted:
    """What a method answers after all that is done but once."""

    mean: Answer
    sd: Answer | None


@dataclass(frozen=True)
class Method:
    """How to fit; the number of cells, or else rows, whose standard deviations are asked for."""

    fit: Callable[[Problem], Fitted]
    peer: bool = True
    cells: int | None = None
    rows: int | None = None

    def part(self, problem: Problem) -> Array:
        """Return the indices of the missing cells whose standard deviations are asked for."""
        rng = np.random.default_rng(1)
        if self.rows is not None:
            rows = rng.permutation(len(problem.X))[: self.rows]
            return np.flatnonzero(np.isin(problem.missing[:, 0], rows))
        return rng.permutation(len(problem.missing))[: self.cells]


def make(kernel: str) -> Problem:
    """Draw the table from its prior, and the known entries from the table."""
    rng = np.random.default_rng(0)
    X, Z = rng.random(SHAPE[0]), rng.random(SHAPE[1])
    blank = np.empty(0)
    shell = Problem(kernel, SCALES[kernel], X, Z, blank, blank, blank, blank)
    roots = [_root(shell.covariance(points, points)) for points in (X, Z)]
    truth = roots[0] @ rng.standard_normal(SHAPE) @ roots[1].T
    order = rng.permutation(truth.size)
    cells = np.column_stack(np.divmod(order, SHAPE[1]))
    known = round(SHARE * truth.size)
    pairs, missing = cells[:known], cells[known:]
    y = truth[tuple(pairs.T)] + NOISE * rng.standard_normal(known)
    return Problem(kernel, SCALES[kernel], X, Z, truth, pairs, y, missing)


def _root(C: Array) -> Array:
    values, vectors = np.linalg.eigh(C)
    return np.asarray(vectors * np.sqrt(values.clip(0.0)))


def reference(problem: Problem) -> tuple[Array, Array]:
    """Return the exact means and standard deviations, by a dense Cholesky factor."""
    from scipy.linalg.blas import dtrsm

    L = problem.between(problem.pairs, problem.pairs)
    L.flat[:: len(L) + 1] += NOISE**2
    _factor(L)

    def half(B: Array) -> Array:
        return dtrsm(1.0, L.T, B, trans_a=1, lower=0, overwrite_b=1)

    target = half(problem.y[:, None].copy())
    mean, sd = np.empty((2, len(problem.missing)))
    for start in range(0, len(mean), BLOCK):
        block = slice(start, start + BLOCK)
        V = half(problem.between(problem.missing[block], problem.pairs).T)
        mean[block] = (V.T @ target)[:, 0]
        sd[block] = np.sqrt(1.0 - np.einsum("ij,ij->j", V, V))
    return mean, sd


def _factor(A: Array) -> None:
    """Put the Cholesky factor in the lower triangle of ``A``.

    By blocks: at this size OpenBLAS has been seen to crash when it factors the whole in two
    threads.
    """
    from scipy.linalg import cholesky, solve_triangular

    for start in range(0, len(A), BLOCK):
        stop = min(start + BLOCK, len(A))
        before = A[start:stop, :start]
        A[start:, start:stop] -= A[start:, :start] @ before.T
        A[start:stop, start:stop] = cholesky(A[start:stop, start:stop], lower=True)
        below = A[stop:, start:stop]
        below[:] = solve_triangular(A[start:stop, start:stop], below.T, lower=True).T


def exact(problem: Problem) -> Fitted:
    """Fit scikit-learn's dense process; predict by blocks, as all cells at once need 12 GB.

    The fit has one thread for BLAS: in two, OpenBLAS crashes at this size.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, PairwiseKernel
    from threadpoolctl import threadpool_limits

    def points(cells: Array) -> Array:
        return np.column_stack([problem.X[cells[:, 0]], problem.Z[cells[:, 1]]])

    scale = problem.scale
    laplacian = PairwiseKernel(gamma=1 / scale, metric="laplacian")
    kernel = RBF([scale, scale]) if problem.kernel == "rbf" else laplacian
    model = GaussianProcessRegressor(kernel, alpha=NOISE**2, optimizer=None)
    with threadpool_limits(1, user_api="blas"):
        model.fit(points(problem.pairs), problem.y)

    def mean(index: Array) -> Array:
        return np.concatenate([model.predict(block) for block in blocks(index)])

    def sd(index: Array) -> Array:
        return np.concatenate([model.predict(block, return_std=True)[1] for block in blocks(index)])

    def blocks(index: Array) -> list[Array]:
        cells = points(problem.missing[index])
        return [cells[start : start + BLOCK] for start in range(0, len(cells), BLOCK)]

    return Fitted(mean, sd)


@dataclass(frozen=True)
class LatentKronecker:
    """botorch's LatentKroneckerGP, all its solves to the relative residual ``tol``.

    Standard deviations are its posterior's own, row by row, as the whole table at once asks for
    29 GB; with ``rank``, those of GPyTorch's low-rank root of the inverse (LOVE); with ``samples``,
    those of so many draws of the whole table, whose tolerance is fixed inside at 1e-2.
    """

    tol: float
    preconditioner: int = 15
    rank: int = 0
    samples: int = 0

    def __call__(self, problem: Problem) -> Fitted:
        """Solve for the mean."""
        import torch

        torch.manual_seed(0)
        model = _kronecker_model(problem)
        found = self._mean(model)
        sd = self._whole if self.rank or self.samples else self._rows
        return Fitted(
            lambda index: found[tuple(problem.missing[index].T)],
            lambda index: sd(model, problem.missing[index]),
        )

    def _mean(self, model: Any) -> Array:
        from gpytorch.settings import skip_posterior_variances

        X, T = model.train_inputs
        with self._settings(model), skip_posterior_variances():
            return np.asarray(model.posterior(X, T).mean.numpy().reshape(len(X), len(T)))

    def _rows(self, model: Any, cells: Array) -> Array:
        """Ask for the missing cells of each row: that is a block of rows and columns."""
        X, T = model.train_inputs
        found = np.empty(len(cells))
        with self._settings(model):
            for row in np.unique(cells[:, 0]):
                here = np.flatnonzero(cells[:, 0] == row)
                posterior = model.posterior(X[[row]], T[cells[here, 1]])
                found[here] = posterior.variance.numpy().ravel()
        return np.sqrt(found)

    def _whole(self, model: Any, cells: Array) -> Array:
        """Ask for the whole table."""
        import torch
        from gpytorch.settings import fast_pred_var, skip_posterior_variances
        from linear_operator.settings import max_root_decomposition_size

        X, T = model.train_inputs
        if self.samples:
            with self._settings(model), skip_posterior_variances():
                draws = model.posterior(X, T).rsample(torch.Size([self.samples]))
            sd = draws.std(dim=0).numpy()
        else:
            size = max_root_decomposition_size(self.rank)
            with self._settings(model), fast_pred_var(), size:
                variance = model.posterior(X, T).variance
            sd = variance.clamp(min=0.0).sqrt().numpy().reshape(len(X), len(T))
        return np.asarray(sd[tuple(cells.T)])

    @contextmanager
    def _settings(self, model: Any) -> Iterator[None]:
        """Set both tolerances: ``tol`` alone would leave predictions at 1e-2."""
        import torch
        from gpytorch.settings import eval_cg_tolerance, max_preconditioner_size

        size = max_preconditioner_size(self.preconditioner)
        lanczos = {"covar_root_decomposition": self.rank > 0}
        iterative = model.use_iterative_methods(tol=self.tol, **lanczos)
        with torch.no_grad(), iterative, eval_cg_tolerance(self.tol), size:
            yield


def _kronecker_model(problem: Problem) -> Any:
    import torch
    from botorch.models.latent_kronecker_gp import LatentKroneckerGP
    from gpytorch.kernels import MaternKernel, RBFKernel

    torch.set_default_dtype(torch.float64)
    table = np.full(problem.truth.shape, np.nan)
    table[tuple(problem.pairs.T)] = problem.y
    kernels = [RBFKernel() if problem.kernel == "rbf" else MaternKernel(nu=0.5) for _ in range(2)]
    X, Z = (torch.from_numpy(points)[:, None] for points in (problem.X, problem.Z))
    modules = {"covar_module_X": kernels[0], "covar_module_T": kernels[1]}
    model = LatentKroneckerGP(X, Z, torch.from_numpy(table), outcome_transform=None, **modules)
    model.likelihood.noise = NOISE**2
    for kernel in kernels:
        kernel.lengthscale = problem.scale
    return model.eval()


def ours(problem: Problem) -> Fitted:
    """Fit MVGP, as far as rounding lets it."""
    import sidelight as sl

    sides = [
        sl.Features(points[:, None], problem.kernel, length_scale=problem.scale)
        for points in (problem.X, problem.Z)
    ]
    model: Any = sl.MVGP(*sides, sigma2=NOISE**2, tol=1e-12).fit(problem.pairs, problem.y)

    def sd(index: Array) -> Array:
        return np.asarray(model.predict(problem.missing[index], return_std=True)[1])

    told = "return_std" in inspect.signature(model.predict).parameters
    return Fitted(lambda index: model.predict(problem.missing[index]), sd if told else None)


TIGHT = 1e-6  # to 1e-8 the conjugate gradients of LatentKroneckerGP do not come
METHODS = {
    "sidelight": Method(ours, peer=False),
    "botorch, 1e-2": Method(LatentKronecker(1e-2), rows=2),
    "botorch, 1e-6": Method(LatentKronecker(TIGHT), rows=1),
    "botorch, 1e-6, preconditioner 100": Method(LatentKronecker(TIGHT, 100), rows=1),
    "botorch, 1e-6, LOVE rank 100": Method(LatentKronecker(TIGHT, rank=100)),
    "botorch, 1e-6, LOVE rank 1000": Method(LatentKronecker(TIGHT, rank=1000)),
    "botorch, 1e-6, 64 draws": Method(LatentKronecker(TIGHT, samples=64)),
    "scikit-learn, exact": Method(exact, cells=4200),
}


def alone(kernel: str, method: Method, repeats: int) -> list[str]:
    """Measure one method in this process."""
    problem, mean, sd = stored(kernel)
    corner = problem.corner()
    answers(method, corner, np.arange(min(10, len(corner.missing))))
    part = method.part(problem)
    runs = [answers(method, problem, part) for _ in range(repeats)]
    seconds = np.median([run[0] for run in runs], axis=0)
    _, found, deviations = runs[0]
    told = ["-"] * 3
    if deviations is not None:
        whole = len(part) == len(mean)
        told[0] = f"{'' if whole else '≈ '}{seconds[1]:.3g}"
        told[1] = f"{len(part):,}"
        told[2] = _error(deviations - sd[part], sd[part])
    error = _error(found - mean, problem.truth.std())
    return [f"{seconds[0]:.3g}", *told[:2], error, told[2]]


def answers(
    method: Method, problem: Problem, part: Array
) -> tuple[tuple[float, float], Array, Array | None]:
    """Return the seconds for the means and for both, the means and a part's deviations."""
    every = np.arange(len(problem.missing))
    start = time.perf_counter()
    fitted = method.fit(problem)
    ready = time.perf_counter()
    mean = fitted.mean(every)
    done = time.perf_counter()
    deviations = None if fitted.sd is None else fitted.sd(part)
    spread = (time.perf_counter() - done) * len(every) / len(part)
    return (done - start, ready - start + spread), mean, deviations


def _error(difference: Array, scale: Any) -> str:
    relative = np.abs(difference) / scale
    return f"{relative.max():.1e} / {np.median(relative):.1e}"


def stored(kernel: str) -> tuple[Problem, Array, Array]:
    """Return the problem and its exact means and standard deviations."""
    with np.load(_path(kernel)) as arrays:
        problem = Problem(kernel, SCALES[kernel], *(arrays[name] for name in ARRAYS))
        return problem, arrays["mean"], arrays["sd"]


def store(kernel: str) -> None:
    """Make the problem and its exact answers."""
    problem = make(kernel)
    mean, sd = reference(problem)
    data = {name: getattr(problem, name) for name in ARRAYS}
    np.savez(_path(kernel), mean=mean, sd=sd, **data)


def _path(kernel: str) -> Path:
    size = f"{SHAPE[0]}x{SHAPE[1]}-{SHARE:g}"
    return PEERS / f"postdata-{size}-{kernel}-{SCALES[kernel]:g}-{NOISE:g}.npz"


def prepare() -> None:
    """Install the peers, anew when their versions have changed."""
    wanted, stamp = ROOT / "benchmarks" / "peers.txt", PEERS / "installed.txt"
    if stamp.exists() and stamp.read_text() == wanted.read_text():
        return
    python = PEERS / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", wanted], check=True)
    stamp.write_text(wanted.read_text())


def measure(name: str, repeats: int) -> None:
    """Print one row, or make a reference, in this process."""
    kernel, method = name.split(": ", 1)
    if method == "reference":
        return store(kernel)
    row = [name, *alone(kernel, METHODS[method], repeats), f"{peak():.0f}"]
    return print("| " + " | ".join(row) + " |", flush=True)


def apart(python: str | Path, name: str, repeats: int) -> None:
    """Measure in a new process, with a row that says so if it dies."""
    command = [python, "-m", "benchmarks.postdata", "--alone", "--repeats", str(repeats), name]
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, **SETTINGS}).returncode
    if code:
        print(f"| {name} | failed: exit code {code}" + " |" * (len(COLUMNS) - 1), flush=True)


def main() -> None:
    """Print a row for each method named."""
    names = [f"{kernel}: {name}" for kernel in SCALES for name in METHODS]
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="measure in this process")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" | ".join(names))
    given = parser.parse_args()
    if given.alone:
        return measure(*given.names, given.repeats)
    prepare()
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    for name in given.names or names:
        kernel, method = name.split(": ", 1)
        if not _path(kernel).exists():
            apart(PEERS / "bin" / "python", f"{kernel}: reference", 1)
        python = PEERS / "bin" / "python" if METHODS[method].peer else sys.executable
        apart(python, name, given.repeats)
    return None


if __name__ == "__main__":
    main()
