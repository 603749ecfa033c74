"""Keys that encrypt secrets: one takes the place of another, none is lost, and a missing one is said by its name."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from api.running import Running, running
from headwater import wire
from headwater.accounts import vault as vaults
from headwater.accounts.vault import KeyCommand, KeyFile, Vault, key_id_of
from headwater.app import backup
from headwater.app.sources import follow
from headwater.errors import BadInput, BadSetting, KeyUnavailable, SourceFailure
from headwater.settings import load
from headwater.store.people import accounts, sealed
from headwater.wire import Parts
from people.test_jwt import a_jwt, status_with
from people.test_people_commands import Commands
from support import forked

Start = Callable[..., Running]


def test_a_secret_has_a_data_key_of_its_own_and_names_the_key(tmp_path: Path) -> None:
    # E10
    vault = Vault("first")
    one, two = vault.seal("secret"), vault.seal("secret")
    assert key_id_of(one) == vault.key_id
    assert one.split(b".")[2:] != two.split(b".")[2:]
    assert b"secret" not in one
    assert vault.open(one) == vault.open(two) == "secret"
    assert Vault("second", "first").open(one) == "secret"
    assert key_id_of(Vault("second", "first").seal("secret")) == Vault("second").key_id
    with pytest.raises(SourceFailure, match=f"the key {vault.key_id}, which is not here"):
        Vault("second").open(one)
    for damaged in (one[:-4], one.replace(b"hw1.", b"hw1.."), b"hw1." + b"x" * 50, b"", b"hw1"):
        with pytest.raises(SourceFailure, match=r"cannot be decrypted|not here"):
            vault.open(damaged)


def test_what_earlier_versions_encrypted_can_be_read() -> None:
    earlier = Fernet(urlsafe_b64encode(sha256(b"first").digest())).encrypt(b"secret")
    assert Vault("second", "first").open(earlier) == "secret"
    with pytest.raises(SourceFailure, match="any of the keys"):
        Vault("second").open(earlier)


def fill(parts: Parts) -> None:
    """One secret of every kind, one of them as an earlier version stored it."""
    owner, now = parts.db.read_now(accounts.owner), parts.now()
    assert owner is not None
    parts.db.write_now(follow, owner, "https://me:word@news.example/feed", now, seal=parts.credential)
    [text] = parts.vault._load(False)[:1]
    earlier = Fernet(urlsafe_b64encode(sha256(text.encode()).digest())).encrypt(b"x token")
    parts.db.write_now(accounts.save_secret, "x bearer token", earlier, now)
    for number in range(5):
        parts.db.write_now(accounts.save_secret, f"secret {number}", parts.seal(f"text {number}"), now)


def texts(parts: Parts) -> list[str]:
    return [parts.unseal(one.sealed) for one in parts.db.read_now(sealed.all_sealed)]


def test_keys_rotate_while_headwater_runs(store_url: str, tmp_path: Path) -> None:
    # E10
    environ = {"HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_PUBLIC_URL": "http://127.0.0.1:8080"}
    run = Commands(store_url, tmp_path)
    with running(store_url, **environ) as headwater:
        parts = headwater.parts
        fill(parts)
        token = a_jwt(headwater)
        before = sorted(texts(parts))
        old, old_hub = parts.vault.key_id, parts.hub_secret("abc")
        done = json.loads(run("keys", "rotate", "--json").out)
        assert (done["encrypted"], done["lost"]) == (len(before), 0)
        assert done["key"] != old
        # The process that was running knows all of it, and encrypts with the new key from now on.
        assert sorted(texts(parts)) == before
        assert status_with(headwater, token) == 200
        made = headwater.program().post("/api/webhooks", {"address": "https://receiver.example/hook"})
        assert made.status == 201, made.text
        ids = {key_id_of(one.sealed) for one in parts.db.read_now(sealed.all_sealed)}
        assert ids == {done["key"]}
        # A hub signs with the old secret until it has been asked again.
        assert parts.hub_secrets("abc") == [parts.hub_secret("abc"), old_hub]
        # Who follows the same address with the same password follows the same source.
        owner = headwater.owner
        again = parts.db.write_now(
            follow, owner, "https://me:word@news.example/feed", parts.now(), seal=parts.credential
        )
        assert not again.new_source
        listed = [json.loads(line) for line in run("keys", "list", "--json").out.splitlines()]
        assert [(one["id"], one["state"], one["secrets"]) for one in listed] == [
            (done["key"], "current", len(before) + 1),
            (old, "other", 0),
        ]
        assert run("keys", "forget", done["key"]).code == 2
        assert run("keys", "forget", old).code == 0
        assert run("keys", "forget", old).code == 1
        assert len((tmp_path / "secret.key").read_text().split()) == 1
        assert (tmp_path / "secret.key").stat().st_mode & 0o077 == 0
        assert len(texts(parts)) == len(before) + 1


KILLED = """
import os, signal, sys
from headwater import wire
from headwater.accounts import vault as vaults
from headwater.app import instance
from headwater.settings import load
from headwater.store.people import sealed

