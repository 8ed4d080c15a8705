"""Behind a proxy that speaks TLS to the world: whom it speaks for, and that it alone is spoken to.

A request's sender is the address of its connection. Behind a proxy that is always the proxy's, and a
header says whom it speaks for; a header can be written by anybody. So it is read from the addresses
that the operator names and from no other, and from the right: each proxy appends the address that it
saw, and the first from the right that is no proxy of ours is the client. What a client wrote there
itself stands to the left of that and counts for nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from understudy.errors import InputError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks(addresses: Sequence[str]) -> tuple[Network, ...]:
    """Addresses and networks, such as 127.0.0.1 or 10.1.0.0/16; InputError for anything else."""
    try:
        return tuple(ipaddress.ip_network(address.strip()) for address in addresses)
    except ValueError:
        raise InputError(
            f"behind-proxy = {', '.join(addresses)[:80]}: give the address of the proxy as the web app "
            "sees it, such as 127.0.0.1, or its network, such as 10.1.0.0/16"
        ) from None


class BehindProxy:
    """Outside of everything else: sets who asks, and that it was over TLS."""

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._app = app
        self._proxies = networks(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        peer = scope["client"][0] if scope.get("client") else ""
        refusal = None
        if not self._ours(peer):
            refusal = "This page is behind a proxy: open the address of the proxy."
        elif _said(scope, b"x-forwarded-proto")[-1:] != ["https"]:
            refusal = (
                "This page is for https alone: the proxy must send X-Forwarded-Proto: https, and "
                "redirect what comes to it by http."
            )
        if refusal is not None:
            await PlainTextResponse(refusal, 403)(scope, receive, send)
            return
        scope.update(client=(self._client(scope, peer), 0), scheme="https")
        await self._app(scope, receive, send)

    def _client(self, scope: Scope, peer: str) -> str:
        """The first address from the right that is no proxy; the proxy's own where none is given."""
        for said in reversed(_said(scope, b"x-forwarded-for")):
            try:
                address = str(ipaddress.ip_address(said))
            except ValueError:
                return peer
            if not self._ours(address):
                return address
        return peer

    def _ours(self, address: str) -> bool:
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
        return any((mapped or ip) in network for network in self._proxies)


def _said(scope: Scope, header: bytes) -> list[str]:
    """The parts of a header, over all of its lines, in order."""
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == header]
    return [part.strip() for part in ",".join(lines).split(",") if part.strip()]
