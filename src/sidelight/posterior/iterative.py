"""Many entries: block conjugate gradients on those that matter."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sidelight.posterior.blocks import block_cg
from sidelight.posterior.entries import Entries
from sidelight.posterior.kept import Kept, norm
from sidelight.posterior.precondition import Split, split
from sidelight.posterior.systems import System, factor, solve_by
from sidelight.problem import Pattern, Product, Sampling, dense_product, gram_product

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Solved = tuple[Floats, Floats, Floats, float]  # solution, what is left, its lengths, the loss
Image = tuple[Floats, float, float]

FEW = 5000  # entries up to which a factor is cheaper
_SEED = 0  # of the start that bounds a norm
_ROUNDS = 6
_CELLS = 2**22  # numbers in passing
_FIRST = 0.004  # of the tolerance may be left out of a right side
_TAIL = 0.2  # of the tolerance may be left out of every product


class Iterative(System):
    """Block conjugate gradients on the entries that matter to what is asked.

    A pair's covariance with the entries fades along each axis. On the axis where it fades sooner,
    the items that hold less than a small share of it are left out and the rest is solved. What the
    solution leaves in the entries left out is bounded from above; where that is too much, more
    items are taken in.

    Parameters
    ----------
    entries
        The fitted entries.
    precision
        The largest error of an explained variance, relative to the prior's. The residual's square
        bounds it, in units of the noise.
    """

    def __init__(self, entries: Entries, precision: float) -> None:
        self._entries, self._tol = entries, float(np.sqrt(precision))
        self._root = np.sqrt(entries.noise)
        sides = [np.unique(entries.pairs[:, k], return_inverse=True) for k in (0, 1)]
        self._place = np.column_stack([place for _, place in sides])
        covs = entries.row_cov, entries.col_cov
        self._kept = [Kept(cov, items) for cov, (items, _) in zip(covs, sides, strict=True)]
        repeats = np.unique(entries.pairs, axis=0, return_counts=True)[1]
        self._often = float(np.sqrt(repeats.max(initial=1)))  # the norm of reading cells off

    def _pairs(self) -> Ints:
        return self._entries.pairs

    @cached_property
    def _norms(self) -> list[float]:
        rng = np.random.default_rng(_SEED)
        return [norm(kept.cov, rng) for kept in self._kept]

    def solve(self, right: Floats, scale: Floats) -> tuple[Floats, Floats]:
        """Return ``K^-1 right`` and the residual, and note how large it is at most."""
        units = np.sqrt(np.maximum(scale, np.finfo(float).tiny))
        scaled = right / self._root[:, None] / units
        found, left, loss = np.zeros_like(scaled), np.zeros_like(scaled), 0.0
        tail = _FIRST * self._tol
        axes: tuple[int, ...] = (0, 1)
        for _ in range(_ROUNDS):
            near = self._near(scaled, found, tail, axes)
            here, axes = near.entries, (near.axis,)
            start, found[:], left[:] = found[here], 0.0, 0.0
            found[here], left[here], sizes, loss = self._inside(near, scaled[here], start)
            sizes = np.hypot(sizes, self._outside(near, found, scaled))
            if sizes.max(initial=0.0) <= self._tol or near.everything:
                break
            tail /= 10
        self._note(sizes, np.linalg.norm(scaled, axis=0), loss)
        return found * units / self._root[:, None], left * units * self._root[:, None]

    def _note(self, sizes: Floats, lengths: Floats, loss: float) -> None:
        """Keep the largest relative residual, and the error of a variance that it allows."""
        relative = np.divide(sizes, lengths, where=lengths > 0, out=np.zeros_like(sizes))
        self.residual = max(self.residual, float(relative.max(initial=0.0)))
        self.error = max(self.error, float(sizes.max(initial=0.0)) ** 2 + loss)

    def _near(self, scaled: Floats, found: Floats, tail: float, axes: tuple[int, ...]) -> _Near:
        """Choose the items that hold all but ``tail`` of every column, on the better of some axes.

        Beside the right side counts what a solution found before sends to them, about.
        """
        energy = np.max(scaled**2, axis=1)
        sent = np.max((found / self._root[:, None]) ** 2, axis=1)
        choices = []
        for axis in axes:
            kept, size = self._kept[axis], self._kept[axis].size
            share = np.bincount(self._place[:, axis], energy, size)
            sources = np.bincount(self._place[:, axis], sent, size)
            items = np.flatnonzero(sources)
            if len(items):
                reach = kept.between(items, np.arange(size)).astype(np.float64) ** 2
                share += sources[items] @ reach * (self._norms[1 - axis] / self._root.min()) ** 2
            chosen = ~_dropped(np.sqrt(share), tail)
            choices.append(_Near(axis, chosen, np.flatnonzero(chosen[self._place[:, axis]])))
        return min(choices, key=lambda near: len(near.entries))

    def _inside(self, near: _Near, right: Floats, start: Floats) -> Solved:
        """Solve on some entries, from a start."""
        if len(near.entries) == 0:
            return right.copy(), right.copy(), np.zeros(right.shape[1]), 0.0
        axes = near.axis, 1 - near.axis
        root = self._root[near.entries]
        items = [np.unique(self._place[near.entries, k], return_inverse=True) for k in axes]
        rows, cols = (self._kept[k].among(each) for k, (each, _) in zip(axes, items, strict=True))
        if rows is None or cols is None:
            covs = [self._kept[k].cov for k in axes]
            pairs = self._entries.pairs[near.entries][:, axes]
            pattern = Pattern(pairs, (covs[0].size, covs[1].size))
            return _solved(
                _Plain(pattern, gram_product(pattern, *covs), root), right, start, self._tol
            )
        (to, C), (to_other, H) = rows, cols
        at, other = to[items[0][1]], to_other[items[1][1]]
        if len(root) <= FEW:
            return _directly(C[np.ix_(at, at)] * H[np.ix_(other, other)], root, right)
        pattern = Pattern(np.column_stack([at, other]), (len(C), len(H)))
        product = dense_product(pattern, C, H)
        if isinstance(product, Sampling):
            local = _Fading(pattern, product, root, self._norms[axes[1]] * self._often)
            return _solved(local, right, start, self._tol)
        return _solved(
            _Plain(pattern, product, root), right, start, self._tol, split(C, H, at, other, root)
        )

    def _outside(self, near: _Near, found: Floats, scaled: Floats) -> Floats:
        """Bound what a solution leaves in the entries left out, column by column."""
        far = np.flatnonzero(~near.kept)
        if not len(far):
            return np.zeros(scaled.shape[1])
        items, here = np.flatnonzero(near.kept), near.entries
        reach = np.asarray(self._kept[near.axis].between(items, far), dtype=np.float64)
        at = np.searchsorted(items, self._place[here, near.axis])
        pattern = Pattern(
            np.column_stack([at, self._place[here, 1 - near.axis]]),
            (len(items), self._kept[1 - near.axis].size),
        )
        sent = _energy(pattern, (found[here] / self._root[here, None])[pattern.order], reach)
        outside = ~near.kept[self._place[:, near.axis]]
        root = float(self._root[outside].min(initial=np.inf))
        own = np.linalg.norm(scaled[outside], axis=0)
        reading = self._norms[1 - near.axis] * self._often
        return np.asarray(own + reading / root * np.sqrt(sent))


class _Near:
    """Some items of an axis, and the entries that these have."""

    def __init__(self, axis: int, kept: NDArray[np.bool_], entries: Ints) -> None:
        self.axis, self.kept, self.entries = axis, kept, entries
        self.everything = bool(kept.all())


class _Plain:
    """``I + D^-1/2 C_obs D^-1/2``."""

    def __init__(self, pattern: Pattern, product: Product, root: Floats) -> None:
        self._order, self._product, self._root = pattern.order, product, root[:, None]

    def times(self, X: Floats, scale: Floats | None, slack: float) -> Image:
        """Multiply by it; nothing is left out."""
        out = np.empty_like(X)
        out[self._order] = self._product((X / self._root)[self._order])
        return np.asarray(X + out / self._root), 0.0, 0.0


class _Fading:
    """``I + D^-1/2 C_obs D^-1/2`` without what is too small to matter.

    What the entries send to those of row ``r`` is no longer than the norm of ``C_N`` times
    ``C_M(r, .) [v]``. Rows in which that is small are skipped, all together below the slack.
    """

    def __init__(self, pattern: Pattern, product: Sampling, root: Floats, norm: float) -> None:
        self._order, self._rows, self._product = pattern.order, pattern.rows, product
        self._root = root[pattern.order, None]
        rows = range(pattern.shape[0])
        least = [self._root[pattern.entries(m)].min(initial=np.inf) for m in rows]
        self._spread = norm / np.array(least)

    def times(self, X: Floats, scale: Floats | None, slack: float) -> Image:
        """Multiply by it.

        Returns a bound of what was left out of ``(.) @ scale`` too, and of its product with ``X``.
        """
        share = slack / np.sqrt(len(self._spread))
        least = share / np.maximum(
            self._spread, 1e-300
        )  # a row without entries: anything is little
        image, left = self._product.times(X[self._order] / self._root, scale, least)
        out = X.copy()
        out[self._order] += image / self._root
        skipped = float(np.linalg.norm(left * self._spread))
        there = X[self._order][left[self._rows] > 0]
        return out, skipped, skipped * float(np.linalg.norm(there, axis=0).max(initial=0.0))


def _solved(
    system: _Plain | _Fading,
    right: Floats,
    start: Floats,
    tol: float,
    by: Split | None = None,
) -> Solved:
    """Solve, measure the residual, and solve for what is left while that helps."""
    slack = _TAIL * tol

    def times(X: Floats, scale: Floats) -> Floats:
        return system.times(X, scale, slack)[0]

    def squeezed(X: Floats, scale: Floats) -> Floats:
        return by(system.times(by(X), scale, 0.0)[0])  # type: ignore[misc]

    found, left, skipped, loss = start.copy(), right, 0.0, 0.0
    if start.any():
        image, skipped, loss = system.times(start, None, slack)
        left = right - image
    for _ in range(_ROUNDS):
        sizes = np.hypot(np.linalg.norm(left, axis=0), skipped)
        if sizes.max(initial=0.0) <= tol:
            break
        if by is None:
            found += block_cg(times, left, 0.4 * tol)[0]
        else:
            found += by(block_cg(squeezed, by(left), 0.4 * tol)[0])
        image, skipped, loss = system.times(found, None, slack)
        left = right - image
    return found, left, np.hypot(np.linalg.norm(left, axis=0), skipped), loss


def _directly(C: Floats, root: Floats, right: Floats) -> Solved:
    """Solve ``(I + D^-1/2 C D^-1/2) X = right`` by Cholesky's factor."""
    C = np.asarray(C / np.outer(root, root), dtype=np.float64)
    C[np.diag_indices_from(C)] += 1.0
    found = solve_by(factor(C.copy()), right)
    left = right - C @ found
    return found, left, np.linalg.norm(left, axis=0), 0.0


def _dropped(sizes: Floats, slack: float) -> NDArray[np.bool_]:
    """Choose the smallest, of length ``slack`` together at most."""
    order = np.argsort(sizes)
    out = np.zeros(len(sizes), dtype=bool)
    out[order[np.cumsum(sizes[order] ** 2) <= slack**2]] = True
    return out


def _energy(pattern: Pattern, V: Floats, reach: Floats) -> Floats:
    """Return ``|reach' [v]|_F^2`` for every column v."""
    out, gram = np.zeros(V.shape[1]), reach @ reach.T
    step = max(_CELLS // max(pattern.shape[1] * V.shape[1], 1), 1)
    for at in range(0, pattern.shape[0], step):
        stop = min(at + step, pattern.shape[0])
        sent = pattern.outer(V, gram[:, at:stop])
        here = slice(pattern.entries(at).start, pattern.entries(stop - 1).stop)
        out += np.einsum("lk,lk->k", V[here], sent[pattern.rows[here] - at, pattern.cols[here]])
    return np.maximum(out, 0.0)
