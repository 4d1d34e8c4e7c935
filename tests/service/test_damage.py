"""`verify-store` sees every damage, and names it in a line."""

import random
import sqlite3

import numpy as np
import pytest

import damages
from collection_toys import batch, packed, submission, survey
from deniable.service.access import new_token
from deniable.service.store import open_store, pieces


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "store.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", 3)
        damages.whole(str(path))
        yield path


@pytest.mark.slow
def test_every_damage_is_named(source):
    rng, unnoticed, tried = random.Random(1), [], 0
    for name, damage in damages.damages(str(source), rng, rows=1):
        said = damages.tried(source, damage)
        tried += said is not None
        if said == "":
            unnoticed.append(name)
    assert unnoticed == []
    assert tried > 120


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE submissions SET id = zeroblob(15) WHERE id = {one}", "an id has not 16 bytes"),
        ("UPDATE submissions SET id = zeroblob(16) WHERE id = {one}", "a row is not as it was"),
        ("UPDATE submissions SET day = day - 1 WHERE id = {one}", "a row is not as it was"),
        ("UPDATE submissions SET day = -5 WHERE id = {one}", "a day is none"),
        ("UPDATE submissions SET body = x'0100' WHERE id = {one}", "a round that there is not"),
        ("UPDATE submissions SET body = x'0900000000' WHERE id = {one}", "a round that there is"),
        ("UPDATE submissions SET body = x'0100010000' WHERE id = {one}", "a stratum that there is"),
        ("UPDATE submissions SET body = x'0100000000' WHERE id = {one}", "another length"),
        ("UPDATE tokens SET hash = zeroblob(31)", "the hash of 'ann' has not 32 bytes"),
        ("UPDATE tokens SET hash = zeroblob(32)", "tokens: a row is not as it was kept"),
        ("DELETE FROM tokens WHERE name = 'ann'", "tokens: there are 1 rows, 2 were kept"),
        ("UPDATE texts SET document = x'00' WHERE number = 1", "document 1 has another digest"),
        ("UPDATE texts SET day = -1", "texts: a row is damaged"),
        ("UPDATE texts SET number = 7 WHERE number = 1", "texts: a row is not as it was kept"),
        ("DELETE FROM texts WHERE number = 1", "texts: there are 1 rows, 2 were kept"),
        (
            "UPDATE invitations SET hash = zeroblob(31) WHERE hash = (SELECT min(hash) FROM "
            "invitations)",
            "a hash has not 32 bytes",
        ),
        ("UPDATE collection SET skeleton = x'7b7d'", "collection: a row is not as it was kept"),
        ("UPDATE collection SET made_by = '9'", "collection: a row is not as it was kept"),
        ("INSERT INTO collection SELECT * FROM collection", "2 manifests instead of one"),
        ("UPDATE tallies SET counts = x'01' WHERE round = 1", "this is no row of 3 counts"),
        ("UPDATE tallies SET report = 'x' WHERE report = 'way'", "there is no such piece"),
        ("UPDATE tallies SET stratum = 1 WHERE report = 'way'", "there is no such piece"),
        ("UPDATE tallies SET piece = 9 WHERE report = 'way' AND round = 1", "no such piece"),
        ("UPDATE tallies SET n = 1 WHERE report = 'pets' AND piece = 2", "only the first piece"),
        ("DELETE FROM tallies WHERE report = 'pets' AND piece = 2", "differs from a recount"),
        ("CREATE INDEX other ON tallies (n)", "does not belong to a store"),
        ("UPDATE batches SET body = x'00' WHERE body IS NOT NULL", "batches: "),
    ],
)
def test_a_damage_is_named_by_what_it_is(source, change, said):
    one = "(SELECT id FROM submissions WHERE body IS NOT NULL LIMIT 1)"
    assert said in damages.tried(source, damages._do(change.format(one=one)))


@pytest.mark.slow
def test_bytes_that_change_in_the_file_are_noticed(source, tmp_path):
    """Or they lie where nothing is kept: all that the tables say is as it was."""

    def dump(file):
        with sqlite3.connect(file) as connection:
            lines = list(connection.iterdump())
        connection.close()
        return lines

    copy = tmp_path / "damaged.db"
    content, rng, noticed = source.read_bytes(), random.Random(2), 0
    right = dump(source)
    for _ in range(60):
        changed = bytearray(content)
        for _ in range(rng.choice([1, 20])):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        copy.write_bytes(changed)
        if damages.told(copy):
            noticed += 1
        else:
            assert dump(copy) == right
        for file in tmp_path.glob("damaged.db*"):
            file.unlink()
    assert noticed > 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE submissions SET day = day + 1 WHERE id = {one}",
        "UPDATE submissions SET id = decode(repeat('00', 16), 'hex') WHERE id = {one}",
        "UPDATE submissions SET id = '' WHERE id = {one}",
        "UPDATE submissions SET body = set_byte(body, 0, 9) WHERE id = {one}",
        "DELETE FROM submissions WHERE id = {one}",
        "UPDATE tokens SET hash = decode(repeat('00', 32), 'hex')",
        "DELETE FROM tokens",
        "UPDATE collection SET manifest = manifest || decode('20', 'hex')",
        "UPDATE tallies SET counts = counts || decode('20', 'hex') WHERE report = 'ever'",
        "UPDATE batches SET body = set_byte(body, length(body) / 2, 1)",
        "ALTER TABLE submissions DROP CONSTRAINT submissions_pkey",
    ],
)
def test_damages_of_a_database_are_named(server, change):
    toys, rng = survey(), np.random.default_rng(3)
    store = open_store(server.database(), toys)
    store.add([packed(toys, submission(toys, rng)) for _ in range(9)])
    made = batch(toys, 20)
    store.add_batch(bytes.fromhex(made.id), made.body, store.count_batch(made.body))
    new_token(store, "ann")
    assert store.verify() == []
    one = "(SELECT min(id::text)::bytea FROM submissions)"
    server.do("SET search_path = deniable", change.format(one=one))
    found = store.verify()
    assert found
    assert all("\n" not in text for text in found)
    store.close()
