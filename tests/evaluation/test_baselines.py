import numpy as np
import pytest
from scipy.sparse import csr_array

from sidelight.errors import InputError
from sidelight.evaluation import neighbour_voting, popularity

TRAIN = np.array([[0, 2], [1, 2], [3, 0], [4, 2], [4, 1]])


def test_popularity_counts_the_training_pairs_of_each_column():
    scores = popularity(TRAIN, (5, 4))(np.array([3, 0]))
    np.testing.assert_array_equal(scores, [[1, 1, 3, 0]] * 2)


def test_neighbours_vote_with_their_weight():
    rng = np.random.default_rng(0)
    weights = np.triu(rng.uniform(size=(5, 5)) * rng.integers(0, 2, (5, 5)), 1)
    adjacency = weights + weights.T
    table = np.zeros((5, 3))
    table[TRAIN[:, 0], TRAIN[:, 1]] = 1.0
    rows = np.array([4, 1, 0])
    scores = neighbour_voting(csr_array(adjacency), TRAIN, (5, 3))(rows)
    np.testing.assert_allclose(scores, adjacency[rows] @ table, rtol=1e-15)


def test_an_adjacency_of_other_rows_is_refused():
    with pytest.raises(InputError, match=r"the adjacency is \(3, 3\) and the table has 5 rows"):
        neighbour_voting(csr_array((3, 3)), TRAIN, (5, 3))
