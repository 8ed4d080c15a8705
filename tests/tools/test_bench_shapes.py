"""The errors that `python -m bench shapes` prints are those of the points."""

import numpy as np
import pytest
from bench import shapes


def test_equal_points_have_no_error_and_moved_ones_the_move():
    points = np.concatenate([np.arange(1000), np.full(1000, 50)])
    assert shapes.errors(points, points[::-1]) == (0, 0, 0, 0, 0)
    mean, sd, w1, rank, atom = shapes.errors(points, points + 10)
    assert mean == pytest.approx(10 / points.mean())
    assert sd == pytest.approx(0, abs=1e-12)
    assert w1 == pytest.approx(10 / points.std())
    assert rank == pytest.approx(0.5, abs=0.01)
    assert atom == pytest.approx(0.5, abs=0.001)


def test_every_way_draws_as_many_points_and_the_same_ones_again():
    column = next(shapes.generated(500))
    for way in shapes.WAYS.values():
        found = shapes.runs(column, way, 1.0, 4, 2)
        assert found.shape == (2, 5)
        assert np.array_equal(found, shapes.runs(column, way, 1.0, 4, 2))


def test_a_table_is_printed(capsys):
    shapes.main(["--rows", "500", "--runs", "1", "--epsilon", "1", "--only", "children"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].startswith("| column | bounds | loose | open | q16 | b64 |")
    assert any(line.startswith("| children | ") for line in lines)
