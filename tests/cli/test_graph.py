"""`understudy graph`."""

import numpy as np
import pyarrow as pa

from understudy.cli import main

BLOCKS = {f"n{i}": "left" if i < 30 else "right" for i in range(60)}


def edges(key: int = 0) -> pa.Table:
    """Two blocks with few edges between them."""
    rng = np.random.default_rng(key)
    rows = []
    for a in range(60):
        for b in range(a + 1, 60):
            if rng.random() < (0.3 if (a < 30) == (b < 30) else 0.02):
                rows.append((f"n{a}", f"n{b}") if rng.random() < 0.5 else (f"n{b}", f"n{a}"))
    return pa.table({"from": [r[0] for r in rows], "to": [r[1] for r in rows]})


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(" ".join(row) for row in zip(*edges().to_pydict().values(), strict=True))
    (tmp_path / "mails.txt").write_text("# from to\n" + text)
    (tmp_path / "people.txt").write_text("\n".join(f"{n} {b}" for n, b in BLOCKS.items()))
    start = ["graph", "release", "mails.txt", "--nodes", "people.txt", "--epsilon", "5"]
    assert main([*start, "--out", "a.release", "--unit", "node"]) == 2
    assert "hide a node" in " ".join(capsys.readouterr().err.split())
    assert main([*start, "--out", "t.release", "--triangles"]) == 0
    assert "its triangles were counted, ±" in capsys.readouterr().out
    assert main([*start, "--out", "a.release", "--edge-list", "a.csv"]) == 0
    said = capsys.readouterr().out
    assert "one row is one edge" in " ".join(said.split())
    assert "not measured" in said
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == '"source","target"'
    assert main(["verify", "a.release"]) == 0
    assert main(["graph", "sample", "a.release", "--out", "b.csv", "--key", "3"]) == 0
    lines = [(tmp_path / name).read_text().splitlines() for name in ("a.csv", "b.csv")]
    assert len(lines[0]) == len(lines[1])
    assert lines[0] != lines[1]