what, left = sys.argv[1], [int(sys.argv[2])]
def dying(function):
    def instead(*given, **named):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return function(*given, **named)
    return instead
parts = wire.open_parts(load())
instance.RESEALED_AT_ONCE = 2
if what == "file":
    os.replace = dying(os.replace)
if what == "row":
    sealed.replace = dying(sealed.replace)
if what == "batch":
    parts.db.write_now = dying(parts.db.write_now)
wire.present_keys(parts)
parts.key_file.add(vaults.new_key())
if what == "added":
    os.kill(os.getpid(), signal.SIGKILL)
instance.reseal(parts.db, parts.vault, parts.now())
"""


@pytest.mark.parametrize(
    ("what", "after"), [("file", 0), ("added", 0), ("row", 0), ("row", 3), ("row", 6), ("batch", 1), ("batch", 4)]
)
def test_whoever_is_killed_while_keys_rotate_leaves_everything_readable(
    store_url: str, tmp_path: Path, what: str, after: int
) -> None:
    # E10
    run = Commands(store_url, tmp_path)
    parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(tmp_path)}))
    wire.prepare_store(parts)
    fill(parts)
    before = sorted(texts(parts))
    assert forked.run("-c", KILLED, what, str(after), env=run.environ).returncode == -9
    assert sorted(texts(parts)) == before
    fresh = wire.open_parts(load({"HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(tmp_path)}))
    assert sorted(texts(fresh)) == before
    number = len(wire.present_keys(fresh))
    assert run("keys", "rotate").code == 0
    # What was begun is finished, without yet another key; where nothing was begun there is one now.
    assert len(wire.present_keys(fresh)) == 2 >= number
    assert {key_id_of(one.sealed) for one in fresh.db.read_now(sealed.all_sealed)} == {fresh.vault.key_id}
    assert sorted(texts(fresh)) == before
    for one in (parts, fresh):
        one.close()


KILLED_WITH_ROW = """
import json, os, signal, sys
from headwater import wire
from headwater.accounts import vault
from headwater.app import instance, people
from headwater.settings import load
from headwater.store.people import accounts, audit
from headwater.wire import utc_now

