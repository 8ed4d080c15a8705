"""Pictures that are the same bytes for the same numbers."""

import sys

import pytest

from understudy import figures
from understudy.errors import InputError, require_extra

matplotlib = pytest.importorskip("matplotlib")


def drawn(folder):
    from matplotlib.figure import Figure

    with matplotlib.rc_context(figures.STYLE):
        figure = Figure(figsize=(2, 1))
        spot = figure.subplots()
        spot.plot([0, 1], [1, 0], color=figures.COLOURS[0])
        figures.plain(spot)
        return figures.save(figure, folder)


def test_the_same_picture_is_the_same_bytes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = drawn(tmp_path / "a"), drawn(tmp_path / "b")
    assert [path.name for path in first] == ["figure.svg", "figure.png"]
    assert first[0].read_bytes() == second[0].read_bytes()
    assert first[1].read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_names_the_extra(monkeypatch):
    require_extra("drawing", "figures")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"\.\[figures\]"):
        require_extra("drawing", "figures")
