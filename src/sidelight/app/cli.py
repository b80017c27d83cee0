"""The command line: read what was asked, call the library, print."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from sidelight import __version__
from sidelight.app import options as opt
from sidelight.errors import InputError, SidelightError

app = typer.Typer(
    help="Predict the missing entries of a table, with a proof of optimality.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Guarded(TyperCommand):
    """A command that ends in one line, never in a traceback: exit 2 for input, 1 for a bug."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except SidelightError as error:
            raise _end(_in_options(error), 2) from error
        except KeyboardInterrupt as error:
            raise _end("interrupted: nothing was written", 130) from error
        except OSError as error:
            if error.filename is None:
                raise
            raise _end(f"{error.filename}: {error.strerror}", 2) from error
        except Exception as error:
            if ctx.find_root().params["debug"]:
                raise
            line = f"{type(error).__name__}: {error}; this is a bug: run with --debug to see where"
            raise _end(line, 1) from error


def _end(line: str, code: int) -> typer.Exit:
    typer.echo(f"sidelight: {' '.join(line.split())}", err=True)
    return typer.Exit(code)


def _in_options(error: SidelightError) -> str:
    """Say a remedy such as ``unknown='drop'`` as ``--unknown drop``."""
    if not isinstance(error, InputError):
        return str(error)
    remedy = re.sub(
        r"\b([a-z_]+)=(?:'(\w+)')?",
        lambda found: f"--{found[1].replace('_', '-')} {found[2] or ''}".rstrip(),
        error.remedy,
    )
    return str(error).replace(error.remedy, remedy)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sidelight {__version__}")
        raise typer.Exit


