"""The documentation builds without a warning, and asks the network for nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from .test_readme import ROOT


@pytest.mark.slow
def test_the_site_builds_strictly_and_offline(tmp_path):
    pytest.importorskip("mkdocs")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    said = built.stdout + built.stderr
    assert built.returncode == 0, said
    assert "WARNING" not in said
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(https?:[^\"]+)", text
        )
        assert loaded == [], page.name
    interface = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    for name in ("epsilon_for", "Release", "Certificate", "render", "BudgetExhausted"):
        assert name in interface


def test_two_columns_become_a_list():
    pytest.importorskip("griffe")
    import importlib.util

    spec = importlib.util.spec_from_file_location("docstrings", ROOT / "tools" / "docstrings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "Do it.\n\nrows   how many;\n       by default all\nkey    a seed\n\nMore of it."
    assert module.listed(text) == (
        "Do it.\n\n- `rows`: how many;\n  by default all\n- `key`: a seed\n\nMore of it."
    )
