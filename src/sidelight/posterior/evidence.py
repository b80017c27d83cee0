"""How well noise and covariances explain the entries: the paper's objective and its slope.

The distribution that the model answers minimises ``KL(q, prior) - E_q log p(y | Z)``, with the
penalty on the nuclear norm of its mean. At that minimum, up to a constant, the cost is

    E = least over Psi [ 1/2 sum_l w_l (y_l - psi_l)^2 / sigma2 + 1/2 |B|_F^2 + lam |B|_* ]
        + 1/2 log |K|,      K = C_obs + sigma2 / w

Without the nuclear norm it is the negative log marginal likelihood. As ``q`` is at a minimum, the
slope of ``E`` by a parameter of a covariance is that of the paper's ``J`` at fixed ``q``, to which
the nuclear norm adds its own: with ``B = U V'`` balanced, singular values ``s`` and
``U = G_M' a``, a change ``dC`` of the rows' covariance has the slope

    1/2 tr K^-1 dK - 1/2 sum_r (s_r + lam) a_r' dC a_r

or, without the nuclear norm, ``1/2 tr K^-1 dK - 1/2 alpha' dK alpha``. By ``sigma2`` the slope
vanishes at the paper's fixed point, ``sigma2 = (1/L) (sum (y - psi)^2 + tr S_L)``.

For few entries all of it is exact. For many, traces are estimated on random signs, the logarithm of
the determinant by Lanczos' method on the same signs, and no dense matrix of the entries is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Covariance, Identity
from sidelight.posterior.blocks import block_cg
from sidelight.posterior.precondition import Split, split
from sidelight.posterior.systems import factor, solve_by
from sidelight.problem import Factors, Pattern, Product, gram_product

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 1500  # entries up to which the slope is exact
_SIGNS = 16  # random signs for each entry: an error of a quarter of the parameters' own
_STEPS, _LOOK = 300, 10  # of Lanczos' method at most, and between looks at what has come out
_SETTLED = 1e-4  # relative residual of the random signs' solutions
_EXACT = 1e-8  # and of the values'
_LEAST = 1e-12  # of the noise that learning starts from
_DENSE = 2**26  # numbers of dense covariances that precondition
_MOST = 1000  # products to get there


@dataclass(frozen=True, eq=False)
class Setting:
    """Noise and covariances."""

    sigma2: float
    row_cov: Covariance
    col_cov: Covariance

    def parameters(self) -> dict[str, float]:
        """Return all parameters by name: ``sigma2``, ``row.a``, ``col.0.weight`` and so on."""
        rows, cols = self.row_cov.parameters(), self.col_cov.parameters()
        return (
            {"sigma2": self.sigma2}
            | {f"row.{name}": value for name, value in rows.items()}
            | {f"col.{name}": value for name, value in cols.items()}
        )

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the interval in which each parameter may be."""
        sides = (("row", self.row_cov), ("col", self.col_cov))
        found = {f"{s}.{name}": r for s, cov in sides for name, r in cov.ranges().items()}
        return found | {"sigma2": (_LEAST * self.sigma2, np.inf)}

    def having(self, values: Mapping[str, float]) -> Setting:
        """Return it with some parameters changed."""

        def under(side: str) -> dict[str, float]:
            mine = {k: v for k, v in values.items() if k.startswith(f"{side}.")}
            return {k.removeprefix(f"{side}."): v for k, v in mine.items()}

        return Setting(
            values.get("sigma2", self.sigma2),
            self.row_cov.with_parameters(under("row")),
            self.col_cov.with_parameters(under("col")),
        )


class Constrained:
    """A mean of low rank: its part of the cost, its ``alpha``, its factors in dual coordinates.

    ``alpha`` is ``w (y - psi) / sigma2`` in the pattern's order.
    """

    def __init__(
        self, value: float, alpha: Floats, factors: Factors, s: Floats, lam: float
    ) -> None:
        self.value, self.alpha, self._factors, self._pull = value, alpha, factors, s + lam

    def slope(self, by_rows: Any, by_cols: Any) -> float:
        """Return ``-1/2 sum_r (s_r + lam) a_r' dC a_r`` along a change of one axis."""
        side, change = (self._factors.a, by_rows) if by_cols is None else (self._factors.b, by_cols)
        return -0.5 * float(self._pull @ np.einsum("mr,mr->r", side, change.apply(side)))


MeanSolver = Callable[[Setting], Constrained]


