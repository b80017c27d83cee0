"""Genes for diseases whose genes are withheld: a demonstration on public data, in a minute."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from sidelight.app.hpo import DiseaseGenes, load_disease_genes
from sidelight.covariance import Diffusion, Identity
from sidelight.data import sample_unknown
from sidelight.errors import MissingExtraError
from sidelight.evaluation import (
    KS,
    RowMetrics,
    ScoreRows,
    known_entries,
    measure_rows,
    neighbour_voting,
    new_rows,
    popularity,
)
from sidelight.evaluation.metrics import Array, Index
from sidelight.models import MVGP

SPREAD = 1.0  # how far the diffusion over the disease graph reaches
OWN_VARIANCE = 1.0  # the part of a disease's variance that its neighbours do not share
NOISE = 1.0  # sigma2
FOLDS = 5
SHOWN_GENES, SHOWN_NEIGHBOURS, SHOWN_PHENOTYPES = 10, 5, 8

METRICS = ("precision", "recall")
PICTURE, RESULTS = "demo.png", "demo.json"
MODEL, VOTING, POPULARITY = "sidelight", "neighbour voting", "popularity"
COLOURS = {MODEL: "#c2410c", VOTING: "#475569", POPULARITY: "#94a3b8"}

Split = Callable[[Index, int, int], Iterator[tuple[Index, Index]]]
SETTINGS: dict[str, tuple[str, Split]] = {
    "new_rows": ("Diseases with no known gene", new_rows),
    "known_rows": ("Withheld associations", known_entries),
}


@dataclass(frozen=True, eq=False)
class Fold:
    """The model fitted to one training part, and the pairs it did not see."""

    train: Index
    test: Index
    model: Any
    seconds: float


def run(out: Path, seed: int = 0, console: Console | None = None) -> dict[str, Any]:
    """Fit, measure, show one disease, and write a picture and the numbers.

    Parameters
    ----------
    out
        The folder for ``demo.png`` and ``demo.json``; made when it is not there.
    seed
        Decides the folds, the sampled negatives and the disease shown.
    console
        Where to print; the terminal by default.

    Returns
    -------
    dict
        What was written to ``demo.json``.
    """
    console = console or Console()
    data = load_disease_genes()
    console.print(_described(data))
    folds = {key: list(_fit_folds(data, split, seed)) for key, (_, split) in SETTINGS.items()}
    curves = {key: _average(data, parts) for key, parts in folds.items()}
    console.print(_score_table(curves))
    console.print(_reach_text(folds))
    example = _example(data, folds["new_rows"][0], seed)
    _print_example(console, example)
    results = {"seed": seed, **_summary(data, folds, curves), "example": example}
    _write(out, results, curves)
    console.print(f"Written: {out / PICTURE} and {out / RESULTS}")
    return results


def _described(data: DiseaseGenes) -> str:
    diseases, genes = _shape(data)
    edges = data.adjacency.nnz // 2
    return (
        f"{diseases:,} OMIM diseases, {genes:,} genes, {len(data.pairs):,} known associations; "
        f"{edges:,} links between diseases with similar phenotypes."
    )


def _shape(data: DiseaseGenes) -> tuple[int, int]:
    return len(data.disease_ids), len(data.gene_ids)


# Fitting and measuring


def _fit_folds(data: DiseaseGenes, split: Split, seed: int) -> Iterator[Fold]:
    for number, (train, test) in enumerate(split(data.pairs, FOLDS, seed)):
        yield _fit(data, data.pairs[train], data.pairs[test], seed=FOLDS * seed + number)


def _fit(data: DiseaseGenes, train: Index, test: Index, seed: int) -> Fold:
    """Fit known pairs as 1 and as many unknown cells of the training rows as 0."""
    start = perf_counter()
    model = MVGP(
        Diffusion(data.adjacency, a=SPREAD, b=OWN_VARIANCE),
        Identity(len(data.gene_ids)),
        sigma2=NOISE,
    )
    negatives = sample_unknown(train, _shape(data), len(train), seed)
    values = np.repeat([1.0, 0.0], [len(train), len(negatives)])
    model.fit(np.vstack([train, negatives]), values)
    return Fold(train, test, model, perf_counter() - start)


def _rankings(data: DiseaseGenes, fold: Fold) -> dict[str, ScoreRows]:
    return {
        MODEL: fold.model.scores,
        VOTING: neighbour_voting(data.adjacency, fold.train, _shape(data)),
        POPULARITY: popularity(fold.train, _shape(data)),
    }


def _average(data: DiseaseGenes, folds: list[Fold]) -> dict[str, dict[str, Array]]:
    """Return each method's precision and recall at each length, averaged over folds."""
    measured = [
        {
            method: measure_rows(score, fold.test, fold.train, _shape(data))
            for method, score in _rankings(data, fold).items()
        }
        for fold in folds
    ]
    return {method: _means([fold[method] for fold in measured]) for method in COLOURS}


