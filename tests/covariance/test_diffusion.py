import os
from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp

from sidelight.covariance import Diffusion
from sidelight.covariance.graph import Graph, recur, recur_plain
from sidelight.errors import InputError

PATH = np.array([[0.0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]])


def random_graph(size, weighted, seed=0):
    rng = np.random.default_rng(seed)
    upper = sp.triu(sp.random_array((size, size), density=2 / size, rng=rng), k=1)
    links = sp.csr_array(upper + upper.T)
    links.data = 1 + 3 * links.data if weighted else np.ones_like(links.data)
    return sp.csr_array((links + links.T) / 2)


def normalised(adjacency):
    degree = adjacency.sum(axis=1)
    scale = np.array([d**-0.5 if d > 0 else 0.0 for d in degree])
    return scale[:, None] * adjacency.toarray() * scale


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (4, 0.01), (30, 0), (0.2, 3), (10, 1e-6)])
def test_root_matches_eigenvectors_at_500_nodes(a, b, weighted):
    adjacency = random_graph(500, weighted)
    assert (adjacency.sum(axis=1) == 0).sum() > 3
    values, vectors = sl.eigh(np.eye(500) - normalised(adjacency))
    variance = np.exp(-a * values) + b
    C = Diffusion(adjacency, a, b)
    root = C.root(np.eye(500))
    np.testing.assert_allclose(root, (vectors * np.sqrt(variance)) @ vectors.T, atol=1e-10)
    np.testing.assert_allclose(C.dense(), (vectors * variance) @ vectors.T, atol=1e-12)
    np.testing.assert_allclose(root @ root.T, C.dense(), atol=1e-12)
    np.testing.assert_allclose(root, root.T, atol=1e-13)


def test_root_of_the_paper_matches_sqrtm():
    adjacency = random_graph(60, weighted=True)
    C = sl.expm(normalised(adjacency) - np.eye(60)) + np.eye(60)
    np.testing.assert_allclose(Diffusion(adjacency).root(np.eye(60)), sl.sqrtm(C), atol=1e-12)


def test_an_isolated_node_keeps_its_own_variance():
    C = Diffusion(PATH, a=2.0, b=0.25).dense()
    np.testing.assert_allclose(C[3], [0, 0, 0, np.exp(-2.0) + 0.25], rtol=1e-14, atol=1e-16)


def test_components_do_not_meet():
    C = Diffusion(sl.block_diag(PATH, PATH), a=3.0).dense()
    assert (C[:4, 4:] == 0).all()
    np.testing.assert_array_equal(C[:4, :4], C[4:, 4:])


@pytest.mark.parametrize("size", [1, 5])
def test_a_graph_without_links(size):
    C = Diffusion(np.zeros((size, size)), a=1.0, b=2.0)
    np.testing.assert_allclose(C.dense(), (np.exp(-1) + 2) * np.eye(size), rtol=1e-14)
    np.testing.assert_allclose(C.diagonal(), np.full(size, np.exp(-1) + 2), rtol=1e-14)


def test_an_empty_graph():
    assert Diffusion(np.zeros((0, 0))).apply(np.zeros((0, 2))).shape == (0, 2)
    assert Diffusion(networkx.Graph()).diagonal().shape == (0,)


def test_the_scale_of_the_weights_does_not_matter():
    np.testing.assert_allclose(Diffusion(PATH).dense(), Diffusion(7 * PATH).dense(), atol=1e-15)
    unweighted = (PATH > 0) * 1.0
    np.testing.assert_array_equal(Diffusion(unweighted).dense(), Diffusion(16 * unweighted).dense())


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_takes_any_sparse_format(kind):
    expected = Diffusion(PATH).dense()
    np.testing.assert_array_equal(Diffusion(sp.csr_array(PATH).asformat(kind)).dense(), expected)
    np.testing.assert_array_equal(Diffusion(sp.csr_matrix(PATH).asformat(kind)).dense(), expected)


def test_takes_networkx_in_the_order_of_its_nodes():
    graph = networkx.Graph()
    graph.add_nodes_from("abcd")
    graph.add_weighted_edges_from([("c", "b", 2.0), ("b", "a", 1.0)])
    np.testing.assert_array_equal(Diffusion(graph).dense(), Diffusion(PATH).dense())


