from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa
import pytest

import understudy as us
from understudy.releases.static_html import require_static
from understudy.schema import Schema
from understudy.testing import SeededNoise

from ..releases.conftest import TOML, people

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """A page, taken apart: every element with its attributes, and that all are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        require_static(text.encode())
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"never closed: {self._open}"
        self.text = " ".join(self.text.split())  # as a browser shows it

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema.loads(TOML)


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return people(3000)


@pytest.fixture(scope="session")
def made(table, schema) -> us.Release:
    """A release by the default method, with real noise: what is tested holds for every draw."""
    return us.release(table, schema, epsilon=1, variations=True, parameters={"records": 2000})


def seeded(table, schema, **choices) -> us.Release:
    """A release by seeded noise, the same every time."""
    choices = {"epsilon": 1, "key": 0, "noise": SeededNoise(1), **choices}
    return us.release(table, schema, **choices)
