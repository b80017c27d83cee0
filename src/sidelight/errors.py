"""The errors a user sees: one sentence that names the place and the remedy."""

from __future__ import annotations


class SidelightError(Exception):
    """Anything this package refuses to do."""


class InputError(SidelightError, ValueError):
    """Input that cannot be used as it is.

    Parameters
    ----------
    problem
        What is wrong, without a full stop.
    remedy
        What the user can do about it, without a full stop.
    path, line, column
        Where it is, as far as it is known. Lines count from 1; a column is its header's name.
    """

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        path: object = None,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        self.problem, self.remedy = problem, remedy
        self.path, self.line, self.column = path, line, column
        place = "" if path is None else str(path)
        place += "" if line is None else f", line {line}"
        place += "" if column is None else f", column {column!r}"
        place = f"{place.removeprefix(', ')}: " if place else ""
        super().__init__(f"{place}{problem}; {remedy}.")


class MissingExtraError(SidelightError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        remedy = f"pip install 'sidelight[{extra}]'"
        super().__init__(f"{what} needs an optional package; run: {remedy}.")
