"""The options of the command line, without anything that is slow to import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Kind(StrEnum):
    """The models that can be fitted."""

    CONSTRAINED = "constrained"
    TRACE = "trace"
    MVGP = "mvgp"
    KPMF = "kpmf"
    PMF = "pmf"
    PRODIGE = "prodige"
    POPULARITY = "popularity"
    BIAS = "bias"
    PROPAGATION = "propagation"


class Mean(StrEnum):
    """What is taken from the values before the fit."""

    ZERO = "zero"
    GLOBAL = "global"
    BIASES = "biases"
    GRAPH_BIASES = "graph-biases"


class Over(StrEnum):
    """What entries spread over."""

    ROWS = "rows"
    COLUMNS = "columns"
    BOTH = "both"


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


class Learnable(StrEnum):
    """Whose covariances' parameters are learnt."""

    NONE = "none"
    ROWS = "rows"
    COLS = "cols"
    BOTH = "both"


class Ends(StrEnum):
    """Which intervals go with predictions."""

    POSTDATA = "postdata"
    CONFORMAL = "conformal"


class Intervals(StrEnum):
    """Which intervals go with a ranking."""

    AUTO = "auto"
    POSTDATA = "postdata"
    CONFORMAL = "conformal"
    NONE = "none"


_DATA, _SIDES, _GRAPHS = "Data", "Rows and columns", "Diffusion over the graphs"
_SETTINGS = "Settings of the model: those that it has"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides what is drawn at random.")]
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
Calibrate = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Hold out this share of the entries, at random, for conformal intervals.",
        show_default="none",
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

Samples = Annotated[
    int,
    typer.Option(min=1, help="Known positives alone: fits to average over.", rich_help_panel=_DATA),
]
Shared = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Share of each variance that items with entries in common have in common.",
        rich_help_panel=_SIDES,
    ),
]


def _setting(kind: type, text: str, default: str, **more: Any) -> Any:
    return Annotated[
        kind | None,
        typer.Option(help=text, show_default=default, rich_help_panel=_SETTINGS, **more),
    ]


Sigma2 = _setting(str, "Variance of the noise, or 'learn'.", "1", metavar="NUMBER")
Learn = _setting(Learnable, "Learn the covariances' parameters.", "none")
Lam = _setting(float, "Weight of the nuclear norm.", "1")
Tol = _setting(float, "Relative gap to certify.", "0.0001")
MaxRank = _setting(int, "Largest rank.", "any")
Centre = _setting(Mean, "Taken from the values before the fit.", "zero")
UnobservedWeight = _setting(
    float, "Every unknown cell counts as a zero of this weight; none is drawn.", "0"
)
Refit = _setting(bool, "Fit the rank found anew, without the shrinkage.", "no-refit")
Factors = _setting(int, "Columns of the factors (kpmf, pmf).", "10")
Restarts = _setting(int, "Random starts to choose from (kpmf, pmf).", "1")
Cost = _setting(float, "Largest weight of an entry (prodige).", "1")
Alpha = _setting(float, "How likely each step of a walk goes on (propagation).", "0.8")
SpreadOver = _setting(Over, "What entries spread over (propagation).", "every graph")

ModelOut = Annotated[Path, typer.Option(help="Where the model goes; a model there is replaced.")]

Row = Annotated[str, typer.Argument(help="An id, or a name; for a new row, any label.")]
Top = Annotated[int, typer.Option(min=1, help="How many columns to list.")]
Column = Annotated[str, typer.Argument(help="An id, or a name.")]
Reasons = Annotated[int, typer.Option(min=0, help="How many entries and carriers to list.")]
RankIntervals = Annotated[Intervals, typer.Option(help="Which intervals.")]
PairIntervals = Annotated[Ends | None, typer.Option(help="Which intervals.", show_default="none")]
Level = Annotated[float, typer.Option(help="How likely an interval holds an observation.")]
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