def _means(folds: list[RowMetrics]) -> dict[str, Array]:
    return {
        "precision": np.mean([fold.precision.mean(axis=0) for fold in folds], axis=0),
        "recall": np.mean([fold.recall.mean(axis=0) for fold in folds], axis=0),
    }


def _score_table(curves: dict[str, dict[str, dict[str, Array]]]) -> Table:
    table = Table(title=f"Mean over {FOLDS} folds", title_justify="left")
    table.add_column("")
    for title, _ in SETTINGS.values():
        table.add_column(f"{title}\nP@20", justify="right")
        table.add_column("\nR@20", justify="right")
    for method in COLOURS:
        at_20 = [curves[key][method][name][-1] for key in SETTINGS for name in METRICS]
        table.add_row(method, *(f"{value:.4f}" for value in at_20))
    return table


def _reach(fold: Fold) -> float:
    """Return the share of withheld pairs whose gene some training disease has."""
    return float(np.isin(fold.test[:, 1], fold.train[:, 1]).mean())


def _reach_text(folds: dict[str, list[Fold]]) -> str:
    shares = [np.mean([_reach(fold) for fold in parts]) for parts in folds.values()]
    return (
        f"Only {shares[0]:.0%} and {shares[1]:.0%} of the withheld pairs have a gene that another "
        "disease has: without side information on genes, no method can place the others."
    )


# One disease


def _example(data: DiseaseGenes, fold: Fold, seed: int) -> dict[str, Any]:
    """Describe one withheld disease with a gene in the model's first 20 and enough phenotypes."""
    found = measure_rows(fold.model.scores, fold.test, fold.train, _shape(data))
    solved = found.rows[found.recall[:, -1] > 0]
    described = np.diff(data.phenotypes.indptr)[solved] >= SHOWN_PHENOTYPES
    row = int(np.random.default_rng(seed).choice(solved[described]))
    scores = fold.model.scores(np.array([row]))[0]
    best = np.argsort(-scores, kind="stable")[:SHOWN_GENES]
    truth = _partners(fold.test, row)
    return {
        "disease": _disease(data, row),
        "withheld_diseases": len(found.rows),
        "withheld_diseases_with_a_gene_in_20": len(solved),
        "phenotypes": _rarest_phenotypes(data, row),
        "genes": [
            {"symbol": _symbol(data, gene), "score": float(scores[gene]), "true": gene in truth}
            for gene in best.tolist()
        ],
        "true_genes": [
            {"symbol": _symbol(data, gene), "rank": 1 + int((scores > scores[gene]).sum())}
            for gene in truth
        ],
        "nearest_diseases": _nearest_diseases(data, fold.train, row),
    }


def _partners(pairs: Index, row: int) -> list[int]:
    return [int(gene) for gene in pairs[pairs[:, 0] == row, 1]]


def _symbol(data: DiseaseGenes, gene: int) -> str:
    return str(data.gene_symbols[gene])


def _disease(data: DiseaseGenes, row: int) -> dict[str, str]:
    return {"id": str(data.disease_ids[row]), "name": str(data.disease_names[row])}


def _rarest_phenotypes(data: DiseaseGenes, row: int) -> list[str]:
    """Name the phenotypes that fewest diseases share: they tell most."""
    terms = data.phenotypes[[row]].indices
    frequency = data.phenotypes.sum(axis=0)[terms]
    rarest = terms[np.argsort(frequency, kind="stable")[:SHOWN_PHENOTYPES]]
    return [str(name) for name in data.phenotype_names[rarest]]


def _nearest_diseases(data: DiseaseGenes, train: Index, row: int) -> list[dict[str, Any]]:
    """List the neighbours in the graph with the genes that training knew."""
    links = data.adjacency[[row]]
    nearest = np.argsort(-links.data, kind="stable")[:SHOWN_NEIGHBOURS]
    return [
        {
            **_disease(data, int(links.indices[i])),
            "similarity": float(links.data[i]),
            "genes": [_symbol(data, gene) for gene in _partners(train, int(links.indices[i]))],
        }
        for i in nearest
    ]


