"""The compiled exchange of children, on families small enough to be counted by hand."""

import numpy as np
import pytest

from understudy.models import _exchange as kernels

# One table (a parent's code, 2; a child's code, 3) of views in which nobody has a sibling's column.
# Rows: the parent's column, the size, where a child stands, the child's column, its sibling's; then
# where the table begins, and what is added for nobody.
STRIDES = np.array([[3], [0], [0], [1], [0], [0], [0]], np.uint32)


def families(*members):
    """(people, homes) of families given as a parent's code and the codes of the children."""
    people, homes = [], []
    for owner, (parent, children) in enumerate(members):
        homes.append([parent, len(children) - 1, len(people), len(children)])
        people += [[code, 0, owner] for code in children]
    return np.array(people, np.uint32), np.array(homes, np.uint32)


def counted(people, homes):
    """Of every child a share of its family, in the cell of its parent and itself."""
    table = np.zeros(6)
    for code, _, owner in people:
        parent, _, _, size = homes[owner]
        table[3 * parent + code] += 1 / size
    return table


def exchange(people, homes, goal, *pairs, scale=1.0):
    """(how many changed places, the slopes that are kept on the way)."""
    slopes = np.stack([scale * (counted(people, homes) - goal), np.full(6, scale)])
    scratch = np.zeros((kernels.SCRATCH, 1), np.uint32)
    tries = np.array(pairs, np.uint32).T.copy()
    return kernels.exchange(people, homes, STRIDES, 1, 0, slopes, tries, scratch), slopes


@pytest.mark.parametrize(
    "members",
    [[(0, (1,))], [(0, (1, 2)), (1, (0, 0, 2))], [(1, (2, 2)), (1, (0,)), (0, (1, 1, 1))]],
)
def test_every_child_counts_for_its_share_of_a_family(members):
    people, homes = families(*members)
    found, scratch = np.zeros(6), np.zeros((kernels.SCRATCH, 1), np.uint32)
    kernels.count(people, homes, STRIDES, 1, 0, found, scratch)
    np.testing.assert_allclose(found, counted(people, homes))


def test_children_change_places_where_that_helps_and_stay_where_it_does_not():
    people, homes = families((0, (2, 2)), (1, (0, 1)))
    there, _ = families((0, (0, 2)), (1, (2, 1)))
    goal = counted(there, homes)
    done, slopes = exchange(people, homes, goal, (0, 2))
    assert done == 1
    np.testing.assert_array_equal(people, there)
    np.testing.assert_allclose(slopes[0], 0, atol=1e-12)  # of counts that are what is wanted
    done, slopes = exchange(people, homes, goal, (0, 2), (1, 3))
    assert done == 0
    np.testing.assert_array_equal(people, there)
    np.testing.assert_allclose(slopes[0], 0, atol=1e-12)


def test_what_helps_to_first_order_alone_is_taken_back():
    """An exchange that goes too far: half a step would help, and there is none."""
    people, homes = families((0, (0,)), (1, (1,)))
    before, goal = people.copy(), counted(people, homes)
    goal[[0, 1]] += -0.4, 0.4
    _, slopes = exchange(people, homes, goal, (0, 1))
    np.testing.assert_array_equal(people, before)
    np.testing.assert_allclose(slopes[0], counted(people, homes) - goal)


@pytest.mark.parametrize(
    ("members", "pair"), [([(0, (0, 1)), (1, (2,))], (0, 1)), ([(0, (1,)), (1, (1,))], (0, 1))]
)
def test_siblings_and_equals_have_nothing_to_exchange(members, pair):
    people, homes = families(*members)
    before = people.copy()
    done, _ = exchange(people, homes, np.zeros(6), pair, scale=3.0)
    assert done == 0
    np.testing.assert_array_equal(people, before)
