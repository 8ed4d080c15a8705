"""Guessing is slow: a try counts from before its password is looked at, so many at once are no way
around.
"""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass

__all__ = ["Throttle", "TooManyTries", "Try"]


class TooManyTries(Exception):
    """Nothing was looked at; `wait` seconds from now the next try is."""

    def __init__(self, wait: int) -> None:
        super().__init__(f"too many wrong tries; wait {wait} seconds")
        self.wait = wait


@dataclass(frozen=True, slots=True, eq=False)
class Try:
    """One password, or one token, that somebody offers."""

    account: str
    address: str
    at: float


class Throttle:
    """At most so many wrong tries in `seconds`: for one account, from one address, and in all.

    Tries that are refused are not kept, so what is kept has at most `total` entries, whoever comes.
    """

    def __init__(
        self, account: int = 8, address: int = 20, total: int = 60, seconds: float = 60.0
    ) -> None:
        self._account, self._address, self._total = account, address, total
        self._seconds = seconds
        self._tries: list[Try] = []

    def begin(self, account: str, address: str) -> Try:
        """Count a try as wrong, until it is `forgiven`.

        Raises:
            TooManyTries: One of the three limits is reached.
        """
        now, address = time.monotonic(), _network(address)
        self._tries = [each for each in self._tries if each.at > now - self._seconds]
        same_account = [each.at for each in self._tries if each.account == account]
        same_address = [each.at for each in self._tries if each.address == address]
        every = [each.at for each in self._tries]
        for times, most in (
            (same_account, self._account),
            (same_address, self._address),
            (every, self._total),
        ):
            if len(times) >= most:
                raise TooManyTries(max(1, round(times[-most] + self._seconds - now)))
        begun = Try(account, address, now)
        self._tries.append(begun)
        return begun

    def forgive(self, begun: Try) -> None:
        """It was right: it does not count."""
        self._tries = [each for each in self._tries if each is not begun]


def _network(address: str) -> str:
    """What one client has: an IPv4 address, or the /64 of an IPv6 address, 2⁶⁴ of which are its own."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # not an address of the internet
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), 64), strict=False))
