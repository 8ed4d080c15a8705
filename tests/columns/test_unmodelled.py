import numpy as np
import pyarrow as pa

from understudy.columns import Category, Identifier, UndeclaredBins, UndeclaredCategory


def test_ids_are_fresh_and_unique():
    column = Identifier("id", "P-{:06d}")
    assert column.generate(3).to_pylist() == ["P-000001", "P-000002", "P-000003"]
    assert Identifier("id", "{}", dtype="int32").generate(2).equals(pa.array([1, 2], pa.int32()))
    assert column.legal(pa.array(["P-000001", "P-000001", None, "Q"])).tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_what_is_found_is_admitted_and_no_larger_than_planned():
    column = UndeclaredCategory("c", values="discover", max_values=2)
    found = column.found(["b", "a", "OTHER", "c"])
    assert found.values == ("a", "b")
    assert found.other == "OTHER"
    assert column.admits(found)
    assert found.size <= column.largest().size
    assert not column.admits(Category("c", ("a",)))
    assert column.found([]).values == ("OTHER",)


def test_quantiles_fall_where_the_rows_are():
    column = UndeclaredBins("x", "integer", {"lower": 0, "upper": 100}, 4)
    fine = column.fine()
    counts = np.zeros(fine.size, np.int64)
    counts[: fine.size // 2] = 10
    found = column.found(counts)
    assert column.admits(found)
    assert found.edges[0] == 0
    assert found.edges[-1] == 100
    assert max(found.edges[1:-1]) <= 51
    assert column.found(np.zeros(fine.size, np.int64)) == column.largest()
