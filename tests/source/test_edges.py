"""Lists of edges: what is one, and that no row is quoted."""

import pyarrow as pa
import pytest

from understudy.errors import InputError
from understudy.schema.nodes import Nodes
from understudy.source.edges import edge_source


def test_repetitions_directions_loops_and_strangers_are_no_further_edges():
    nodes = Nodes.of(["a", "b", "c"])
    once = pa.table({"x": ["a", "b"], "y": ["b", "c"]})
    often = pa.table(
        {"x": ["b", "a", "c", "a", "a", "z", None], "y": ["a", "b", "b", "b", "a", "a", "b"]}
    )
    shape = nodes.schema
    both = [edge_source(table, nodes).bind(shape).marginals([(0, 1)]) for table in (once, often)]
    from understudy.privacy.sensitive import reveal

    first, second = (reveal(each)[0] for each in both)
    assert first.tolist() == second.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("name", ["edges.csv", "edges.txt"])
def test_rows_that_cannot_be_read_are_not_quoted(tmp_path, name):
    (tmp_path / name).write_bytes(b'from,to\nsecret-a,secret-b,secret-c\n\xff\xfe,secret-d\n"open')
    try:
        said = repr(edge_source(tmp_path / name, Nodes.of(["a", "b"])))
    except InputError as error:
        said = str(error)
    assert said
    assert "secret" not in said