@dataclass(frozen=True, eq=False)
class Point:
    """The cost at a setting, its slope by the parameters, and Fisher's information."""

    value: float
    slope: Floats
    information: Floats


class Evidence:
    """The cost of settings for the same entries.

    Parameters
    ----------
    pairs, y, weights
        The entries; the noise of one has the variance ``sigma2 / weight``.
    mean
        Solves for a mean with a nuclear norm; None is the mean without.
    rng
        Draws the random signs, once.
    """

    def __init__(
        self,
        pairs: Ints,
        y: Floats,
        weights: Floats,
        shape: tuple[int, int],
        mean: MeanSolver | None,
        rng: np.random.Generator,
    ) -> None:
        self.pattern = Pattern(pairs, shape)
        self.y, self.weights = y[self.pattern.order], weights[self.pattern.order]
        self._mean, self.settled = mean, True  # whether all linear systems were solved
        self._signs = rng.choice([-1.0, 1.0], (len(y), _SIGNS)) if len(y) > FEW else None

    @property
    def exact(self) -> bool:
        """Whether nothing is estimated."""
        return self._signs is None

    def at(self, setting: Setting, names: list[str]) -> Point:
        """Return the cost, and its slope by the parameters named."""
        return self._exact(setting, names) if self._signs is None else self._drawn(setting, names)

    def _preconditioner(self, setting: Setting, root: Floats) -> Split | None:
        """Precondition where both covariances can be dense and neither is an identity."""
        covs = setting.row_cov, setting.col_cov
        sides = [np.unique(i, return_inverse=True) for i in (self.pattern.rows, self.pattern.cols)]
        small = sum(len(items) ** 2 for items, _ in sides) <= _DENSE
        if not small or any(isinstance(cov, Identity) for cov in covs):
            return None
        C, H = (cov.between(used, used) for cov, (used, _) in zip(covs, sides, strict=True))
        return split(C, H, sides[0][1], sides[1][1], root)

    def _solve(
        self, times: Callable[..., Floats], by: Split | None, right: Floats, tol: float
    ) -> Floats:
        goal = tol * float(np.max(np.linalg.norm(right, axis=0)))
        right = right if by is None else by(right)
        found, steps = block_cg(_between(times, by), right, goal, _MOST)
        self.settled = self.settled and steps < _MOST
        return found if by is None else by(found)

    def _changes(self, setting: Setting, names: list[str]) -> list[tuple[Any, Any]]:
        """Return dC of the rows or of the columns for each name; neither is the noise."""
        found: list[tuple[Any, Any]] = []
        for name in names:
            side, _, own = name.partition(".")
            rows = setting.row_cov.slope(own) if side == "row" else None
            cols = setting.col_cov.slope(own) if side == "col" else None
            found.append((rows, cols))
        return found

    def _mean_part(
        self, setting: Setting, changes: list[tuple[Any, Any]], alpha: Floats, moved: list[Floats]
    ) -> tuple[float, Floats]:
        """Return the mean's part of the cost and its slopes.

        ``alpha`` is that of the mean without a nuclear norm, ``moved`` is ``dK alpha`` by change.
        """
        if self._mean is None:
            return 0.5 * float(self.y @ alpha), np.array([-0.5 * float(alpha @ m) for m in moved])
        mean = self._mean(setting)
        noise = -0.5 * float(np.sum(mean.alpha**2 / self.weights))
        slopes = [
            noise if rows is None and cols is None else mean.slope(rows, cols)
            for rows, cols in changes
        ]
        return mean.value, np.array(slopes)

    def _exact(self, setting: Setting, names: list[str]) -> Point:
        parts = (setting.row_cov, self.pattern.rows), (setting.col_cov, self.pattern.cols)
        C, H = (_block(cov, items) for cov, items in parts)
        lower = factor(C * H + np.diag(setting.sigma2 / self.weights))
        inverse = solve_by(lower, np.eye(len(lower)))

        def change(rows: Any, cols: Any) -> Floats:
            if rows is None and cols is None:
                return np.diag(1 / self.weights)
            left = C if rows is None else _block(rows, self.pattern.rows)
            return left * (H if cols is None else _block(cols, self.pattern.cols))

        changes = self._changes(setting, names)
        written = [change(rows, cols) for rows, cols in changes]
        alpha = inverse @ self.y
        value, slopes = self._mean_part(setting, changes, alpha, [each @ alpha for each in written])
        spent = [inverse @ each for each in written]
        traces = np.array([each.trace() for each in spent])
        information = [[0.5 * float(np.sum(a * b.T)) for b in spent] for a in spent]
        return Point(
            value + float(np.sum(np.log(lower.diagonal()))),
            0.5 * traces + slopes,
            np.array(information).reshape(len(names), len(names)),
        )

    def _drawn(self, setting: Setting, names: list[str]) -> Point:
        """Estimate traces and determinant on random signs, the information on the values."""
        root = np.sqrt(setting.sigma2 / self.weights)[:, None]

        def change(rows: Any, cols: Any) -> Product:
            left, right = rows or setting.row_cov, cols or setting.col_cov
            return gram_product(self.pattern, left, right)

        covary = change(None, None)

        def times(X: Floats, scale: Floats | None = None) -> Floats:
            return np.asarray(X + covary(X / root) / root)

        signs = self._signs
        assert signs is not None
        by = self._preconditioner(setting, root[:, 0])
        logs, fixed = log_forms(_between(times, by), signs), 0.0 if by is None else by.logdet
        solved = self._solve(times, by, signs, _SETTLED)
        alpha = (self._solve(times, by, self.y[:, None] / root, _EXACT) / root)[:, 0]
        changes, moved, traces = self._changes(setting, names), [], []
        for rows, cols in changes:
            if rows is None and cols is None:
                product: Product = lambda v: (v.T / self.weights).T  # noqa: E731
            else:
                product = change(rows, cols)
            images = product(np.column_stack([signs / root, alpha]))
            traces.append(float(np.mean(np.sum(solved * images[:, :-1] / root, axis=0))))
            moved.append(images[:, -1])
        value, slopes = self._mean_part(setting, changes, alpha, moved)
        pulled = np.column_stack(moved) / root if moved else np.zeros((len(root), 0))
        found = self._solve(times, by, pulled, _SETTLED) if moved else pulled
        information = 0.5 * pulled.T @ found
        return Point(
            value + float(np.sum(np.log(root))) + 0.5 * (float(np.mean(logs)) + fixed),
            0.5 * np.array(traces) + slopes,
            (information + information.T) / 2,
        )


