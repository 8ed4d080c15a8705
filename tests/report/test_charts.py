"""Figures and colours of a report that everyone can read."""

from __future__ import annotations

import colorsys
from dataclasses import replace

import pytest

from understudy import report
from understudy.report.charts import COLOURS, TEXT_ON, tick

from .conftest import Page


def test_every_figure_has_a_text_alternative(made):
    page = Page(report.render(made))
    pictures = page.all("svg")
    assert len(pictures) > 6
    for picture in pictures:
        if picture.get("aria-hidden") != "true":
            assert picture["role"] == "img"
            assert len(picture["aria-label"]) > 30
    assert page.text.count("in numbers") >= len(made.schema.modelled)


def test_no_group_is_called_accurate_that_is_larger_than_the_table(made):
    for bound in (0.02, 0.2):
        certificate = replace(made.certificate, bound=bound)
        html = report.render(replace(made, certificate=certificate))
        assert ("none is so large that its share is accurate" in html) == (bound == 0.2)
        assert ("the number of one ten" in html) == (bound == 0.02)


def test_the_ends_of_an_axis_have_commas_only_where_they_are_no_years():
    told = ["1900", "2015.0", "200000.00", "-12000", "2015-01-01"]
    assert [tick(each) for each in told] == ["1900", "2015", "200,000", "-12,000", "2015-01-01"]


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])
def test_contrast_is_aa(ground):
    palette = {name: both[ground] for name, both in COLOURS.items()}
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for ground, inks in TEXT_ON.items():
        for ink in inks:
            assert contrast(palette[ground], palette[ink]) >= 4.5, (ground, ink)
    # What is no text, but means something: WCAG 1.4.11 asks for 3.
    for mark in ("bar", "noise"):
        assert contrast(palette["paper"], palette[mark]) >= 3, mark
    assert contrast(palette["bar"], palette["noise"]) >= 2
    greys = [colorsys.rgb_to_hls(*(int(palette[f"heat{i}"][k : k + 2], 16) / 255 for k in (1, 3, 5)))
             for i in range(6)]  # fmt: skip
    steps = [lightness for _, lightness, _ in greys]
    assert steps in (sorted(steps), sorted(steps, reverse=True))  # read without colour, too
