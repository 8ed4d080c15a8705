"""Addresses of databases that come from others: an operator's list, looked up once, and no files."""

import socket

import pytest

from tests.tools import servers
from understudy.errors import InputError
from understudy.source import read
from understudy.source.addresses import VARIABLE, permitted

LIST = "db.example,other.example:6000,10.1.0.0/16,192.0.2.7"
WORLD = {
    "db.example": ["93.184.216.34"],
    "other.example": ["93.184.216.35"],
    "inner.example": ["10.1.2.3"],
    "rebound.example": ["127.0.0.1"],
}


@pytest.fixture
def world(monkeypatch):
    """Names and what they stand for, and how often somebody asked."""
    asked = []

    def look_up(host, port, **_):
        asked.append(host)
        if host not in WORLD:
            host = socket.inet_ntoa(socket.inet_aton(host)) if host.isdigit() else host
        found = WORLD.get(host, [host])
        return [(0, 0, 0, "", (address, port)) for address in found]

    monkeypatch.setenv(VARIABLE, LIST)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


REFUSED = {
    "postgresql://ann@elsewhere.example/db": "not on the list",
    "postgresql://ann@db.example.elsewhere.example/db": "not on the list",
    "postgresql://db.example@elsewhere.example/db": "not on the list",
    "postgresql://ann@elsewhere.example,db.example/db": "not on the list",
    "postgresql://ann@db.example:99999/db": "cannot be read",
    "postgresql://ann@other.example/db": "not on the list",
    "postgresql://ann@127.0.0.1/db": "not on the list",
    "postgresql://ann@localhost/db": "not on the list",
    "postgresql://ann@2130706433/db": "not on the list",
    "postgresql://ann@[::1]/db": "not on the list",
    "postgresql://ann@[::ffff:127.0.0.1]/db": "not on the list",
    "postgresql://ann@169.254.169.254/db": "not on the list",
    "postgresql://ann@10.2.0.1/db": "not on the list",
    "postgresql:///db": "not on the list",
    "postgresql://%2Fvar%2Frun/db": "not on the list",
    "postgresql:///db?host=/var/run": "no options",
    "postgresql://ann@db.example/db?host=elsewhere.example": "no options",
    "postgresql://ann@db.example/db?hostaddr=127.0.0.1": "no options",
    "postgresql://ann@db.example/db?service=x": "no options",
    "postgresql://ann@db.example/db?servicefile=/etc/x": "no options",
    "postgresql://ann@db.example/db?passfile=/etc/passwd": "no options",
    "postgresql://ann@db.example/db?sslkey=/etc/key&sslmode=require": "no options",
    "postgresql://ann@db.example/db?sslrootcert=/etc/x": "no options",
    "postgresql://ann@db.example/db?options=-csearch_path%3Dx": "no options",
    "postgresql://ann@db.example/host=elsewhere.example": "no options",
    "postgresql://ann@db.example/postgresql:%2F%2Felsewhere.example": "no options",
    "postgresql://ann@db.example/db#x": "no options",
    "postgresql://ann@db.example/": "no options",
    "postgresql://ann@db.example/-db": "no options",
    "postgresql://ann@db.example/a-db%20host=elsewhere.example": "no options",
    "postgresql://ann@db.example/a-db%0A": "no options",
    "postgresql://[db.example/db": "cannot be read",
    "duckdb:///srv/other.duckdb": "no files",
    "duckdb://:memory:": "cannot be read",
    "duckdb://md:cloud": "cannot be read",
    "sqlite:///etc/x.db": "no files",
    "file:///etc/passwd": "no files",
    "http://169.254.169.254/latest": "no files",
    "s3://bucket/x.parquet": "no files",
    "mysql://db.example/db": "no files",
    "spark://db.example:7077": "no files",
    "k8s://https://db.example": "no files",
    "local[*]": "no files",
}


@pytest.mark.parametrize(("address", "why"), REFUSED.items())
def test_an_address_that_is_not_on_the_list_is_refused(world, address, why):
    with pytest.raises(InputError, match=why) as caught:
        permitted(address)
    assert VARIABLE in str(caught.value)
    with pytest.raises(InputError):
        read(address, table="t")
    assert not world  # nobody was even asked what it stands for


def test_a_name_that_stands_for_a_private_address_is_refused(world, monkeypatch):
    monkeypatch.setenv(VARIABLE, LIST + ",inner.example,rebound.example")
    with pytest.raises(InputError, match="not public and not on the list"):
        permitted("postgresql://ann@rebound.example/db")
    assert "hostaddr=10.1.2.3" in permitted("postgresql://ann@inner.example/db")
    monkeypatch.setenv(VARIABLE, "2130706433")
    with pytest.raises(InputError, match="not public"):
        permitted("postgresql://ann@2130706433/db")


@pytest.mark.parametrize("name", ["db", "db_2", "trial-2024", "a-b-c", "größe"])
def test_ordinary_names_of_databases_are_taken(world, name):
    assert f"/{name}?hostaddr=93.184.216.34" in permitted(f"postgresql://ann@db.example/{name}")


def test_a_name_is_looked_up_once_and_the_connection_goes_there(world):
    address = permitted("postgresql://ann:a%40b@db.example:5433/db?sslmode=verify-full")
    assert address == (
        "postgresql://ann:a%40b@db.example:5433/db?sslmode=verify-full&hostaddr=93.184.216.34"
    )
    assert world == ["db.example"]
    assert "hostaddr=93.184.216.35" in permitted("postgresql://ann@other.example:6000/db")
    assert "hostaddr=10.1.9.9" in permitted("postgresql://ann@10.1.9.9/db")


def test_the_driver_connects_to_the_address_that_was_checked(world):
    """The name stands for another server by the time the driver connects: nobody asks again."""
    import ibis

    seen = {}

    def connected(**options):
        seen.update(options)
        raise OSError("enough")

    import psycopg

    kept, psycopg.connect = psycopg.connect, connected
    try:
        with pytest.raises(OSError, match="enough"):
            ibis.connect(permitted("postgresql://ann@db.example/db"))
    finally:
        psycopg.connect = kept
    assert (seen["host"], seen["hostaddr"]) == ("db.example", "93.184.216.34")


def test_without_a_list_a_custodian_opens_what_she_likes(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    url = servers.postgres()
    assert permitted(url) == url
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(InputError, match="may not be opened here"):
        read(url, table="t")
