"""A fit as the command line asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sidelight.app.interrupt import held_back
from sidelight.app.options import Kind
from sidelight.app.printing import Say, progress_text
from sidelight.data import Dataset, Negatives, Side
from sidelight.errors import InputError
from sidelight.models import MVGP, ConstrainedMVGP, TraceGP, covariances, load

MODELS: dict[Kind, Any] = {
    Kind.CONSTRAINED: ConstrainedMVGP,
    Kind.TRACE: TraceGP,
    Kind.MVGP: MVGP,
}
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


def with_negatives(data: Dataset, ratio: float | None, seed: int) -> Dataset:
    """Add unknown cells of value 0 to known positives: all ones would teach nothing.

    Parameters
    ----------
    data
        Any dataset; one that is not one-class comes back as it is.
    ratio
        Cells to draw for each known positive; None is 1.
    seed
        Decides which.
    """
    if not data.one_class:
        if ratio is not None:
            raise InputError(
                "the entries have values, and --negatives is for known positives alone",
                remedy="leave it out",
            )
        return data
    zeros = Negatives(1.0 if ratio is None else ratio, seed=seed)
    drawn = zeros.draw(data.pairs, data.shape)
    values = np.repeat([1.0, zeros.value], [len(data.pairs), len(drawn)])
    return data.with_entries(np.concatenate([data.pairs, drawn]), values)


def make_model(
    kind: Kind,
    data: Dataset,
    settings: dict[str, Any],
    rows: dict[str, float],
    cols: dict[str, float],
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
    rows, cols
        ``a`` and ``b`` of the diffusions, as far as they were given.
    """
    row_heat, col_heat = _heat(data.rows, rows, "row"), _heat(data.cols, cols, "col")
    row_cov, col_cov = covariances(data, row_heat=row_heat, col_heat=col_heat)
    return MODELS[kind](row_cov, col_cov, **_meant(kind, settings))


def _heat(side: Side, given: dict[str, float], axis: str) -> tuple[float, float]:
    if given and side.graph is None:
        raise InputError(
            f"--{axis}-{min(given)} is given and the {axis}s have no graph",
            remedy=f"give --{axis}-edges, or leave it out",
        )
    return given.get("a", 1.0), given.get("b", 1.0)


def _meant(kind: Kind, settings: dict[str, Any]) -> dict[str, Any]:
    """Refuse what has no meaning for the model; the seed decides the negatives of any."""
    if kind is not Kind.MVGP:
        return settings
    for name in ("lam", "max_rank"):
        if name in settings:
            raise InputError(
                f"--{name.replace('_', '-')} is given and mvgp has no nuclear norm",
                remedy="leave it out, or choose another --model",
            )
    return {name: value for name, value in settings.items() if name != "random_state"}


def fit(model: Any, data: Dataset, say: Say | None) -> None:
    """Fit, telling each line of the trace; Ctrl-C ends the fit after the step at hand."""
    with held_back() as let_go:

        def watch(progress: Any) -> None:
            if say is not None:
                say(progress_text(progress))
            let_go()

        model.fit(data, watch=watch)


def report(model: Any, known: Dataset, fitted: Dataset, seed: int, out: Path) -> dict[str, Any]:
    """Say what was fitted to what, and how far it is proven; ``negatives`` is None without any."""
    return {
        "model": str(out),
        "kind": type(model).__name__,
        "shape": list(known.shape),
        "entries": len(known.pairs),
        "negatives": len(fitted.pairs) - len(known.pairs) if known.one_class else None,
        "seed": seed,
        "mean": model.mean_.constant,
        "notes": list(known.notes),
        "certificate": {name: getattr(model.certificate_, name) for name in _PROOF},
    }
