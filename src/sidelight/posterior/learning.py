"""Noise and covariance parameters, learnt from the entries.

The cost of ``evidence`` with wide priors is minimised over the logarithms of the parameters by
Fisher scoring: Newton's steps with the information, shortened until the cost falls.

- ``sigma2`` has an inverse-gamma prior. Without one it can go to zero: where the covariances alone
  explain the values, or the values are smaller than the prior allows, nothing holds it.
- A parameter of a covariance has a log-normal prior around the value that it starts from. A
  parameter that starts from 0 stays there.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.posterior.evidence import Evidence, Point, Setting

Floats = NDArray[np.float64]

_ROUNDS, _HALVINGS = 60, 12
_LONGEST = 1.5  # of a step, in logarithms
_EXACT, _ROUGH = 1e-9, 1e-5  # decrements at which the cost is at its minimum
_VAGUE = 10.0  # error of a logarithm beyond which a parameter is not known
_NOISE = 1e-3  # decrement of a step that is small beside the parameters' own errors


@dataclass(frozen=True)
class Prior:
    """Inverse-gamma for ``sigma2``, log-normal for the rest.

    Parameters
    ----------
    shape, scale
        Of the inverse-gamma distribution; 0 for both is no prior.
    width
        Standard deviation of the logarithm of every other parameter.
    """

    shape: float = 1.0
    scale: float = 0.0
    width: float = 2.0

    @classmethod
    def of(cls, y: Floats) -> Prior:
        """Return a wide prior that takes the noise for about a third of the values' variance."""
        return cls(scale=0.3 * float(np.mean(y**2)))

    def add(self, point: Point, names: list[str], logs: Floats, centre: Floats) -> Point:
        """Return the cost by logarithms of the parameters, with the prior's part."""
        theta = np.exp(logs)
        value = point.value
        slope = point.slope * theta
        information = point.information * np.outer(theta, theta)
        for i, name in enumerate(names):
            if name == "sigma2":
                order = self.shape + 1 if self.scale > 0 else 0.0
                value += order * logs[i] + self.scale / theta[i]
                slope[i] += order - self.scale / theta[i]
                information[i, i] += self.scale / theta[i]
            else:
                away = (logs[i] - centre[i]) / self.width
                value += 0.5 * away**2
                slope[i] += away / self.width
                information[i, i] += 1 / self.width**2
        return Point(float(value), slope, information)


@dataclass(frozen=True)
class Learnt:
    """What was learnt.

    ``values`` are the parameters, ``errors`` the standard deviations of their logarithms in the
    posterior: relative errors, and 0 for a parameter that only its range holds. ``correlation`` is
    in the order of ``values``.
    """

    values: dict[str, float]
    errors: dict[str, float]
    correlation: tuple[tuple[float, ...], ...]
    cost: float
    rounds: int
    status: str
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for the file."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Learnt:
        """Take back what ``record`` gave."""
        rows = tuple(tuple(row) for row in record["correlation"])
        return cls(**(record | {"correlation": rows}))


def learn(
    evidence: Evidence, start: Setting, names: list[str], prior: Prior
) -> tuple[Setting, Learnt]:
    """Return the setting with the least cost, and how certain it is.

    Parameters
    ----------
    evidence
        The cost.
    start
        Where to start; the centre of the priors.
    names
        The parameters to learn; those that start from 0 are left.
    prior
        The priors.
    """
    known = start.parameters()
    names = [name for name in names if known[name] > 0]
    ranges = start.ranges()
    centre = np.log([known[name] for name in names])
    low = np.minimum(np.log([ranges[name][0] for name in names]), centre)
    high = np.maximum(np.log([ranges[name][1] for name in names]), centre)
    search = _Search(evidence, start, names, prior, centre, low, high)
    return search.run(_EXACT if evidence.exact else _ROUGH)


