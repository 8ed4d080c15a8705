"""Who may log in, and as what.

On this machine alone (loopback) a token, printed at the start, makes whoever has it a custodian. Named
users have a password, of which the workspace keeps an Argon2id hash, and a role:

    custodian   everything
    analyst     published releases, and nothing that leads to a private row

What a login is travels in Starlette's signed session cookie, so that it outlives a restart; by a token,
as long as that is the page's. The server keeps which logins have ended: by logging out, by another
password, or with their user.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from understudy.errors import InputError
from understudy.web.workspace import now, read_json, write_json

HOURS = 12
"""How long a login lasts."""
SHORTEST, LONGEST = 10, 1024
"""Characters of a password."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@+-]{0,63}")
_OWNER = "token"  # The name of whoever has the printed token; no user can have it
_HASHER = PasswordHasher()
"""Argon2id with the parameters of RFC 9106 for less memory: 64 MiB, 3 passes."""


class Role(StrEnum):
    """What somebody may see."""

    CUSTODIAN = "custodian"
    ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who has logged in; `stamp` is of the password or token that let them in."""

    name: str
    role: Role
    stamp: str
    expires: int
    id: str

    @property
    def custodian(self) -> bool:
        """Whether private things may be shown."""
        return self.role is Role.CUSTODIAN

    @property
    def shown(self) -> str:
        """The name on the page; nothing for the holder of the token."""
        return "" if self.name == _OWNER else self.name


class People:
    """The users of a workspace, its key, and this run's token."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        self._users_file = folder / "users.json"
        self._ended = folder / "ended"
        self._ended.mkdir(mode=0o700, exist_ok=True)
        self.token = token
        self.key = _key(folder / "secret")

    @property
    def cookie_name(self) -> str:
        """Of this workspace alone: other pages on this machine have other cookies."""
        return "understudy-" + hashlib.sha256(self.key.encode()).hexdigest()[:8]

    # -- users -----------------------------------------------------------------------------------

    def users(self) -> dict[str, Role]:
        """Names and roles."""
        return {name: Role(facts["role"]) for name, facts in self._users().items()}

    def _users(self) -> dict[str, dict[str, str]]:
        users = read_json(self._users_file)
        return users if isinstance(users, dict) else {}

    def add(self, name: str, password: str, role: Role) -> None:
        """Name a user, or give one a new password or role; also ends the sessions of an old one."""
        if not _NAME.fullmatch(name) or name == _OWNER:
            raise InputError(
                f"user {name!r}: a name is 1 to 64 letters, digits, or _ @ + -, and not {_OWNER!r}"
            )
        if not SHORTEST <= len(password) <= LONGEST:
            raise InputError(
                f"the password of {name} has at least {SHORTEST} and at most {LONGEST} characters"
            )
        with self._changing() as users:
            users[name] = {
                "role": str(role),
                "password": _HASHER.hash(password),
                "since": now(),
                "stamp": secrets.token_hex(4),
            }

    def remove(self, name: str) -> None:
        """Forget a user; sessions end at once."""
        with self._changing() as users:
            if name not in users:
                known = ", ".join(users) or "none"
                raise InputError(f"there is no user {name!r}; there are: {known}")
            del users[name]

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, str]]]:
        """The users, to be changed by one at a time: page and command line may both be at it."""
        with self._users_file.with_name(".users.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            users = self._users()
            yield users
            write_json(self._users_file, users)
            self._users_file.chmod(0o600)

    # -- logging in and out ----------------------------------------------------------------------

    def by_token(self, token: str) -> Session | None:
        """Whoever has the printed token is a custodian."""
        if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        return _session(_OWNER, Role.CUSTODIAN, self._token_stamp(self.token))

    def _token_stamp(self, token: str) -> str:
        """Tells tokens apart, and tells nothing of one: a cookie can be read by whoever has it."""
        return hmac.digest(self.key.encode(), token.encode(), "sha256").hex()

    def by_password(self, name: str, password: str) -> Session | None:
        """A named user; an unknown name takes as long as a wrong password."""
        facts = self._users().get(name)
        matches = _matches(facts or {"password": _decoy()}, password)
        if facts is None or not matches:
            return None
        if "password" not in facts or _HASHER.check_needs_rehash(facts["password"]):
            with self._changing() as users:
                if users.get(name) == facts:
                    kept = {key: facts[key] for key in ("role", "since", "stamp")}
                    users[name] = {**kept, "password": _HASHER.hash(password)}
        return _session(name, Role(facts["role"]), facts["stamp"])

    def session(self, kept: Any) -> Session | None:
        """Who a signed cookie speaks for: not expired, not ended, still a user with that role."""
        try:
            session = Session(**{**kept, "role": Role(kept["role"])})
        except (TypeError, KeyError, ValueError):  # of another version
            return None
        if session.expires < time.time() or (self._ended / session.id).exists():
            return None
        if session.name == _OWNER:
            known = self.token is not None and session.stamp == self._token_stamp(self.token)
        else:
            facts = self._users().get(session.name, {})
            known = (facts.get("role"), facts.get("stamp")) == (session.role, session.stamp)
        return session if known else None

    def end(self, session: Session) -> None:
        """Log out: copies of the cookie are void too, after a restart as well."""
        (self._ended / session.id).touch(mode=0o600)
        for old in self._ended.iterdir():  # those whose cookies have expired
            if old.stat().st_mtime < time.time() - HOURS * 3600:
                old.unlink(missing_ok=True)


def _session(name: str, role: Role, stamp: str) -> Session:
    return Session(name, role, stamp, int(time.time()) + HOURS * 3600, secrets.token_hex(16))


@functools.cache
def _decoy() -> str:
    """A hash that no password has."""
    return _HASHER.hash(secrets.token_hex(32))


def _matches(facts: dict[str, str], password: str) -> bool:
    if "scrypt" in facts:  # from before Argon2; replaced at this login
        n, r, p, salt, digest = facts["scrypt"].split(":")
        hashed = hashlib.scrypt(
            password.encode(), salt=bytes.fromhex(salt), n=int(n), r=int(r), p=int(p), maxmem=2**27
        )
        return hmac.compare_digest(hashed, bytes.fromhex(digest))
    try:
        return _HASHER.verify(facts["password"], password)
    except (VerificationError, InvalidHashError):
        return False


def _key(path: Path) -> str:
    """The workspace's key; made once, for this user's eyes alone."""
    if not path.exists():
        part = path.with_name(f".secret.{secrets.token_hex(4)}")
        part.touch(mode=0o600)
        part.write_text(secrets.token_hex(32), encoding="ascii")
        try:
            path.hardlink_to(part)  # the first of two servers wins, the other uses its key
        except FileExistsError:
            pass
        finally:
            part.unlink()
    try:
        return bytes.fromhex(path.read_text(encoding="ascii")).hex()
    except (ValueError, OSError):
        raise InputError(
            f"{path} cannot be read as the key of the web app; remove it, and everybody logs in anew"
        ) from None


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


@dataclass(eq=False)
class Throttle:
    """Guessing is slow: a try counts from before its password is looked at, many at once do not help.

    At most so many wrong tries in `seconds`: for one account, from one address, and in all.

    Tries that are refused are not kept, so what is kept has at most `total` entries, whoever comes.
    """

    account: int = 8
    address: int = 20
    total: int = 60
    seconds: float = 60.0
    _tries: list[Try] = field(default_factory=list)

    def begin(self, account: str, address: str) -> Try:
        """Count a try as wrong, until it is `forgiven`.

        Raises:
            TooManyTries: One of the three limits is reached.
        """
        now, address = time.monotonic(), _network(address)
        self._tries = [each for each in self._tries if each.at > now - self.seconds]
        limits = (
            ([each.at for each in self._tries if each.account == account], self.account),
            ([each.at for each in self._tries if each.address == address], self.address),
            ([each.at for each in self._tries], self.total),
        )
        for times, most in limits:
            if len(times) >= most:
                raise TooManyTries(max(1, round(times[-most] + self.seconds - now)))
        begun = Try(account, address, now)
        self._tries.append(begun)
        return begun

    def forgive(self, begun: Try) -> None:
        """It was right: it does not count."""
        self._tries = [each for each in self._tries if each is not begun]


def _network(address: str) -> str:
    """What one client has: an IPv4 address, or the /64 of an IPv6 address, 2⁶⁴ of which are its own."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # not an address of the internet
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), 64), strict=False))
