import numpy as np
import pytest

from sidelight.covariance import Dense, Diffusion, Features, Identity, RandomWalk

WEIGHTS = np.random.default_rng(0).normal(size=6)


def weighted(size):
    upper = np.triu(np.random.default_rng(1).uniform(0.5, 2, size=(size, size)), k=1)
    upper[0, 2] = upper[2, 4] = 0
    return upper + upper.T


@pytest.mark.parametrize("adjacency", [weighted(6), 2.0 * (weighted(6) > 0)])
@pytest.mark.parametrize(
    "make",
    [lambda A: Diffusion(A, 1.5, 0.3), lambda A: Diffusion(A, 9.0, 0.0), lambda A: RandomWalk(A)],
    ids=["diffusion", "far", "walk"],
)
def test_a_neighbour_carries_what_comes_in_through_its_link(make, adjacency):
    C, scale = make(adjacency), adjacency.sum(axis=0) ** -0.5
    N = scale[:, None] * adjacency * scale
    own = make(np.zeros((1, 1))).diagonal()[0]
    passed = np.linalg.solve(N, (C.dense() - own * np.eye(6)) @ WEIGHTS)
    for item in range(6):
        carried = C.carriers(item, WEIGHTS)
        np.testing.assert_array_equal(carried.items, np.flatnonzero(adjacency[item]))
        np.testing.assert_allclose(carried.amounts, (N[item] * passed)[carried.items], atol=1e-11)
        assert carried.own == pytest.approx(own * WEIGHTS[item], rel=1e-14)


def test_neighbours_are_a_row_of_the_normalised_adjacency():
    graph = Diffusion(weighted(6)).graph
    nodes, links = graph.neighbours(2)
    expected = weighted(6)[2] / np.sqrt(graph.degree[2] * graph.degree)
    np.testing.assert_array_equal(nodes, np.flatnonzero(expected))
    np.testing.assert_allclose(links, expected[nodes], rtol=1e-15)


def test_weights_that_are_nought_carry_nothing():
    carried = Dense(np.full((6, 6), 2.0)).carriers(1, np.array([0, 3.0, 0, 1, 0, -1]))
    assert carried.own == 6
    np.testing.assert_array_equal(carried.items, [3, 5])
    np.testing.assert_array_equal(carried.amounts, [2, -2])


def test_a_sum_names_each_item_once():
    linear = Features(np.ones((6, 1)))
    carried = (2 * linear + 3 * linear + Identity(6)).carriers(0, np.ones(6))
    assert carried.own == 6
    np.testing.assert_array_equal(carried.items, np.arange(1, 6))
    np.testing.assert_array_equal(carried.amounts, np.full(5, 5.0))


def test_a_part_without_weight_carries_nothing():
    carried = (Identity(6) + 0.0 * Features(np.ones((6, 1)))).carriers(0, np.ones(6))
    assert carried.own == 1
    assert len(carried.items) == len(carried.amounts) == 0
    assert carried.amounts.dtype == np.float64


def test_weights_are_left_alone():
    weights = WEIGHTS.copy()
    weights.setflags(write=False)
    for C in (Identity(6), Dense(np.eye(6)), Diffusion(weighted(6)), RandomWalk(weighted(6))):
        C.carriers(0, weights)