def _print_example(console: Console, example: dict[str, Any]) -> None:
    console.print(
        f"\n[bold]{example['disease']['name']}[/bold] ({example['disease']['id']}), its genes "
        f"withheld. An example where it works, drawn by the seed: of the "
        f"{example['withheld_diseases']} withheld diseases, "
        f"{example['withheld_diseases_with_a_gene_in_20']} have a true gene in the first 20."
    )
    console.print(f"Phenotypes: {', '.join(example['phenotypes'])}.")
    console.print(_gene_table(example))
    console.print(_neighbour_table(example))


def _gene_table(example: dict[str, Any]) -> Table:
    ranks = ", ".join(f"{gene['symbol']} at {gene['rank']}" for gene in example["true_genes"])
    table = Table(title=f"Ranked genes (true: {ranks})", title_justify="left")
    table.add_column("", justify="right")
    table.add_column("Gene")
    table.add_column("Score", justify="right")
    table.add_column("")
    for rank, gene in enumerate(example["genes"], start=1):
        mark, style = ("true gene", "bold green") if gene["true"] else ("", None)
        table.add_row(str(rank), gene["symbol"], f"{gene['score']:.4f}", mark, style=style)
    return table


def _neighbour_table(example: dict[str, Any]) -> Table:
    table = Table(title="Nearest diseases by phenotype", title_justify="left")
    table.add_column("Disease")
    table.add_column("Similarity", justify="right")
    table.add_column("Known genes")
    for disease in example["nearest_diseases"]:
        genes = ", ".join(disease["genes"]) or "(withheld)"
        table.add_row(disease["name"], f"{disease['similarity']:.2f}", genes)
    return table


# What stays


def _summary(
    data: DiseaseGenes,
    folds: dict[str, list[Fold]],
    curves: dict[str, dict[str, dict[str, Array]]],
) -> dict[str, Any]:
    diseases, genes = _shape(data)
    return {
        "table": {"diseases": diseases, "genes": genes, "associations": len(data.pairs)},
        "model": {"a": SPREAD, "b": OWN_VARIANCE, "sigma2": NOISE},
        "folds": FOLDS,
        "ks": list(KS),
        "curves": {
            key: {
                method: {name: values.tolist() for name, values in metrics.items()}
                for method, metrics in methods.items()
            }
            for key, methods in curves.items()
        },
        "reach": {key: float(np.mean([_reach(f) for f in parts])) for key, parts in folds.items()},
        "fits": {key: [_fit_report(fold) for fold in parts] for key, parts in folds.items()},
    }


def _fit_report(fold: Fold) -> dict[str, Any]:
    certificate = fold.model.certificate_
    return {
        "status": str(certificate.status),
        "relative_gap": float(certificate.relative_gap),
        "seconds": round(fold.seconds, 3),
    }


def _write(
    out: Path, results: dict[str, Any], curves: dict[str, dict[str, dict[str, Array]]]
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / RESULTS).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    draw(out / PICTURE, curves)


def draw(path: Path, curves: dict[str, dict[str, dict[str, Array]]]) -> None:
    """Draw recall against the length of the list, one panel for each setting."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("The picture", "demo") from error
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    panels = figure.subplots(1, len(SETTINGS), sharey=True)
    for panel, (key, (title, _)) in zip(panels, SETTINGS.items(), strict=True):
        _draw_panel(panel, title, curves[key])
    panels[0].set_ylabel("recall: share of withheld genes found")
    figure.savefig(path, dpi=160)


def _draw_panel(panel: Any, title: str, curves: dict[str, dict[str, Array]]) -> None:
    for method, colour in COLOURS.items():
        recall = curves[method]["recall"]
        panel.plot(KS, recall, color=colour, lw=2.6 if method == MODEL else 1.6)
    _label_curves(panel, {method: curves[method]["recall"][-1] for method in COLOURS})
    panel.set_title(title, loc="left", fontweight="bold")
    panel.set_xlabel("genes tested, in the order of the ranking")
    panel.set_xticks([1, 5, 10, 15, 20])
    panel.set_xlim(1, 20)
    panel.set_ylim(bottom=0)
    panel.grid(axis="y", color="#e2e8f0")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _label_curves(panel: Any, ends: dict[str, float]) -> None:
    """Write each method's name and last value beside its curve, far enough apart to be read."""
    apart = 0.08 * max(ends.values())
    height = -np.inf
    for method in sorted(ends, key=lambda name: ends[name]):
        height = max(ends[method], height + apart)
        panel.annotate(
            f"{method} {ends[method]:.3f}",
            (20, height),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[method],
            fontweight="bold" if method == MODEL else "normal",
            annotation_clip=False,
        )
