"""Which databases may be opened, where addresses may come from others than the operator.

A service that hands on addresses of others would be a way into its network (server-side request
forgery) and to its files, which libpq's options and DuckDB name. So an operator may list in
UNDERSTUDY_DATABASES what may be opened (docs/sources.md): hosts, `host:port`, and networks, without
which no address that is not public is opened. A host is looked up once: the connection goes to the
address that was checked. The processes that read for `understudy serve` set it to nothing: the page
takes files alone.
"""

import ipaddress
import os
import re
import socket
from urllib.parse import parse_qs, unquote, urlencode, urlsplit, urlunsplit

from understudy.errors import InputError

VARIABLE = "UNDERSTUDY_DATABASES"
_SCHEMES = ("postgres", "postgresql")
_PORT = 5432
_NAME = re.compile(r"\w[\w-]*")
"""A database: libpq takes a name with `=` or `://` in it for an address of its own."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def permitted(address: str) -> str:
    """The address to connect to, the host looked up where a list is kept; as it is where none is.

    Raises:
        InputError: It is not on the operator's list, or says more than where a database is.
    """
    listed = os.environ.get(VARIABLE)
    if listed is None:
        return address
    allowed = {entry.strip().lower() for entry in listed.split(",") if entry.strip()}
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port or _PORT
        options = parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        raise _refused("it cannot be read") from None
    if parts.scheme not in _SCHEMES:
        raise _refused("only postgresql:// is opened here, and no files")
    database = unquote(parts.path).removeprefix("/")
    if parts.fragment or set(options) - {"sslmode"} or not _NAME.fullmatch(database):
        raise _refused(
            "it must be postgresql://user@host:port/database, with no options but sslmode"
        )
    if not {host, f"{host}:{port}"} & allowed and not _listed(host, allowed):
        raise _refused("its host is not on the list")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise _refused("its host is not known") from None
    addresses = [str(each[4][0]) for each in found]
    for each in addresses:
        if not _public(ipaddress.ip_address(each)) and not _listed(each, allowed):
            raise _refused("its host stands for an address that is not public and not on the list")
    query = urlencode(
        {**{key: value[-1] for key, value in options.items()}, "hostaddr": addresses[0]}
    )
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def _listed(host: str, allowed: set[str]) -> bool:
    """Whether a host is an address that is listed, by itself or by its network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for entry in allowed:
        try:
            if address in ipaddress.ip_network(entry):
                return True
        except ValueError:  # a name
            continue
    return False


def _public(address: Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_global


def _refused(why: str) -> InputError:
    return InputError(
        f"this database may not be opened here: {why}; the operator lists what may in {VARIABLE}"
    )
