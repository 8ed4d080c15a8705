"""What a run of the page was started with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["LOOPBACK", "Settings"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _jobs() -> int:
    return max(1, (os.cpu_count() or 2) // 2)


@dataclass(frozen=True, slots=True)
class Settings:
    """Public choices of whoever starts the page."""

    folder: Path
    token: str | None = None
    """Makes its holder a custodian; None where only named users may log in."""
    hosts: tuple[str, ...] | None = LOOPBACK
    """Names that this server answers to; None for any. On loopback it keeps other sites' names,
    pointed at this machine, from reaching it."""
    tls: bool = False
    """Whether browsers speak TLS, to this server or to a proxy before it."""
    proxies: tuple[str, ...] = ()
    """Addresses of a proxy, which alone is listened to; see `understudy.web.proxy`."""
    max_upload: int = 1_000_000_000
    """Bytes of one uploaded file."""
    jobs: int = field(default_factory=_jobs)
    """Releases and audits that run at the same time; others wait."""
