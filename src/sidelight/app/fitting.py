"""A fit as the command line asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sidelight.app.interrupt import held_back
from sidelight.app.options import Kind
from sidelight.app.printing import Say, progress_text
from sidelight.data import Dataset, Negatives, Side
from sidelight.errors import InputError
from sidelight.models import BY_NAME, Bagged, covariances, load

_OPTIONS = {"n_factors": "factors", "C": "cost"}
_PROOF = ("status", "reason", "objective", "dual", "relative_gap", "rank", "bound", "seconds")


def check_out(path: Path) -> None:
    """Refuse, before the work, a place where the model cannot go."""
    check_folder(path)
    if path.exists() and not _is_model(path):
        raise InputError(
            "this is there already and is no sidelight model",
            remedy="remove it, or choose another --out",
            path=path,
        )


def check_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there."""
    if not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent}", remedy="make it, or choose another --out"
        )


def _is_model(path: Path) -> bool:
    try:
        load(path)
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class Sides:
    """How the covariances are made: ``a`` and ``b`` of the diffusions, as far as given."""

    rows: dict[str, float]
    cols: dict[str, float]
    shared_entries: float


@dataclass(frozen=True)
class Draw:
    """Which unknown cells stand in for negatives, where positives alone are known."""

    ratio: float | None
    samples: int
    seed: int


def make_model(
    kind: Kind, data: Dataset, settings: dict[str, Any], sides: Sides, draw: Draw
) -> Any:
    """Assemble the model of a dataset.

    Parameters
    ----------
    kind
        Which model.
    data
        Where the covariances come from.
    settings
        The model's parameters, as far as they were given.
    sides
        How the covariances are made.
    draw
        The negatives, for a model of known positives that needs some.
    """
    _refuse_unused_sides(kind, sides)
    row_heat, col_heat = (
        _heat(data.rows, sides.rows, "row"),
        _heat(data.cols, sides.cols, "col"),
    )
    row_cov, col_cov = covariances(
        data, row_heat=row_heat, col_heat=col_heat, shared_entries=sides.shared_entries
    )
    known = BY_NAME[kind.value]().get_params()
    _refuse_meaningless(kind, known, settings)
    seeded = {"random_state": draw.seed} if "random_state" in known else {}
    made = BY_NAME[kind.value](row_cov=row_cov, col_cov=col_cov, **seeded, **settings)
    return _bagged(made, kind, data, draw)


def noise(text: str | None) -> float | str | None:
    """Read --sigma2: a number, or "learn"."""
    if text is None or text == "learn":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"--sigma2 is {text!r}", remedy="give a positive number, or learn"
        ) from None


def _heat(side: Side, given: dict[str, float], axis: str) -> tuple[float, float]:
    if given and side.graph is None:
        raise InputError(
            f"--{axis}-{min(given)} is given and the {axis}s have no graph",
            remedy=f"give --{axis}-edges, or leave it out",
        )
    return given.get("a", 1.0), given.get("b", 1.0)


def _refuse_meaningless(kind: Kind, known: dict[str, Any], settings: dict[str, Any]) -> None:
    for name in settings:
        if name not in known:
            raise _no_use(f"--{_OPTIONS.get(name, name.replace('_', '-'))}", kind)


def _refuse_unused_sides(kind: Kind, sides: Sides) -> None:
    """Refuse options that say how covariances are made to a model that makes no use of them."""
    if kind not in (Kind.PMF, Kind.POPULARITY, Kind.PROPAGATION):
        return
    given = [f"--row-{name}" for name in sides.rows] + [f"--col-{name}" for name in sides.cols]
    given += ["--shared-entries"] if sides.shared_entries else []
    if given:
        raise _no_use(given[0], kind)


def _no_use(option: str, kind: Kind) -> InputError:
    return InputError(
        f"{option} is given and {kind.value} has no use for it",
        remedy="leave it out, or choose another --model",
    )


def _bagged(model: Any, kind: Kind, data: Dataset, draw: Draw) -> Any:
    """Add samples of negatives to known positives, which alone would teach most models nothing."""
    needed = data.one_class and not model.takes_positives()
    if not data.one_class and len(data.values) and np.ptp(data.values) == 0:
        raise InputError(
            f"all entries have the value {data.values[0]:g}, which teaches nothing",
            remedy="leave the value column out if these are known positives",
        )
    if not needed:
        if draw.ratio is not None or draw.samples > 1:
            option = "--samples" if draw.ratio is None else "--negatives"
            why = f"the entries have values, and {option} is for known positives alone"
            if data.one_class:
                why = f"{option} is given, and this model draws no negatives"
            raise InputError(why, remedy="leave it out")
        return model
    if draw.ratio == 0:
        raise InputError(
            "--negatives 0 leaves known positives alone, which teach nothing",
            remedy="ask for some, or give --unobserved-weight",
        )
    value = -1.0 if kind is Kind.PRODIGE else 0.0
    negatives = Negatives(1.0 if draw.ratio is None else draw.ratio, value, draw.seed)
    return Bagged(model, negatives, draw.samples)


def hold_out(data: Dataset, share: float | None, seed: int) -> tuple[Dataset, Dataset | None]:
    """Part the entries at random: those to fit on, and those to calibrate intervals with."""
    if share is None:
        return data, None
    if data.one_class:
        raise InputError(
            "--calibrate is given, and known positives alone have no values to calibrate on",
            remedy="leave it out",
        )
    count = round(share * len(data.pairs)) if 0 < share < 1 else 0
    if not 0 < count < len(data.pairs):
        raise InputError(
            f"--calibrate {share:g} of {len(data.pairs)} entries leaves none on one side",
            remedy="give a share between 0 and 1, such as 0.2",
        )
    held = np.zeros(len(data.pairs), dtype=bool)
    held[np.random.default_rng(seed).permutation(len(held))[:count]] = True
    taught, rest = (data.with_entries(data.pairs[k], data.values[k]) for k in (~held, held))
    return taught, rest


def fit(model: Any, data: Dataset, say: Say | None) -> None:
    """Fit, telling each line of the trace; Ctrl-C ends the fit after the step at hand."""
    with held_back() as let_go:

        def watch(progress: Any) -> None:
            if say is not None:
                say(progress_text(progress))
            let_go()

        model.fit(data, watch=watch)


def report(
    model: Any, known: Dataset, held_out: Dataset | None, seed: int, out: Path
) -> dict[str, Any]:
    """Say what was fitted to what, and how far it is proven; what there is none of is None."""
    bagged = isinstance(model, Bagged)
    one, proof = model.models_[0] if bagged else model, model.certificate_
    return {
        "model": str(out),
        "kind": type(one).__name__,
        "shape": list(known.shape),
        "entries": len(known.pairs),
        "calibration": None if held_out is None else len(held_out.pairs),
        "negatives": len(one.pairs_) - len(model.pairs_) if bagged else None,
        "value": model.negatives.value if bagged else None,
        "samples": len(model.models_) if bagged else None,
        "seed": seed,
        "mean": one.mean_.constant,
        "notes": list(known.notes),
        "certificate": proof and {name: getattr(proof, name) for name in _PROOF},
        "refit": _refit(one),
        "learnt": _learnt(one),
    }


def _learnt(model: Any) -> dict[str, Any] | None:
    made = getattr(model, "learnt_", None)
    return made and {
        name: getattr(made, name) for name in ("status", "values", "errors", "seconds")
    }


def _refit(model: Any) -> dict[str, Any] | None:
    made = getattr(model, "refit_", None)
    return made and {name: getattr(made, name) for name in ("rank", "ridge", "held_out", "seconds")}
