"""The options of the command line, without anything that is slow to import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """The models that can be fitted."""

    CONSTRAINED = "constrained"
    TRACE = "trace"
    MVGP = "mvgp"


class Mean(StrEnum):
    """What is taken from the values before the fit."""

    ZERO = "zero"
    GLOBAL = "global"


class Duplicates(StrEnum):
    """What to do with a pair that is listed twice."""

    ERROR = "error"
    FIRST = "first"
    LAST = "last"
    MEAN = "mean"
    SUM = "sum"
    MAX = "max"


class Unknown(StrEnum):
    """What to do with an id outside the index set."""

    ERROR = "error"
    DROP = "drop"


_DATA, _SIDES, _GRAPHS = "Data", "Rows and columns", "Diffusion over the graphs"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[int, typer.Option(help="Decides what is drawn at random.")]
Model = Annotated[Path, typer.Argument(help="A file that 'sidelight fit' wrote.")]

Data = Annotated[Path, typer.Argument(help="A folder, or one file of entries.")]
Entries = Annotated[
    str, typer.Option(help="Name of the entries in the folder.", rich_help_panel=_DATA)
]
OnDuplicates = Annotated[
    Duplicates, typer.Option(help="For a pair listed twice.", rich_help_panel=_DATA)
]
OnUnknown = Annotated[
    Unknown, typer.Option(help="For an id outside the index set.", rich_help_panel=_DATA)
]
Negatives = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Known positives alone: unknown cells drawn as 0, for each of them.",
        show_default="1",
        rich_help_panel=_DATA,
    ),
]
Items = Annotated[
    Path | None, typer.Option(help="Ids, and names, in order.", rich_help_panel=_SIDES)
]
Edges = Annotated[Path | None, typer.Option(help="A graph.", rich_help_panel=_SIDES)]
Features = Annotated[Path | None, typer.Option(help="Features.", rich_help_panel=_SIDES)]
Kernel = Annotated[Path | None, typer.Option(help="A similarity matrix.", rich_help_panel=_SIDES)]
Reach = Annotated[
    float | None,
    typer.Option(help="How far heat spreads.", show_default="1", rich_help_panel=_GRAPHS),
]
Own = Annotated[
    float | None,
    typer.Option(help="Variance shared with no other.", show_default="1", rich_help_panel=_GRAPHS),
]

Sigma2 = Annotated[float, typer.Option(help="Variance of the noise.")]
Lam = Annotated[
    float | None,
    typer.Option(help="Weight of the nuclear norm; not for mvgp.", show_default="1"),
]
Tol = Annotated[float, typer.Option(help="Relative gap to certify.")]
MaxRank = Annotated[
    int | None, typer.Option(help="Largest rank; not for mvgp.", show_default="any")
]
Centre = Annotated[Mean, typer.Option(help="Taken from the values before the fit.")]
ModelOut = Annotated[Path, typer.Option(help="Where the model goes; a model there is replaced.")]

Row = Annotated[str, typer.Argument(help="An id, or a name; for a new row, any label.")]
Top = Annotated[int, typer.Option(min=1, help="How many columns to list.")]
WithKnown = Annotated[
    bool, typer.Option("--all", help="List the columns whose entry is known as well.")
]
NewLinks = Annotated[
    str | None,
    typer.Option(help="ROW is new, with these neighbours.", metavar="ID,ID,..."),
]
NewFeatures = Annotated[
    str | None, typer.Option(help="ROW is new, with these features.", metavar="X,X,...")
]
Pairs = Annotated[Path, typer.Argument(help="A table with the columns row and col.")]
PairsOut = Annotated[
    Path | None, typer.Option(help="Where the predictions go.", show_default="the output")
]
Folder = Annotated[Path, typer.Option(help="The folder for the picture and the numbers.")]