class _Search:
    def __init__(
        self, evidence: Evidence, start: Setting, names: list[str], prior: Prior,
        centre: Floats, low: Floats, high: Floats,
    ) -> None:  # fmt: skip
        self._evidence, self._start, self._names, self._prior = evidence, start, names, prior
        self._centre, self._low, self._high = centre, low, high
        self._started = time.perf_counter()

    def _setting(self, logs: Floats) -> Setting:
        return self._start.having(dict(zip(self._names, np.exp(logs).tolist(), strict=True)))

    def _point(self, logs: Floats) -> Point:
        point = self._evidence.at(self._setting(logs), self._names)
        return self._prior.add(point, self._names, logs, self._centre)

    def run(self, tol: float) -> tuple[Setting, Learnt]:
        """Take steps until the next would change nothing."""
        logs = np.clip(self._centre, self._low, self._high)
        here, rounds, status = self._point(logs), 0, f"stopped: {_ROUNDS} rounds"
        decrement = np.inf
        try:
            while rounds < _ROUNDS:
                step, decrement = self._step(here, logs)
                found = None if decrement <= tol else self._lower(logs, here, step)
                if found is None:
                    status = "stopped: nothing costs less"
                    break
                (logs, here), rounds = found, rounds + 1
            if decrement <= _NOISE:
                status = self._settled(logs)
        except KeyboardInterrupt:
            status = "stopped: interrupted"
        return self._setting(logs), self._learnt(logs, here, rounds, status)

    def _settled(self, logs: Floats) -> str:
        ends = zip(self._names, (logs <= self._low) | (logs >= self._high), strict=True)
        at_end = [name for name, there in ends if there]
        if not self._evidence.settled:
            return "stopped: the linear systems did not settle"
        return f"settled, at the end of the range of {', '.join(at_end)}" if at_end else "settled"

    def _held(self, here: Point, logs: Floats) -> NDArray[np.bool_]:
        """Say which parameters only their range holds."""
        below, above = logs <= self._low, logs >= self._high
        return np.asarray((below & (here.slope > 0)) | (above & (here.slope < 0)))

    def _step(self, here: Point, logs: Floats) -> tuple[Floats, float]:
        """Return Newton's step among the parameters that are not held by their range."""
        free = np.flatnonzero(~self._held(here, logs))
        step = np.zeros(len(logs))
        if len(free):
            curved = here.information[np.ix_(free, free)] + 1e-10 * np.eye(len(free))
            step[free] = -np.linalg.solve(curved, here.slope[free])
        decrement = float(-here.slope @ step)
        longest = float(np.max(np.abs(step), initial=0.0))
        return step * min(1.0, _LONGEST / max(longest, 1e-300)), decrement

    def _lower(self, logs: Floats, here: Point, step: Floats) -> tuple[Floats, Point] | None:
        for halving in range(_HALVINGS):
            tried = np.clip(logs + step / 2**halving, self._low, self._high)
            point = self._point(tried)
            if point.value < here.value - 1e-14 * abs(here.value):
                return tried, point
        return None

    def _learnt(self, logs: Floats, here: Point, rounds: int, status: str) -> Learnt:
        spread, free = np.zeros_like(here.information), np.flatnonzero(~self._held(here, logs))
        block = np.ix_(free, free)
        spread[block] = np.linalg.pinv(here.information[block])
        errors = np.sqrt(np.maximum(spread.diagonal(), 0.0))
        vague = [name for name, error in zip(self._names, errors, strict=True) if error > _VAGUE]
        if vague:
            status += f"; the entries do not determine {', '.join(vague)}"
        scale = np.where(errors > 0, errors, 1.0)
        correlation = spread / np.outer(scale, scale)
        return Learnt(
            dict(zip(self._names, np.exp(logs).tolist(), strict=True)),
            dict(zip(self._names, errors.tolist(), strict=True)),
            tuple(map(tuple, correlation.tolist())),
            here.value,
            rounds,
            status,
            time.perf_counter() - self._started,
        )
