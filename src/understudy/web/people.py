"""Who may come in, and as what.

On this machine alone (loopback) a token, printed at the start, makes whoever has it a custodian. Named
users have a password, of which the workspace keeps a scrypt hash with its own salt, and a role:

    custodian   everything
    analyst     releases, and nothing that leads to a private row

A session is a cookie that the server signs and does not store, so that it outlives a restart:
`name.role.expires.nonce.HMAC-SHA256`, with a key that lies in the workspace. A form carries a second
HMAC of the same session, which a page on another site cannot know.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from understudy.errors import InputError
from understudy.web.workspace import now, read_json, write_json

__all__ = ["People", "Role", "Session", "Throttle"]

_N, _R, _P = 2**15, 8, 1
_MEMORY = 128 * _N * _R * 2
_SALT = 16
_LEAST = 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@+-]{0,63}")
_HOURS = 12
_OWNER = "token"
"""The name of whoever came with the printed token; no user can have it."""


class Role(StrEnum):
    """What somebody may see."""

    CUSTODIAN = "custodian"
    ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who came in."""

    name: str
    role: Role
    expires: int
    nonce: str

    @property
    def custodian(self) -> bool:
        """Whether private things may be shown."""
        return self.role is Role.CUSTODIAN

    @property
    def shown(self) -> str:
        """The name on the page; nothing for the holder of the token."""
        return "" if self.name == _OWNER else self.name


class Throttle:
    """Slows down guessing: after `most` wrong tries, nothing is tried for `seconds`."""

    def __init__(self, most: int = 8, seconds: float = 60.0) -> None:
        self._most, self._seconds = most, seconds
        self._wrong: dict[str, list[float]] = {}

    def wait(self, who: str) -> int:
        """Seconds until `who` may try again; 0 for now."""
        since = time.monotonic() - self._seconds
        recent = [at for at in self._wrong.get(who, []) if at > since]
        if recent:
            self._wrong[who] = recent
        else:
            self._wrong.pop(who, None)
        if len(recent) < self._most:
            return 0
        return max(1, round(recent[0] - since))

    def failed(self, who: str) -> None:
        """Count a wrong try."""
        self._wrong.setdefault(who, []).append(time.monotonic())


class People:
    """The users of a workspace, its key, and this run's token."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        self._users_file = folder / "users.json"
        self.token = token
        self._key = _key(folder / "secret")

    # -- users -----------------------------------------------------------------------------------

    def users(self) -> dict[str, Role]:
        """Names and roles."""
        return {name: Role(facts["role"]) for name, facts in self._users().items()}

    def _users(self) -> dict[str, dict[str, str]]:
        found = read_json(self._users_file)
        return found if isinstance(found, dict) else {}

    def add(self, name: str, password: str, role: Role) -> None:
        """Name a user, or give one a new password or role; also ends the sessions of an old one."""
        if not _NAME.fullmatch(name) or name == _OWNER:
            raise InputError(
                f"user {name!r}: a name is 1 to 64 letters, digits, or _ @ + -, and not {_OWNER!r}"
            )
        if len(password) < _LEAST:
            raise InputError(f"the password of {name} must have at least {_LEAST} characters")
        salt = secrets.token_bytes(_SALT)
        users = self._users()
        users[name] = {
            "role": str(role),
            "scrypt": f"{_N}:{_R}:{_P}:{salt.hex()}:{_scrypt(password, salt).hex()}",
            "since": now(),
            "stamp": secrets.token_hex(4),
        }
        self._keep(users)

    def remove(self, name: str) -> None:
        """Forget a user; sessions end at once."""
        users = self._users()
        if name not in users:
            known = ", ".join(users) or "none"
            raise InputError(f"there is no user {name!r}; there are: {known}")
        del users[name]
        self._keep(users)

    def _keep(self, users: Mapping[str, Mapping[str, str]]) -> None:
        write_json(self._users_file, users)
        self._users_file.chmod(0o600)

    # -- coming in -------------------------------------------------------------------------------

    def by_token(self, token: str) -> Session | None:
        """Whoever has the printed token is a custodian."""
        if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        return self._session(_OWNER, Role.CUSTODIAN, "")

    def by_password(self, name: str, password: str) -> Session | None:
        """A named user; an unknown name takes as long as a wrong password."""
        facts = self._users().get(name)
        if facts is None:
            _scrypt(password, b"nobody, and as slow")
            return None
        n, r, p, salt, kept = facts["scrypt"].split(":")
        found = _scrypt(password, bytes.fromhex(salt), int(n), int(r), int(p))
        if not hmac.compare_digest(found, bytes.fromhex(kept)):
            return None
        return self._session(name, Role(facts["role"]), facts["stamp"])

    def _session(self, name: str, role: Role, stamp: str) -> Session:
        nonce = secrets.token_hex(8) + stamp
        return Session(name, role, int(time.time()) + _HOURS * 3600, nonce)

    # -- cookies and forms -----------------------------------------------------------------------

    @property
    def cookie_name(self) -> str:
        """Of this workspace alone: other pages on this machine have other cookies."""
        return "understudy-" + hashlib.sha256(self._key).hexdigest()[:8]

    def cookie(self, session: Session) -> str:
        """The session, signed."""
        body = f"{session.name}.{session.role}.{session.expires}.{session.nonce}"
        return f"{body}.{self._sign('cookie', body)}"

    def session(self, cookie: str | None) -> Session | None:
        """Who a cookie speaks for: signed here, not expired, and still a user with that role."""
        if not cookie or cookie.count(".") != 4:
            return None
        body, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(self._sign("cookie", body).encode(), signature.encode()):
            return None
        name, role, expires, nonce = body.split(".")
        if int(expires) < time.time():
            return None
        if name == _OWNER:
            known = self.token is not None
        else:
            facts = self._users().get(name, {})
            known = facts.get("role") == role and nonce.endswith(facts.get("stamp", "-"))
        return Session(name, Role(role), int(expires), nonce) if known else None

    def form_token(self, session: Session | None) -> str:
        """What a form must carry back."""
        return self._sign("form", "" if session is None else f"{session.name}.{session.nonce}")

    def form_is_ours(self, session: Session | None, token: str) -> bool:
        """Whether a form comes from a page that was shown to the same login."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode())

    def _sign(self, purpose: str, text: str) -> str:
        digest = hmac.digest(self._key, f"{purpose}:{text}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _scrypt(password: str, salt: bytes, n: int = _N, r: int = _R, p: int = _P) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MEMORY)


def _key(path: Path) -> bytes:
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
        return bytes.fromhex(path.read_text(encoding="ascii"))
    except (ValueError, OSError):
        raise InputError(
            f"{path} cannot be read as the page's key; remove it, and everybody logs in anew"
        ) from None