def test_stores_32_bit_indices_and_one_weight_for_all():
    graph = Diffusion(sp.csr_array(PATH > 0)).graph
    assert graph.indptr.dtype == graph.indices.dtype == np.int32
    assert graph.weights.tolist() == [1.0]
    np.testing.assert_array_equal(graph.adjacency().toarray(), PATH > 0)
    np.testing.assert_array_equal(Graph(PATH).adjacency().toarray(), PATH)


def test_does_not_keep_nor_change_the_adjacency():
    adjacency = sp.csr_array(PATH)
    C = Diffusion(adjacency)
    before = C.dense()
    np.testing.assert_array_equal(adjacency.toarray(), PATH)
    adjacency.data[:] = 5.0
    np.testing.assert_array_equal(C.dense(), before)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 3, 32])
def test_the_kernel_agrees_with_its_twin(weighted, width):
    graph = Graph(random_graph(300, weighted))
    X, source, target = np.random.default_rng(0).normal(size=(3, 300, width))
    expected = target.copy()
    recur_plain(graph, 2.0, 0.3, X, source, expected)
    graph.step(2.0, 0.3, X, source, target)
    np.testing.assert_allclose(target, expected, atol=1e-14)


def test_the_kernel_keeps_to_its_rows():
    graph = Graph(PATH)
    X, source, target = np.random.default_rng(0).normal(size=(3, 4, 2))
    expected, untouched = target.copy(), target[[0, 3]].copy()
    recur_plain(graph, 1.0, 0.5, X, source, expected)
    spread = np.array([1.0, 1 / 3, 1 / 2, 0.0])
    links = graph.indptr, graph.indices, graph.weights
    recur(1, 3, *links, spread, 1.0, 0.5, X, source, target)
    np.testing.assert_allclose(target[1:3], expected[1:3], rtol=1e-14)
    np.testing.assert_array_equal(target[[0, 3]], untouched)


def test_threads_change_nothing(monkeypatch):
    adjacency = random_graph(3000, weighted=True)
    X = np.random.default_rng(0).normal(size=(3000, 40))
    monkeypatch.setenv("SIDELIGHT_THREADS", "1")
    alone = Diffusion(adjacency).root(X)
    monkeypatch.setenv("SIDELIGHT_THREADS", "3")
    np.testing.assert_array_equal(Diffusion(adjacency).root(X), alone)


def test_shares_the_graph_of_another():
    first = Diffusion(PATH)
    second = Diffusion(first.graph, a=3.0, b=0.5)
    assert second.graph is first.graph
    np.testing.assert_array_equal(second.dense(), Diffusion(PATH, a=3.0, b=0.5).dense())


def test_permuting_the_nodes_permutes_the_covariance():
    order = np.array([2, 0, 3, 1])
    permuted = Diffusion(PATH[np.ix_(order, order)], a=2.0).dense()
    np.testing.assert_allclose(
        permuted, Diffusion(PATH, a=2.0).dense()[np.ix_(order, order)], atol=1e-15
    )


def test_new_nodes_are_independent_of_their_company():
    C = Diffusion(PATH, a=2.0, b=0.5)
    links = np.array([[1.0, 0, 0, 2], [0, 3, 0, 1], [0, 0, 0, 0]])
    together, alone = C.cross(links), C.cross(links[1:2])
    np.testing.assert_array_equal(together.apply(np.eye(4))[1:2], alone.apply(np.eye(4)))
    np.testing.assert_allclose(together.diagonal()[1:2], alone.diagonal(), rtol=1e-15)


def test_a_new_node_without_links_is_an_isolated_one():
    cross = Diffusion(PATH, a=2.0, b=0.5).cross(sp.coo_array((1, 4)))
    assert (cross.apply(np.eye(4)) == 0).all()
    np.testing.assert_allclose(cross.block(), [[np.exp(-2.0) + 0.5]], rtol=1e-15)


def test_a_new_node_never_varies_more_than_a_known_one_can():
    links = np.random.default_rng(0).exponential(100.0, size=(20, 4))
    for a in (0.0, 0.5, 5.0, 200.0):
        assert (Diffusion(PATH, a, b=1.0).cross(links).diagonal() <= 2 + 1e-12).all()


