"""The public nodes of a graph."""

import pytest

from understudy.errors import InputError
from understudy.schema.nodes import Nodes


def test_nodes_from_files_ranges_and_numbers(tmp_path):
    (tmp_path / "nodes.txt").write_text("# a remark\na 2\nb\t1\nc,2\n")
    nodes = Nodes.of(tmp_path / "nodes.txt")
    assert (nodes.names, nodes.blocks) == (("b", "a", "c"), ("1", "2", "2"))
    assert (nodes.kinds, nodes.sizes) == (("1", "2"), (1, 2))
    assert Nodes.of("1..3").names == ("1", "2", "3")
    assert Nodes.of("3") == Nodes.of(3)
    (tmp_path / "nodes.txt").write_text("a 2\nb\n")
    with pytest.raises(InputError, match="every line"):
        Nodes.of(tmp_path / "nodes.txt")
