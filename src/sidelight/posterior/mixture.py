"""Several models' postdata with equal shares: what an average over samples answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.posterior.postdata import Postdata, ends

Floats = NDArray[np.float64]


class Mixture:
    """A mixture of Gaussian distributions over all cells; its methods are those of Postdata.

    Its covariance is the mean of the parts' plus that of their means: what is not known for the
    choice of the sample is in it.
    """

    def __init__(self, parts: Sequence[Postdata]) -> None:
        self.parts, self.noise = tuple(parts), float(np.mean([part.noise for part in parts]))

    @property
    def residual(self) -> float:
        """The largest relative residual of all linear systems solved so far."""
        return max(part.residual for part in self.parts)

    @property
    def error(self) -> float:
        """A bound on the error of the parts' variances so far, relative to the prior's."""
        return max(part.error for part in self.parts)

    def mean(self, pairs: ArrayLike, **new: Any) -> Floats:
        """Return the mean of pairs."""
        return np.asarray(np.mean(self._means(pairs, new), axis=0))

    def std(self, pairs: ArrayLike, **new: Any) -> Floats:
        """Return the standard deviation of the latent value of pairs."""
        within = np.mean([part.std(pairs, **new) ** 2 for part in self.parts], axis=0)
        return np.asarray(np.sqrt(within + np.var(self._means(pairs, new), axis=0)))

    def cov(self, pairs: ArrayLike, **new: Any) -> Floats:
        """Return the covariance between the latent values of pairs."""
        within = np.mean([part.cov(pairs, **new) for part in self.parts], axis=0)
        means = self._means(pairs, new)
        means = means - means.mean(axis=0)
        return np.asarray(within + means.T @ means / len(means))

    def sample(
        self,
        pairs: ArrayLike,
        n: int = 1,
        random_state: int | np.random.Generator | None = None,
        **new: Any,
    ) -> Floats:
        """Return joint draws of the latent values of pairs, of shape (n, pairs)."""
        rng = np.random.default_rng(random_state)
        chosen = np.bincount(rng.integers(len(self.parts), size=n), minlength=len(self.parts))
        drawn = [
            part.sample(pairs, int(count), rng, **new)
            for part, count in zip(self.parts, chosen, strict=True)
            if count
        ]
        return rng.permutation(np.vstack(drawn)) if drawn else np.zeros((0, len(np.asarray(pairs))))

    def exceed(self, pairs: ArrayLike, value: float, *, noise: bool = False, **new: Any) -> Floats:
        """Return the probability that pairs exceed a value; with ``noise``, once observed."""
        found = [part.exceed(pairs, value, noise=noise, **new) for part in self.parts]
        return np.asarray(np.mean(found, axis=0))

    def interval(
        self, pairs: ArrayLike, level: float = 0.9, *, noise: bool = True, **new: Any
    ) -> tuple[Floats, Floats]:
        """Return the ends of intervals by the mixture's mean and variance."""
        return ends(self, pairs, level, noise, new)

    def _means(self, pairs: ArrayLike, new: dict[str, Any]) -> Floats:
        return np.array([part.mean(pairs, **new) for part in self.parts])