def _between(times: Callable[..., Floats], by: Split | None) -> Callable[..., Floats]:
    """Return a product with a preconditioner on both sides."""
    return times if by is None else lambda X, scale=None: by(times(by(X), scale))


def log_forms(times: Callable[[Floats], Floats], Z: Floats) -> Floats:
    """Return ``z' log(A) z`` for every column z, for ``A`` with eigenvalues of 1 and more.

    Lanczos' method, each column in its own Krylov space. Nothing is kept but the last two vectors:
    what rounding makes of that repeats eigenvalues and splits their weights, and leaves the sum.
    """
    length = np.linalg.norm(Z, axis=0)
    here, before, size = Z / length, np.zeros_like(Z), np.zeros(Z.shape[1])
    diagonal: list[Floats] = []
    beside: list[Floats] = []
    found = np.zeros(Z.shape[1])
    for step in range(1, min(_STEPS, len(Z)) + 1):
        image = times(here) - before * size
        diagonal.append(np.sum(here * image, axis=0))
        image -= here * diagonal[-1]
        size = np.linalg.norm(image, axis=0)
        ended = bool(np.max(size) <= 1e-12 * np.max(diagonal[-1]))
        if step % _LOOK == 0 or ended or step == min(_STEPS, len(Z)):
            values, vectors = np.linalg.eigh(_tridiagonal(diagonal, beside))
            logs = np.log(np.maximum(values, 1.0))
            latest = np.sum(vectors[:, 0, :] ** 2 * logs, axis=1) * length**2
            if ended or np.max(np.abs(latest - found)) <= 1e-6 * np.max(np.abs(latest)):
                return np.asarray(latest)
            found = latest
        beside.append(size)
        before, here = here, image / np.maximum(size, 1e-300)
    return found


def _tridiagonal(diagonal: list[Floats], beside: list[Floats]) -> Floats:
    """Return one tridiagonal matrix for each column."""
    size = len(diagonal)
    out = np.zeros((len(diagonal[0]), size, size))
    at = np.arange(size)
    out[:, at, at] = np.array(diagonal).T
    if beside:
        out[:, at[1:], at[:-1]] = out[:, at[:-1], at[1:]] = np.array(beside).T
    return out


def _block(operator: Any, items: Any) -> Floats:
    """Return a covariance, or its slope, between items that may repeat."""
    used, place = np.unique(items, return_inverse=True)
    return np.asarray(operator.between(used, used)[np.ix_(place, place)])