def dying(place, name, after=False):
    function = getattr(place, name)
    def instead(*given, **named):
        if after:
            function(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(place, name, instead)

PLACES = {
    "written": lambda: dying(os, "fsync"),
    "row": lambda: dying(audit, "record"),
    "uncommitted": lambda: dying(audit, "record", after=True),
    "committed": lambda: dying(os, "replace"),
    "replaced": lambda: dying(os, "replace", after=True),
    "nowhere": lambda: None,
}

def run(place, work, *given):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        parts = wire.open_parts(load())
        PLACES[place]()
        with people.acting(None, "test", utc_now):
            work(parts.db, parts.key_file, *given)
        os._exit(0)
    finally:
        os._exit(1)

def seen():
    parts = wire.open_parts(load())
    owner = parts.db.read_now(accounts.owner)
    rows = parts.db.read_now(audit.page, owner, limit=1000, resource="secret_key")
    keys = list(wire.present_keys(parts))
    parts.close()
    return {"keys": keys, "rows": [[one.action, one.resource_id] for one in rows]}

for place in PLACES:
    made = run(place, instance.create_key), seen()
    if not made[1]["keys"]:
        assert run("nowhere", instance.create_key) == 0
    parts = wire.open_parts(load())
    [old] = wire.present_keys(parts)
    parts.key_file.add(vault.new_key())
    parts.close()
    taken = run(place, instance.forget_key, old), seen()
    again = run("nowhere", instance.forget_key, old), seen()
    os.unlink(sys.argv[1])
    print(json.dumps({"place": place, "old": old, "made": made, "taken": taken, "again": again}), flush=True)
"""


def test_no_key_is_made_or_taken_out_without_its_row_wherever_one_is_killed(store_url: str, tmp_path: Path) -> None:
    # E10, H79
    run = Commands(store_url, tmp_path)
    parts = wire.open_parts(load({"HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(tmp_path)}))
    wire.prepare_store(parts)
    parts.close()
    done = forked.run("-c", KILLED_WITH_ROW, str(tmp_path / "secret.key"), env=run.environ, timeout=400)
    assert done.returncode == 0, done.stderr
    found = {one["place"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert list(found) == ["written", "row", "uncommitted", "committed", "replaced", "nowhere"]
    for place, one in found.items():
        killed = 0 if place == "nowhere" else -9
        (code, made), (taken_code, taken), (again_code, again) = one["made"], one["taken"], one["again"]
        old = one["old"]
        assert (code, taken_code) == (killed, killed), place
        # A key that is there has its row. Where there is none, making one again has worked.
        assert bool(made["keys"]) == (place in ("replaced", "nowhere")), place
        assert all(["secret_key.create", key] in made["rows"] for key in made["keys"]), place
        # A key that is gone has its row too, and one that is left can be taken out again.
        is_noted = ["secret_key.forget", old] in taken["rows"]
        assert (old in taken["keys"], is_noted) == (
            place not in ("replaced", "nowhere"),
            place not in ("row", "uncommitted"),
        ), place
        assert again_code == (1 if place in ("replaced", "nowhere") else 0), place
        assert (len(again["keys"]), old in again["keys"]) == (1, False), place
        assert ["secret_key.forget", old] in again["rows"], place


def test_a_key_in_the_settings_rotates_with_the_one_before_beside_it(store_url: str, tmp_path: Path) -> None:
    run = Commands(store_url, tmp_path)
    run.environ["HEADWATER_SECRET_KEY"] = "first"
    assert run("x", "token", given="A" * 60 + "\n").code == 0
    refused = run("keys", "rotate")
    assert (refused.code, "HEADWATER_OTHER_SECRET_KEYS" in refused.err) == (2, True)
    run.environ["HEADWATER_SECRET_KEY"] = "second"
    listed = run("keys", "list")
    assert (listed.code, "missing" in listed.out, Vault("first").key_id in listed.out) == (1, True, True)
    lost = run("keys", "rotate")
    assert lost.code == 2  # there is nothing that it could encrypt with the new key
    run.environ["HEADWATER_OTHER_SECRET_KEYS"] = "first, third"
    done = run("keys", "rotate", "--json")
    assert json.loads(done.out) == {"key": Vault("second").key_id, "encrypted": 1, "lost": 0}
    del run.environ["HEADWATER_OTHER_SECRET_KEYS"]
    assert run("keys", "list").code == 0
    assert not (tmp_path / "secret.key").exists()


def test_a_file_is_left_for_a_key_that_a_command_prints(sqlite_url: str, tmp_path: Path) -> None:
    run = Commands(sqlite_url, tmp_path)
    assert run("x", "token", given="A" * 60 + "\n").code == 0
    script = tmp_path / "kms"
    script.write_text("#!/bin/sh\necho asked >> $0.log\necho 'a key of the KMS'\n")
    script.chmod(0o700)
    run.environ["HEADWATER_SECRET_KEY_COMMAND"] = f"{script} --decrypt 'the data key'"
    assert "token" in run("x", "status", "--json").out  # the file still decrypts
    assert run("keys", "rotate").code == 0
    (tmp_path / "secret.key").unlink()
    assert json.loads(run("x", "status", "--json").out)["token"] is True
    assert len(script.with_suffix(".log").read_text().splitlines()) == 3  # once for each command


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("/does/not/exist --key", r"\(/does/not/exist\) cannot be run: No such file"),
        ("sh -c 'echo no access >&2; exit 3'", "ended with 3: no access"),
        ("true", "printed no key"),
        ("sleep 60", "took longer than 0.3 seconds"),
        ("head -c 20000 /dev/zero", "printed too much"),
    ],
)
def test_a_command_that_prints_no_key_says_what_is_wrong(command: str, says: str) -> None:
    with pytest.raises(KeyUnavailable, match=says):
        KeyCommand(command, seconds=0.3)()


def test_two_ways_to_give_the_key_are_refused() -> None:
    environ = {"HEADWATER_CONFIG": "", "HEADWATER_SECRET_KEY": "a", "HEADWATER_SECRET_KEY_COMMAND": "b"}
    with pytest.raises(BadSetting, match="contradict"):
        wire.open_parts(load(environ))


def test_a_missing_key_is_never_replaced_by_a_new_one(store_url: str, tmp_path: Path) -> None:
    # E10
    environ = {"HEADWATER_DATA_DIR": str(tmp_path), "HEADWATER_PUBLIC_URL": "http://127.0.0.1:8080"}
    run = Commands(store_url, tmp_path)
    with running(store_url, **environ) as headwater:
        fill(headwater.parts)
        old = headwater.parts.vault.key_id
    kept = (tmp_path / "secret.key").rename(tmp_path / "kept")
    with running(store_url, **environ) as headwater:
        refused = headwater.program().post("/api/webhooks", {"address": "https://receiver.example/hook"})
        assert (refused.status, refused.json()["code"]) == (503, "key_unavailable")
        assert "Bring the key back" in refused.json()["detail"]
    doctor = run("doctor")
    assert (doctor.code, f"with the key {old}" in doctor.out) == (1, True), doctor.out
    assert "missing" in run("keys", "list").out
    assert not (tmp_path / "secret.key").exists()
    kept.rename(tmp_path / "secret.key")
    assert run("keys", "create").code == 2
    assert "secrets can be decrypted" in run("doctor").out
    (tmp_path / "secret.key").unlink()
    assert run("keys", "create").code == 0
    assert (tmp_path / "secret.key").exists()


def test_an_empty_key_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text("\n")
    with pytest.raises(KeyUnavailable, match="is empty"):
        KeyFile(tmp_path)()


def test_access_tokens_get_no_new_key_while_the_old_one_cannot_be_read(store_url: str) -> None:
    environ = {"HEADWATER_PUBLIC_URL": "http://127.0.0.1:8080"}
    with running(store_url, HEADWATER_SECRET_KEY="first", **environ) as headwater:
        a_jwt(headwater)
    with running(store_url, HEADWATER_SECRET_KEY="second", **environ) as headwater:
        token = headwater.parts.db.read_now(lambda conn: accounts.secrets_named(conn, "jwt key "))
        with pytest.raises(AssertionError, match="key_unavailable"):
            a_jwt(headwater)
        assert len(headwater.parts.db.read_now(accounts.secrets_named, "jwt key ")) == len(token)


def test_a_backup_made_while_keys_rotate_names_all_that_it_needs(store_url: str, tmp_path: Path) -> None:
    given = {"HEADWATER_DATABASE_URL": store_url, "HEADWATER_DATA_DIR": str(tmp_path)}
    parts = wire.open_parts(load(given))
    wire.prepare_store(parts)
    fill(parts)
    first = parts.vault.key_id
    parts.key_file.add(vaults.new_key())
    parts.db.write_now(accounts.save_secret, "newest", parts.seal("text"), parts.now())
    file = tmp_path / "b.backup"
    made = backup.write(parts.db, file, images=None, key_id=parts.vault.key_id, now=parts.now())
    assert (made.key.id, made.key.others) == (parts.vault.key_id, [first])
    other = wire.open_parts(load({"HEADWATER_DATA_DIR": str(tmp_path / "other")}))
    with backup.opened(file) as archive:
        with pytest.raises(BadInput, match=f"the key {first}"):
            backup.restore(other.db, archive, images=tmp_path / "images", key_ids=[parts.vault.key_id])
        backup.restore(other.db, archive, images=tmp_path / "images", key_ids=wire.present_keys(parts))
    for one in (parts, other):
        one.close()
