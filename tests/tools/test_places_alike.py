"""Both verifiers take the same places for allowed."""

import tomllib

import numpy as np
import pytest

from tools import verify_release as stranger
from understudy.schema import Geography, Number, Polygons, Raster, Schema

MASKS = {
    "polygons": Polygons(
        (
            ((0, 0), (4, 0), (4, 4), (2, 1), (0, 4)),
            ((0.5, 0.5), (1.0, 0.5), (1.0, 1.0)),
            ((6, 6), (7, 6), (6.5, 7)),
        )
    ),
    "grid": Raster((0.0, 0.0), 0.75, ("00110", "01111", "11011", "00001")),
}


@pytest.mark.parametrize("kind", MASKS)
def test_they_agree_point_by_point(kind):
    mask = MASKS[kind]
    columns = Number("lat", -1, 8, 9), Number("long", -1, 8, 9)
    text = Schema(columns, geography=(Geography("lat", "long", mask),)).dumps()
    (place,) = tomllib.loads(text)["geography"]
    # Many points at vertices, on edges and at the corners of pixels.
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.integers(-4, 32, (2000, 2)) / 4, rng.uniform(-1, 8, (2000, 2))])
    ours = mask.contains(points[:, 0], points[:, 1])
    theirs = [stranger.on_mask(y, x, place) for y, x in points.tolist()]
    assert ours.tolist() == theirs
    assert 0 < sum(theirs) < len(theirs)
