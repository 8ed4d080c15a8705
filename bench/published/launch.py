"""Runs one command and writes down what it used: `python -I -S launch.py USAGE LIMIT COMMAND…`.

A process is charged, in `ru_maxrss`, with the memory of the one that started it, at the moment of the
fork. So the one that starts a run must be small: this one, with nothing but the standard library.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any


def main(into: str, limit: float, command: list[str]) -> None:
    """Wait for the command, end it and its children at the limit, write the usage as JSON."""
    begun = time.monotonic()
    process = subprocess.Popen(command, start_new_session=True)

    def end(*_: Any) -> None:
        os.killpg(process.pid, signal.SIGKILL)

    def stop(*_: Any) -> None:
        end()
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)
    late = False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if not late and time.monotonic() - begun > limit:
            late = True
            end()
        time.sleep(0.05)
    used = {
        "late": late,
        "code": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "memory_mb": usage.ru_maxrss / (1024 if sys.platform != "darwin" else 2**20),
        "wall": time.monotonic() - begun,
    }
    with open(into, "w", encoding="utf-8") as file:
        json.dump(used, file)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
