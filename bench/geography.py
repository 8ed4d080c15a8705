"""Places on land: houses of King County and their stand-in, side by side.

`python -m bench geography --houses houses.csv [--mask land.geojson] [--epsilon 1] [--out docs/figures]`

The table (latitude, longitude, price, …) is public, so exact errors may be shown. Without `--mask` the
land is the outline below: a few dozen points written down by hand from general knowledge of where Puget
Sound, Lake Washington, Lake Sammamish, Mercer Island and Vashon lie. It is a coarse public guess, good
to a few hundred metres at best, and was not drawn from the houses.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import understudy as us
from understudy import figures
from understudy.constraints.masks import read_mask
from understudy.errors import require_extra
from understudy.queries import counts
from understudy.schema import Boolean, Geography, Integer, Number, Polygons, Schema

BOX = (47.15, 47.80, -122.55, -121.30)
SHOWN = -121.65
"""How far east the map reaches: beyond there are mountains, and two dozen houses."""
BINS = 48
KEY = 1

SOUTH, NORTH, EAST = 47.0, 47.9, -121.2
MAINLAND = (
    (-122.46, SOUTH), (-122.46, 47.26), (-122.44, 47.305), (-122.415, 47.323), (-122.36, 47.333),
    (-122.325, 47.348), (-122.325, 47.372), (-122.330, 47.400), (-122.345, 47.436),
    (-122.382, 47.452), (-122.364, 47.470), (-122.372, 47.495), (-122.398, 47.513),
    (-122.396, 47.530), (-122.404, 47.555), (-122.421, 47.576), (-122.388, 47.595),
    (-122.362, 47.582), (-122.338, 47.600), (-122.355, 47.617), (-122.382, 47.628),
    (-122.400, 47.633), (-122.437, 47.662), (-122.409, 47.678), (-122.406, 47.695),
    (-122.381, 47.712), (-122.380, 47.750), (-122.390, 47.770), (-122.388, NORTH), (EAST, NORTH),
    (EAST, SOUTH),
)  # fmt: skip
LAKE_WASHINGTON = (
    (-122.262, 47.755), (-122.277, 47.748), (-122.281, 47.735), (-122.271, 47.705),
    (-122.248, 47.688), (-122.250, 47.672), (-122.266, 47.655), (-122.275, 47.645),
    (-122.276, 47.636), (-122.280, 47.610), (-122.284, 47.595), (-122.286, 47.575),
    (-122.262, 47.565), (-122.249, 47.556), (-122.258, 47.535), (-122.258, 47.518),
    (-122.235, 47.503), (-122.212, 47.500), (-122.206, 47.523), (-122.203, 47.545),
    (-122.194, 47.565), (-122.198, 47.585), (-122.212, 47.607), (-122.240, 47.612),
    (-122.243, 47.640), (-122.215, 47.645), (-122.211, 47.660), (-122.213, 47.690),
    (-122.240, 47.705), (-122.262, 47.727), (-122.256, 47.745),
)  # fmt: skip
MERCER_ISLAND = (
    (-122.246, 47.587), (-122.229, 47.594), (-122.210, 47.588), (-122.207, 47.570),
    (-122.207, 47.550), (-122.222, 47.527), (-122.240, 47.540), (-122.243, 47.565),
)  # fmt: skip
LAKE_SAMMAMISH = (
    (-122.098, 47.655), (-122.110, 47.620), (-122.098, 47.585), (-122.073, 47.560),
    (-122.066, 47.565), (-122.075, 47.595), (-122.083, 47.620), (-122.087, 47.650),
)  # fmt: skip
VASHON = (
    (-122.463, 47.512), (-122.436, 47.495), (-122.440, 47.460), (-122.448, 47.420),
    (-122.437, 47.403), (-122.373, 47.390), (-122.408, 47.352), (-122.455, 47.342),
    (-122.508, 47.332), (-122.530, 47.350), (-122.524, 47.420), (-122.495, 47.460),
    (-122.478, 47.500),
)  # fmt: skip
LAND = Polygons((MAINLAND, LAKE_WASHINGTON, MERCER_ISLAND, LAKE_SAMMAMISH, VASHON))


def schema(mask: Any) -> Schema:
    """Public facts: a box around the county, round bounds for the rest."""
    south, north, west, east = BOX
    return Schema(
        (
            Number("lat", south, north, BINS, decimals=4),
            Number("long", west, east, BINS, decimals=3),
            Number("price", edges=(0, 2e5, 3e5, 4e5, 5e5, 6e5, 8e5, 1e6, 1.5e6, 2.5e6, 1e7)),
            Integer("bedrooms", 0, 8),
            Number("sqft_living", 0, 15_000, edges=(0, 1000, 1500, 2000, 2500, 3000, 4000, 15_000)),
            Integer("grade", 1, 13),
            Boolean("waterfront"),
        ),
        geography=(Geography("lat", "long", mask),),
    )  # fmt: skip


def main(options: list[str] | None = None) -> None:
    """Release, compare, draw."""
    parser = argparse.ArgumentParser(prog="python -m bench geography")
    parser.add_argument("--houses", required=True, type=Path)
    parser.add_argument("--mask", type=Path, help="a mask file; by default the outline above")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    asked = parser.parse_args(options)
    mask = LAND if asked.mask is None else read_mask(asked.mask)
    facts = schema(mask)
    names = [column.name for column in facts.columns]
    real = csv.read_csv(asked.houses).select(names)
    begun = time.process_time()
    made = us.release(
        real, facts, epsilon=asked.epsilon, delta="1e-9", method=asked.method, key=KEY
    )  # fmt: skip
    cpu = time.process_time() - begun
    bare = Schema(facts.columns)
    moved = off_mask(made.model.sample(made.rows.num_rows, np.random.default_rng(KEY)), facts)
    print(f"| | {real.num_rows:,} sales | stand-in, ε = {asked.epsilon} |\n|---|---|---|")
    print(f"| off the mask | {off(real, mask):.2%} | {off(made.rows, mask):.2%} |")
    print(f"| drawn by the model in bins without land, then moved | | {moved:.2%} |")
    cliques = made.workload.cliques
    tables = [counts(bare.encode(t), bare.shape, cliques) for t in (real, made.rows)]
    gaps = [
        np.abs(r / real.num_rows - f / made.rows.num_rows).sum() / 2
        for r, f in zip(*tables, strict=True)
    ]
    place = cliques.index((0, 1))
    print(f"| total variation of {BINS} × {BINS} bins of place | | {gaps[place]:.3f} |")
    print(f"| mean total variation of all {len(gaps)} pairs | | {np.mean(gaps):.3f} |")
    print(f"| certificate, {cpu:.0f} CPU s | | {made.certificate} |")
    draw(real, made.rows, mask, asked.epsilon, asked.out)


def places(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Latitudes and longitudes."""
    return table.column("lat").to_numpy(), table.column("long").to_numpy()