@app.callback()
def sidelight(
    debug: Annotated[bool, typer.Option(help="Show where a bug is.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Predict the missing entries of a table, with a proof of optimality."""


@app.command(cls=Guarded)
def fit(
    data: opt.Data,
    out: opt.ModelOut,
    model: Annotated[opt.Kind, typer.Option(help="Which model.")] = opt.Kind.CONSTRAINED,
    sigma2: opt.Sigma2 = None,
    lam: opt.Lam = None,
    tol: opt.Tol = None,
    max_rank: opt.MaxRank = None,
    mean: opt.Centre = None,
    unobserved_weight: opt.UnobservedWeight = None,
    refit: opt.Refit = None,
    learn: opt.Learn = None,
    factors: opt.Factors = None,
    restarts: opt.Restarts = None,
    cost: opt.Cost = None,
    alpha: opt.Alpha = None,
    over: opt.SpreadOver = None,
    seed: opt.Seed = 0,
    entries: opt.Entries = "entries",
    duplicates: opt.OnDuplicates = opt.Duplicates.ERROR,
    unknown: opt.OnUnknown = opt.Unknown.ERROR,
    negatives: opt.Negatives = None,
    samples: opt.Samples = 1,
    calibrate: opt.Calibrate = None,
    shared_entries: opt.Shared = 0.0,
    rows: opt.Items = None,
    cols: opt.Items = None,
    row_edges: opt.Edges = None,
    col_edges: opt.Edges = None,
    row_features: opt.Features = None,
    col_features: opt.Features = None,
    row_kernel: opt.Kernel = None,
    col_kernel: opt.Kernel = None,
    row_a: opt.Reach = None,
    row_b: opt.Own = None,
    col_a: opt.Reach = None,
    col_b: opt.Own = None,
    as_json: opt.Json = False,
) -> None:
    """Fit a model to known entries and write it to a file.

    Ctrl-C ends the fit where it is: the model is written, and labelled as stopped.
    """
    from sidelight.app import fitting, printing
    from sidelight.data import read_dataset

    fitting.check_out(out)
    with printing.progress_line() as say:
        known = read_dataset(
            data,
            entries=entries,
            duplicates=duplicates.value,
            unknown=unknown.value,
            rows=rows,
            cols=cols,
            row_edges=row_edges,
            col_edges=col_edges,
            row_features=row_features,
            col_features=col_features,
            row_kernel=row_kernel,
            col_kernel=col_kernel,
        )
        taught, held_out = fitting.hold_out(known, calibrate, seed)
        made = fitting.make_model(
            model,
            taught,
            _given(
                sigma2=fitting.noise(sigma2),
                lam=lam,
                tol=tol,
                max_rank=max_rank,
                mean=mean,
                unobserved_weight=unobserved_weight,
                refit=refit,
                learn=learn,
                n_factors=factors,
                restarts=restarts,
                C=cost,
                alpha=alpha,
                over=over,
            ),
            fitting.Sides(_given(a=row_a, b=row_b), _given(a=col_a, b=col_b), shared_entries),
            fitting.Draw(negatives, samples, seed),
        )
        fitting.fit(made, taught, say)
        if held_out is not None:
            made.calibrate(held_out)
        made.save(out)
    report = fitting.report(made, known, held_out, seed, out)
    printing.print_json(report) if as_json else printing.print_fit(report)


def _given(**values: Any) -> dict[str, Any]:
    plain = {name: getattr(value, "value", value) for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not None}


@app.command(cls=Guarded)
def rank(
    model: opt.Model,
    row: opt.Row,
    top: opt.Top = 20,
    with_known: opt.WithKnown = False,
    intervals: opt.RankIntervals = opt.Intervals.AUTO,
    level: opt.Level = 0.9,
    new_links: opt.NewLinks = None,
    new_features: opt.NewFeatures = None,
    as_json: opt.Json = False,
) -> None:
    """List the best columns for a row, best first.

    With --new-links (ids of neighbours), --new-features or both, the row is a new one.
    """
    from sidelight.app import lookup, printing
    from sidelight.models import load

    fitted = load(model)
    lookup.check_intervals(fitted, intervals)
    asked: dict[str, Any] = {"intervals": intervals.value, "level": level}
    number, described = lookup.find_or_place(fitted, row, new_links, new_features)
    found = fitted.rank(number, top, exclude_observed=not with_known, new_rows=described, **asked)
    label, name = row, None
    if described is None:
        label, name = found.row_id, fitted.row_names_ and fitted.row_names_[number]
    if as_json:
        printing.print_json({"row": label, "name": name, "ranking": found.records()})
    else:
        printing.print_ranking(f"{label}: {name}" if name else label, found.records())


@app.command(cls=Guarded)
def predict(
    model: opt.Model,
    pairs: opt.Pairs,
    out: opt.PairsOut = None,
    intervals: opt.PairIntervals = None,
    level: opt.Level = 0.9,
    as_json: opt.Json = False,
) -> None:
    """Predict the entries of pairs: row, col and prediction, between tabs.

    With --intervals also std (postdata alone), low and high.
    """
    from sidelight.app import fitting, lookup, printing
    from sidelight.models import load

    if out is not None:
        fitting.check_folder(out)
        if out.resolve() == pairs.resolve():
            raise InputError("--out is the file of pairs itself", remedy="choose another", path=out)
    fitted = load(model)
    lookup.check_intervals(fitted, intervals)
    index = lookup.read_known_pairs(pairs, fitted)
    lines = lookup.predicted(fitted, index, intervals, level)
    printing.print_predictions(lines, intervals, out, as_json)


@app.command(cls=Guarded)
def explain(
    model: opt.Model,
    row: opt.Row,
    col: opt.Column,
    top: opt.Reasons = 10,
    new_links: opt.NewLinks = None,
    new_features: opt.NewFeatures = None,
    as_json: opt.Json = False,
) -> None:
    """Take one prediction apart: the entries behind it, and who carries them.

    With --new-links (ids of neighbours), --new-features or both, the row is a new one.
    """
    from sidelight.app import lookup, printing
    from sidelight.models import load

    fitted = load(model)
    column = lookup.find_col(fitted, col)
    number, described = lookup.find_or_place(fitted, row, new_links, new_features)
    found = fitted.explain(number, column, top, new_rows=described)
    if described is not None:
        found = replace(found, row=replace(found.row, id=row))
    printing.print_json(asdict(found)) if as_json else printing.print_explanation(found)


@app.command(cls=Guarded)
def demo(out: opt.Folder = Path("sidelight-demo"), seed: opt.Seed = 0) -> None:
    """Find genes for diseases whose genes are withheld, on public data."""
    from sidelight.app.demo import run

    run(out, seed)


def main() -> None:
    """Run the command line."""
    app(prog_name="sidelight")
