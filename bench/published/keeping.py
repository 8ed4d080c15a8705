"""Results on disk: a benchmark that is stopped loses the run it was at, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

__all__ = ["keep"]


def keep(path: Path, body: dict[str, Any]) -> None:
    """Replace the file at once, so that it is never half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".json.part")
    beside.write_text(json.dumps(body, indent=1, ensure_ascii=False), encoding="utf-8")
    os.replace(beside, path)