def off(table: pa.Table, mask: Any) -> float:
    """The share of rows off the mask."""
    return float(1 - mask.contains(*places(table)).mean())


def off_mask(codes: list[np.ndarray], facts: Schema) -> float:
    """The share of rows whose bins hold no land."""
    moved = facts.project(codes)
    return float(np.mean((moved[0] != codes[0]) | (moved[1] != codes[1])))


def draw(real: pa.Table, fake: pa.Table, mask: Any, epsilon: str, folder: Path) -> None:
    """Both densities on one scale, water blue."""
    require_extra("drawing", "figures")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    south, north, west, east = BOX
    east = SHOWN
    lines, columns = np.linspace(south, north, 121), np.linspace(west, east, 114)
    water = ~mask.over(np.linspace(south, north, 600), np.linspace(west, east, 565))
    grids = [np.histogram2d(*places(table), (lines, columns))[0] for table in (real, fake)]
    top = max(grid.max() for grid in grids)
    with plt.rc_context(figures.STYLE):
        figure, spots = plt.subplots(1, 2, figsize=(8.4, 4.1), layout="constrained", sharey=True)
        titles = (f"{real.num_rows:,} sales", f"their stand-in, ε = {epsilon}")
        shown = None
        for spot, grid, title in zip(spots, grids, titles, strict=True):
            spot.imshow(
                np.where(water, 1.0, np.nan), origin="lower", extent=(west, east, south, north),
                cmap="Blues", vmin=0, vmax=4.5, interpolation="nearest", zorder=0,
            )  # fmt: skip
            shown = spot.imshow(
                np.where(grid > 0, grid, np.nan), origin="lower",
                extent=(west, east, south, north), cmap="YlOrBr",
                norm=LogNorm(0.5, top), interpolation="nearest", zorder=1,
            )  # fmt: skip
            spot.set_aspect(1 / np.cos(np.radians((south + north) / 2)))
            spot.set_title(title, loc="left", fontsize=9.5)
            spot.set_xlabel("longitude")
            spot.set_xticks(np.arange(-122.4, east, 0.2))
            spot.tick_params(length=2.5)
            for side in spot.spines.values():
                side.set_color(figures.FAINT)
        spots[0].set_ylabel("latitude")
        bar = figure.colorbar(shown, ax=spots, shrink=0.8, pad=0.015, aspect=28)
        bar.outline.set_visible(False)
        ticks = [tick for tick in (1, 3, 10, 30, 100, 300) if tick <= top]
        bar.set_ticks(ticks, labels=[str(tick) for tick in ticks])
        bar.ax.minorticks_off()
        bar.set_label("rows a pixel")
        folder.mkdir(parents=True, exist_ok=True)
        for file in figures.save(figure, folder, "geography"):
            print(f"wrote {file}")
        plt.close(figure)
