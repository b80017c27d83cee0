"""Models on disk: one safetensors file with its settings as JSON in the header.

Ids and names travel as UTF-8 text beside the arrays. The file is written beside its place and
moved there in one step, so that a reader finds the old file or the new one, never a part.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialise

from sidelight.covariance import Covariance, covariance_from_state
from sidelight.errors import InputError
from sidelight.models.bagged import Bagged
from sidelight.models.base import PairModel
from sidelight.models.means import MeanFunction
from sidelight.models.names import BY_NAME
from sidelight.posterior import Calibration
from sidelight.solvers import Certificate, Progress

_FORMAT = 3
_KINDS: dict[str, type[PairModel]] = {kind.__name__: kind for kind in BY_NAME.values()}
_KINDS["Bagged"] = Bagged
_SIDES = ("row_cov", "col_cov")
_OBJECTS = (*_SIDES, "model", "negatives")  # parameters that JSON cannot hold
_TEXTS = ("row_ids_", "col_ids_", "row_names_", "col_names_")


def save(model: PairModel, path: Path) -> None:
    """Write a fitted model."""
    settings, arrays = _state(model)
    header = {"sidelight": json.dumps(settings, default=_plain)}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    _replace(path, serialise(arrays, metadata=header))


def load(path: str | Path) -> PairModel:
    """Return the model in a file; it ranks and predicts by itself."""
    path = Path(path)
    try:
        with safe_open(path, framework="numpy") as file:
            header = (file.metadata() or {}).get("sidelight")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise InputError("there is no such file", remedy="check the path", path=path) from None
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"the file cannot be read as a model ({error})",
            remedy="use a file that sidelight has saved",
            path=path,
        ) from None
    return _model(_settings(header, path), arrays)


def _settings(header: str | None, path: Path) -> dict[str, Any]:
    settings = {} if header is None else json.loads(header)
    if settings.get("kind") not in _KINDS or settings.get("format") != _FORMAT:
        raise InputError(
            "the file holds no model that this version knows",
            remedy="use a file that sidelight has saved, or fit again",
            path=path,
        )
    return dict(settings)


def _state(model: PairModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    settings, arrays = _learnt(model)
    covs, parts = _covariances(model)
    settings, arrays = settings | covs, arrays | parts
    for name in _TEXTS:
        if getattr(model, name) is not None:
            arrays |= _packed(name, getattr(model, name))
    if isinstance(model, Bagged):
        members = [_learnt(member) for member in model.models_]
        settings["members"] = [inner for inner, _ in members]
        for i, (_, inner) in enumerate(members):
            arrays |= _prefixed(f"{i}.", inner)
    return settings, arrays


def _learnt(model: PairModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a model is and has learnt, without its covariances, ids and names."""
    plain = model.get_params(deep=False)
    given = {side: getattr(model, side) is not None for side in _SIDES}
    settings = {
        "format": _FORMAT,
        "kind": type(model).__name__,
        "parameters": {name: value for name, value in plain.items() if name not in _OBJECTS},
        "given": given,
        "certificate": model.certificate_ and asdict(model.certificate_),
        "learnt": model._settings(),
    }
    entries = {"pairs": model.pairs_, "values": model.values_, "weights": model.weights_}
    arrays = entries | {"popularity": model.popularity_} | model._arrays()
    if model.calibration_ is not None:
        arrays |= _prefixed("calibration.", model.calibration_.arrays())
    return settings, arrays | _prefixed("mean.", model.mean_.arrays())


def _covariances(model: PairModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    settings: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for side in _SIDES:
        settings[side], parts = getattr(model, f"{side}_").state()
        arrays |= _prefixed(f"{side}.", parts)
    return settings, arrays


def _model(settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> PairModel:
    covs = _restored(settings, arrays)
    if settings["kind"] == "Bagged":
        members = [
            _taught(_made(inner, covs), inner, covs, _under(f"{i}.", arrays))
            for i, inner in enumerate(settings["members"])
        ]
        model: PairModel = Bagged(
            _made(settings["members"][0] | {"given": settings["given"]}, covs),
            **settings["parameters"],
        )
        model.models_ = members
    else:
        model = _made(settings, covs)
    _taught(model, settings, covs, arrays)
    for name in _TEXTS:
        texts = _unpacked(name, arrays)
        for each in (model, *getattr(model, "models_", ())):
            setattr(each, name, texts)
    return model


def _restored(settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Covariance]:
    return {
        side: covariance_from_state(settings[side], _under(f"{side}.", arrays)) for side in _SIDES
    }


def _made(settings: dict[str, Any], covs: dict[str, Covariance]) -> PairModel:
    """Make the model, not fitted, with the covariances that it was given."""
    given = {side: cov if settings["given"][side] else None for side, cov in covs.items()}
    return _KINDS[settings["kind"]](**settings["parameters"], **given)


def _taught(
    model: PairModel,
    settings: dict[str, Any],
    covs: dict[str, Covariance],
    arrays: dict[str, NDArray[Any]],
) -> PairModel:
    """Give a model back what it had learnt."""
    model.row_cov_, model.col_cov_ = covs["row_cov"], covs["col_cov"]
    model.pairs_, model.popularity_, model.n_features_in_ = arrays["pairs"], arrays["popularity"], 2
    model.values_, model.weights_, model._postdata = arrays["values"], arrays["weights"], None
    model.calibration_ = Calibration.from_arrays(_under("calibration.", arrays))
    model.mean_ = MeanFunction.from_arrays(_under("mean.", arrays))
    model.certificate_ = _certificate(settings["certificate"])
    model._take_settings(settings["learnt"])
    model._restore(arrays)
    return model


def _certificate(lines: dict[str, Any] | None) -> Certificate | None:
    if lines is None:
        return None
    trace = tuple(Progress(**line) for line in lines["trace"])
    return Certificate(**(lines | {"trace": trace}))


def _plain(value: Any) -> Any:
    """Return numpy's numbers as Python's: a search over ``np.arange`` leaves such parameters."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")


def _prefixed(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def _under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _packed(name: str, texts: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {f"{name}text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}ends": ends}


def _unpacked(name: str, arrays: dict[str, NDArray[Any]]) -> tuple[str, ...] | None:
    if f"{name}ends" not in arrays:
        return None
    text, ends = arrays[f"{name}text"].tobytes(), arrays[f"{name}ends"]
    starts = np.r_[0, ends[:-1]]
    return tuple(text[a:b].decode() for a, b in zip(starts, ends, strict=True))


def _replace(path: Path, content: bytes) -> None:
    """Write beside the place, make it durable, and move it there in one step."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError("there is no such folder", remedy="make it first", path=folder)
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
