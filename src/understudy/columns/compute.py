"""Arrow's compute functions; they are made at run time, so a type checker cannot know them."""

from typing import Any

import pyarrow.compute

__all__ = ["pc"]

pc: Any = pyarrow.compute