@pytest.mark.parametrize("a", [1e-12, 1e-3, 1.0, 50.0, 2000.0])
def test_heat_of_a_new_node_is_stable_at_both_ends(a):
    """On one edge, ``f(L)`` has the eigenvalues ``f(0)`` and ``f(2)``."""
    edge = np.array([[0.0, 1], [1, 0]])
    cross = Diffusion(edge, a, b=0.0).cross(np.array([[1.0, 0]]))
    at_0, at_2 = -np.expm1(-a / 2), np.exp(-a / 2) * -np.expm1(-a / 2)
    expected = [[(at_0 + at_2 * np.exp(-a)) / 2, (at_0 - at_2 * np.exp(-a)) / 2]]
    np.testing.assert_allclose(cross.apply(np.eye(2)), expected, rtol=0, atol=1e-13 * at_0)


def with_entry(row, column, value):
    adjacency = PATH.copy()
    adjacency[row, column] = value
    return adjacency


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (PATH[:3], r"expected a square matrix, found shape \(3, 4\)"),
        (PATH[0], r"expected two dimensions, found shape \(4,\)"),
        (with_entry(2, 2, 1.0), "node 2 is linked to itself"),
        (with_entry(2, 1, np.nan), r"entry \(2, 1\) is not finite"),
        (with_entry(2, 1, np.inf), r"entry \(2, 1\) is not finite"),
        (with_entry(1, 0, -1.0), r"entry \(1, 0\) is negative"),
        (with_entry(3, 1, 1.0), "the link from node [13] to node [13] differs from the link back"),
        (with_entry(2, 1, 2.1), "the link from node [12] to node [12] differs from the link back"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sp.coo_array])
def test_refuses_what_is_no_undirected_graph(adjacency, message, form):
    with pytest.raises(InputError, match=message):
        Diffusion(form(adjacency))


def test_refuses_a_directed_networkx_graph():
    with pytest.raises(InputError, match="differs from the link back"):
        Diffusion(networkx.DiGraph([(0, 1)]))


def test_evens_out_asymmetry_of_rounding():
    nearly = with_entry(1, 0, 1 + 1e-12)
    np.testing.assert_array_equal(Diffusion(nearly).dense(), Diffusion(nearly.T).dense())


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "1", None])
@pytest.mark.parametrize("name", ["a", "b"])
def test_refuses_impossible_parameters(name, value):
    with pytest.raises(InputError, match=f"{name} must be a finite number >= 0"):
        Diffusion(PATH, **{name: value})


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (np.ones((2, 3)), r"expected shape \(any, 4\), found shape \(2, 3\)"),
        (np.ones(4), r"found shape \(4,\)"),
        (np.array([[0, 0, -1.0, 0]]), r"links: entry \(0, 2\) is negative"),
        (np.array([[0, 0, np.nan, 0]]), r"links: entry \(0, 2\) is not finite"),
    ],
)
def test_refuses_impossible_links(links, message):
    with pytest.raises(InputError, match=message):
        Diffusion(PATH).cross(links)


@pytest.mark.skipif("SIDELIGHT_DATA" not in os.environ, reason="SIDELIGHT_DATA is not set")
def test_root_squares_to_the_covariance_of_a_gene_graph():
    folder = Path(os.environ["SIDELIGHT_DATA"]) / "medline"
    edges = np.loadtxt(folder / "col_edges.tsv", skiprows=1, dtype=np.int64)
    names, numbers = np.unique(edges, return_inverse=True)
    row, column = numbers.reshape(-1, 2)[edges[:, 0] != edges[:, 1]].T
    links = sp.coo_array((np.ones(len(row)), (row, column)), shape=(len(names),) * 2).tocsr()
    C = Diffusion((links + links.T).astype(bool))
    X = np.random.default_rng(0).normal(size=(C.size, 3))
    np.testing.assert_allclose(C.root(C.root(X)), C.apply(X), atol=1e-12)
    some = np.array([0, 7, C.size - 1])
    np.testing.assert_allclose(
        C.graph.diagonal(C._whole.coefficients, some), C.rows(some)[[0, 1, 2], some], rtol=1e-13
    )
