"""What comes from outside is counted exactly, or refused as a whole with the right problem."""

import json
import struct
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from collection_toys import WIRE_CASES, batch, by_region, submission, survey
from deniable.collection import batches
from deniable.collection.batches import write_batch
from deniable.collection.bulk import privatized
from deniable.collection.manifest import Collection
from deniable.collection.survey import survey_of
from deniable.collection.wire import Submission
from deniable.core import reports
from deniable.errors import CorruptData, InvalidArgument
from deniable.randomness import draw_key
from deniable.service.encoding import Packing, TallyKey
from deniable.service.intake import Intake
from deniable.service.problems import Problem
from deniable.service.store import Outcome, open_store
from mutations import mutated
from places import VECTORS

SPECS = [
    pytest.param(json.loads(path.read_text())["good"][0]["spec"], id=path.stem)
    for path in sorted((VECTORS / "mechanisms").glob("*.json"))
]
BAD = json.loads((VECTORS / "bad" / "submissions.json").read_text())
by_case = pytest.mark.parametrize("vector", WIRE_CASES.values(), ids=WIRE_CASES)
SPLIT, SAMPLED, REGIONS = survey(), survey("sampled"), by_region()
SOUTH = {"region": "south", "age": "old"}
by_collection = pytest.mark.parametrize("collection", [SPLIT, SAMPLED], ids=["split", "sampled"])


def problem(intake, body, kind="single"):
    """The type of the problem that a body is refused with; None if it is taken."""
    try:
        getattr(intake, kind)(body)
    except Problem as problem:
        refused = problem
    else:
        return None
    assert json.loads(refused.response().body)["status"] == refused.status < 500
    return refused.kind


# ---- the vectors


@by_case
def test_good_vectors_are_counted_once(vector, tmp_path):
    collection = Collection.from_manifest(vector["manifest"].encode())
    assert collection.digest == vector["digest"]
    intake, store = Intake(collection), open_store(str(tmp_path / "s.db"), collection)
    entries = [intake.single(case["body"].encode()) for case in vector["good"]]
    assert store.add(entries) == [Outcome.counted] * len(entries)
    assert store.add(entries) == [Outcome.known] * len(entries)
    assert store.verify() == []
    store.close()


@by_case
def test_bad_vectors_are_refused_for_the_right_reason(vector):
    intake = Intake(Collection.from_manifest(vector["manifest"].encode()))
    found = {c["why"]: problem(intake, c["body"].encode()) for c in vector["bad"]}
    assert found == {case["why"]: case["type"] for case in vector["bad"]}


@pytest.mark.parametrize("case", BAD, ids=lambda case: case["why"])
def test_bad_submissions_are_refused_for_the_right_reason(case):
    intake = Intake(Collection.from_manifest(case["manifest"].encode()))
    assert problem(intake, case["body"].encode()) == case["type"]


# ---- single rows


def rows_of(m):
    """Rows that a device makes, rows that one bit makes different, and any bytes."""
    length = m.dtype.itemsize
    seeds = [np.random.default_rng(seed) for seed in range(20)]
    made = [one_row(m, rng) for rng in seeds]
    flips = st.tuples(st.sampled_from(made), st.integers(0, 8 * length - 1)).map(flipped)
    sparse = st.integers(0, 8 * length - 1).map(lambda bit: (1 << bit).to_bytes(length, "little"))
    anything = st.binary(min_size=length, max_size=length)
    return st.one_of(st.sampled_from(made), flips, sparse, anything)


def one_row(m, rng):
    answers = m.domain.sample()
    values = np.array([answers[int(rng.integers(len(answers)))]], dtype=m.domain.dtype)
    return m.randomise(values, draw_key(rng)).tobytes()


def flipped(place):
    row, bit = place
    content = bytearray(row)
    content[bit >> 3] ^= 1 << (bit & 7)
    return bytes(content)


def countable(m, row):
    column = np.frombuffer(row, dtype=[("row", m.dtype)])["row"]
    try:
        m.count(np.ascontiguousarray(column))
    except InvalidArgument:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS)
def test_the_check_of_a_row_agrees_with_counting(spec):
    """A row that passes alone must never spoil the group that it is counted with."""
    m = dn.from_spec(spec)
    rows, check = rows_of(m), m.layout.refusal

    @settings(max_examples=60)
    @given(rows)
    def agree(row):
        assert (check(row) is None) == countable(m, row), row.hex()

    agree()
    assert check(bytes(m.dtype.itemsize + 1)) is not None
    assert check(b"") is not None


# ---- bodies of submissions


@pytest.mark.slow
@by_case
def test_mutated_submissions_are_refused_or_harmless(vector):
    """Whatever becomes of the bytes: a problem below 500, or a sound report."""
    intake = Intake(Collection.from_manifest(vector["manifest"].encode()))
    good = [case["body"].encode() for case in vector["good"]]

    @settings(max_examples=400)
    @given(mutated(good))
    def harmless(body):
        if problem(intake, body) is None:
            _, packed = intake.single(body)
            Packing(intake._collection).count([packed])

    harmless()


ODD = {
    "nothing": b"",
    "NUL": b"\0",
    "nan": b"NaN",
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"reports":' * 100_000,
    "a lone surrogate": b'{"id":"\\ud800"}',
    "half a pair in a key": b'{"\\udfff":1}',
    "not UTF-8": b'{"\xff":1}',
    "UTF-16": '{"id":1}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a huge integer": b'{"round":' + b"9" * 100_000 + b"}",
    "a huge float": b'{"round":1e400}',
    "a list": b"[]",
}


@pytest.mark.parametrize("why", ODD)
def test_odd_bodies_are_malformed(why):
    assert problem(Intake(SPLIT), ODD[why]) == "malformed"


# ---- batches


def table_of(body):
    return pa.ipc.open_stream(body).read_all()


@by_collection
def test_a_batch_is_counted_exactly(collection):
    made = batch(collection, 500)
    name, counts = Intake(collection).batch(made.body)
    assert name.hex() == made.id
    assert set(counts) == {TallyKey(report.name) for report in collection.reports}
    for place, tally in counts.items():
        assert tally.n == len(table_of(made.body).column(place.report)) == 500
        assert tally.mechanism.possible_counts(tally.counts, tally.n)


@pytest.mark.slow
@by_collection
def test_mutated_batches_are_refused_or_counted_as_they_say(collection):
    """Never another error, and never a count that the reports do not have."""
    intake = Intake(collection)
    good = [batch(collection, n, seed).body for seed, n in enumerate((0, 1, 3, 40))]
    taken = []

    @settings(max_examples=1_500)
    @given(mutated(good))
    def sound(body):
        if problem(intake, body, "batch") is None:
            _, counts = intake.batch(body)
            rows = table_of(body).num_rows
            for tally in counts.values():
                assert tally.n == rows
                assert tally.mechanism.possible_counts(tally.counts, rows)
            taken.append(rows)

    sound()
    assert taken


def rewritten(collection, change=None, n=20, **options):
    """The bytes of a batch whose table was changed."""
    body = batch(collection, n).body
    table = table_of(body)
    metadata = table.schema.metadata
    table = change(table) if change else table
    table = table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


def replaced(name, make):
    def change(table):
        place = table.column_names.index(name)
        return table.set_column(place, name, make(table.column(name)))

    return change


def with_null(column):
    values = column.to_pylist()
    values[next(row for row, value in enumerate(values) if value is not None)] = None
    return pa.chunked_array([pa.array(values, column.type)])


def union_of(n):
    return pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array([0] * n, pa.uint8())])


CHANGES = {
    "a wider integer": replaced("way", lambda c: c.cast(pa.uint16())),
    "a signed integer": replaced("way", lambda c: c.cast(pa.int8())),
    "a float": replaced("way", lambda c: c.cast(pa.float32())),
    "a text": replaced("way", lambda c: c.cast(pa.string())),
    "a dictionary": replaced("way", lambda c: c.dictionary_encode()),
    "a list": replaced("way", lambda c: pa.array([[1]] * len(c))),
    "nulls only": replaced("way", lambda c: pa.nulls(len(c))),
    "runs": replaced("way", lambda c: pc.run_end_encode(c)),
    "a union": replaced("way", lambda c: union_of(len(c))),
    "a structure": replaced(
        "way", lambda c: pa.StructArray.from_arrays([c.combine_chunks()], ["a"])
    ),
    "a missing value": replaced("way", with_null),
    "free bytes": replaced("pets", lambda c: c.cast(pa.binary())),
    "longer rows": replaced("pets", lambda c: pa.array([b"fives"] * len(c), pa.binary(5))),
    "a column less": lambda table: table.drop_columns(["way"]),
    "a column more": lambda table: table.append_column("more", table.column("way")),
    "two of one name": lambda table: table.append_column("way", table.column("way")),
    "another order": lambda table: table.select(table.column_names[::-1]),
}


@pytest.mark.parametrize("why", CHANGES)
def test_other_tables_are_malformed(why):
    body = rewritten(SPLIT, CHANGES[why])
    assert problem(Intake(SPLIT), body, "batch") == "malformed"


@pytest.mark.parametrize("why", ["missing", "free", "shorter", "longer", "integers"])
def test_a_drawn_report_is_a_row_of_bytes(why):
    """With the place of its branch and zeros at the end, of one length and never missing."""
    change = {
        "missing": with_null,
        "free": lambda c: c.cast(pa.binary()),
        "shorter": lambda c: pa.array([b"four"] * len(c), pa.binary(4)),
        "longer": lambda c: pa.array([b"sixsix"] * len(c), pa.binary(6)),
        "integers": lambda c: pa.array([0] * len(c), pa.uint8()),
    }[why]
    body = rewritten(SAMPLED, replaced("all", change))
    assert problem(Intake(SAMPLED), body, "batch") == "malformed"


#: Types whose rows need no bytes, or fewer than one each.
WEIGHTLESS = {
    "nulls": pa.nulls,
    "runs": lambda n: pa.RunEndEncodedArray.from_arrays(
        pa.array([n], pa.int64()), pa.array([0], pa.uint8())
    ),
    "empty rows": lambda n: pa.array([b""] * n, pa.binary(0)),
    "empty structures": lambda n: pa.array([{}] * n, pa.struct([])),
    "lists": lambda n: pa.array([[]] * n, pa.list_(pa.uint8())),
    "unions": union_of,
    "bits": lambda n: pa.array([True] * n),
    "reports": None,
}


@by_collection
@pytest.mark.parametrize("rows", [1 << 30, 1 << 40, 1 << 62])
@pytest.mark.parametrize("why", WEIGHTLESS)
def test_rows_that_are_only_stated_take_no_memory(why, rows, collection):
    """The number of rows is replaced by a huge one wherever the stream states it."""
    stated, columns = 1237, {}
    table = table_of(batch(collection, stated).body)
    for name in table.column_names:
        columns[name] = WEIGHTLESS[why](stated) if WEIGHTLESS[why] else table.column(name)
    table = pa.table(columns).replace_schema_metadata(table.schema.metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    body = sink.getvalue().to_pybytes()
    body = body.replace(struct.pack("<q", stated), struct.pack("<q", rows))
    tracemalloc.start()
    try:
        assert problem(Intake(collection), body, "batch") == "malformed"
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_columns_do_not_share_their_bytes():
    """All columns of one type at the same place: a short body would be counted many times."""
    names = [f"q{i}" for i in range(20)]
    asked = [{"name": name, "ask": "?", "kind": "yes/no", "mechanism": "brr"} for name in names]
    collection = survey_of({"title": "Many", "epsilon": 9.0, "questions": asked}).collection
    body = batch(collection, 4096).body
    for number in range(2, len(names)):  # a buffer is its offset and its length
        old = struct.pack("<qq", 4096 * number, 4096)
        assert body.count(old) == 1
        body = body.replace(old, struct.pack("<qq", 0, 4096))
    assert problem(Intake(collection), body, "batch") is None  # all bytes are still there
    head = body[: -8 - 20 * 4096].replace(struct.pack("<q", 20 * 4096), struct.pack("<q", 2 * 4096))
    body = head + body[len(head) : len(head) + 2 * 4096] + body[-8:]
    assert problem(Intake(collection), body, "batch") == "malformed"


@pytest.mark.parametrize("error", [MemoryError, ValueError, OSError, pa.ArrowMemoryError])
def test_whatever_arrow_raises_is_malformed(error, monkeypatch):
    def fails(*_):
        raise error("no")

    monkeypatch.setattr(batches, "from_arrow_column", fails)
    assert problem(Intake(SPLIT), batch(SPLIT, 5).body, "batch") == "malformed"


def test_the_memory_of_a_sampled_batch_is_a_small_multiple():
    """Besides its body at most three times its length, where every report is two bytes."""
    asked = [{"name": n, "ask": "?", "kind": "yes/no", "mechanism": "brr"} for n in ("a", "b")]
    data = {"title": "One", "epsilon": 1.0, "divide": "sampled", "questions": asked}
    collection = survey_of(data).collection
    columns = {"all": np.zeros((2_000_000, 2), dtype=np.uint8)}
    columns["all"][::2, 0] = 1
    body = write_batch(collection, columns).body
    intake, pool = Intake(collection), pa.proxy_memory_pool(pa.default_memory_pool())
    intake.batch(batch(collection, 10).body)
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        intake.batch(body)
        peak = tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert peak < 3 * len(body)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_batches_are_malformed(compression):
    body = rewritten(SPLIT, n=5_000, compression=compression)
    assert problem(Intake(SPLIT), body, "batch") == "malformed"


def test_the_same_table_written_otherwise_is_taken():
    """Without the end mark, in several pieces, with other alignment."""
    intake = Intake(SPLIT)
    whole = rewritten(SPLIT)
    right = intake.batch(whole)[1]
    pieces = rewritten(SPLIT, lambda table: pa.concat_tables([table.slice(0, 7), table.slice(7)]))
    for body in (whole[:-8], pieces):
        assert intake.batch(body)[1] == right


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("deniable.id", b"X" * 32, "malformed"),
        ("deniable.id", b"\xff\xfe", "malformed"),
        ("deniable.collection", b"0" * 64, "other-collection"),
        ("deniable.round", b"2", "impossible-report"),
        ("deniable.round", b"0", "impossible-report"),
        ("deniable.round", b"01", "impossible-report"),
        ("deniable.round", "\u0661".encode(), "impossible-report"),
        ("deniable.round", b"9" * 5_000, "impossible-report"),
        ("deniable.fields", b"", "malformed"),
        ("deniable.fields", b"{ }", "malformed"),
        ("deniable.fields", b"\xff", "malformed"),
        ("deniable.fields", b"[]", "impossible-report"),
        ("deniable.fields", b"7", "impossible-report"),
        ("deniable.fields", b'{"region":"south"}', "impossible-report"),
        ("deniable.more", b"", "malformed"),
    ],
)
def test_what_a_batch_says_about_itself_is_checked(key, value, kind):
    table = table_of(batch(SPLIT, 5).body)
    metadata = {**table.schema.metadata, key.encode(): value}
    table = table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    assert problem(Intake(SPLIT), sink.getvalue().to_pybytes(), "batch") == kind


def test_an_impossible_report_spoils_its_batch():
    columns = {r.name: np.zeros(4, dtype=r.mechanism.dtype) for r in SPLIT.reports}
    intake = Intake(SPLIT)
    assert problem(intake, write_batch(SPLIT, columns).body, "batch") is None
    for name, bad in (("way", 3), ("ever", 2), ("hours", 255)):
        worse = {**columns, name: np.array([0, 0, 0, bad], dtype=columns[name].dtype)}
        body = write_batch(SPLIT, worse).body
        assert problem(intake, body, "batch") == "impossible-report"
    padded = columns["pets"].copy()
    padded[2, -1] = 0x80
    body = write_batch(SPLIT, {**columns, "pets": padded}).body
    assert problem(intake, body, "batch") == "impossible-report"


#: Rows of a drawn report (a place, and up to four bytes) that no device makes.
IMPOSSIBLE = {
    "a branch": "0400000000",
    "padding": "0000010000",
    "the last byte of the padding": "0100000001",
    "a value": "0003000000",
    "a bit": "0300000010",
}


@pytest.mark.parametrize("why", IMPOSSIBLE)
def test_impossible_rows_of_a_drawn_report_are_refused(why):
    row, intake = bytes.fromhex(IMPOSSIBLE[why]), Intake(SAMPLED)
    sent = Submission(SAMPLED.digest, "0" * 32, {"all": row})
    assert problem(intake, sent.to_json()) == "impossible-report"
    columns = {"all": np.frombuffer(bytes(5) + row, dtype=np.uint8).reshape(2, 5)}
    assert problem(intake, write_batch(SAMPLED, columns).body, "batch") == "impossible-report"


# ---- public fields


def test_public_fields_are_counted_by_stratum():
    intake = Intake(REGIONS)
    made = batch(REGIONS, 30, fields=SOUTH)
    assert set(intake.batch(made.body)[1]) == {TallyKey("way", 1, 5), TallyKey("ever", 1, 5)}
    for stratum in range(REGIONS.strata):
        fields = REGIONS.fields_of(stratum)
        body = submission(REGIONS, np.random.default_rng(1), fields=fields).to_json()
        for text in (body, json.dumps(json.loads(body), indent=1).encode()):
            (place, _), *_ = Packing(REGIONS).count([intake.single(text)[1]])
            assert place.stratum == stratum


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({}, "/fields"),
        ({"region": "south"}, "/fields"),
        ({**SOUTH, "more": "x"}, "/fields"),
        ({**SOUTH, "region": "South"}, "/fields/region"),
        ({**SOUTH, "age": ""}, "/fields/age"),
    ],
)
def test_other_public_fields_are_refused_where_they_are(fields, pointer):
    body = submission(REGIONS, np.random.default_rng(1), fields=fields).to_json()
    with pytest.raises(Problem) as refused:
        Intake(REGIONS).single(body)
    assert (refused.value.kind, refused.value.pointer) == ("impossible-report", pointer)
    made = batch(REGIONS, 3, fields=fields)
    assert problem(Intake(REGIONS), made.body, "batch") == "impossible-report"


def test_a_field_that_stands_twice_is_malformed():
    """Also where its value has quotation marks, however they are written."""
    intake = Intake(REGIONS)
    body = submission(REGIONS, np.random.default_rng(1), fields=REGIONS.fields_of(0)).to_json()
    spelt = body.replace(rb"\"north\"", rb"\u0022north\u0022")
    assert problem(intake, body) is problem(intake, spelt) is None
    for text in (body, spelt):
        twice = text.replace(b'"region":', b'"region":"south","region":')
        assert problem(intake, twice) == "malformed"


def test_bytes_after_the_end_are_malformed():
    body = batch(SPLIT, 20).body
    for tail in (b"\0", b"\0" * 8, body, body[-8:]):
        assert problem(Intake(SPLIT), body + tail, "batch") == "malformed"


def test_a_stream_begins_with_a_schema():
    """Arrow crashes where the first message is another, or of a kind that it does not know."""
    body, intake = batch(SPLIT, 20).body, Intake(SPLIT)
    source = pa.BufferReader(body)
    pa.ipc.read_message(source)
    assert problem(intake, body[source.tell() :], "batch") == "malformed"
    for place in range(80):
        for value in (0, 2, 3, 4, 5, 0x81):
            problem(intake, body[:place] + bytes([value]) + body[place + 1 :], "batch")


@pytest.mark.parametrize("length", [0x7FFFFFFF, 0xFFFFFFF0, 1 << 20])
def test_huge_lengths_are_believed_by_nobody(length):
    """Every length in the stream is replaced: no memory is taken for what is not there."""
    body = batch(SPLIT, 20).body
    intake = Intake(SPLIT)
    for place in range(4, len(body) - 8, 4):
        problem(intake, body[:place] + struct.pack("<I", length) + body[place + 4 :], "batch")
    assert pa.total_allocated_bytes() < 1 << 26


def test_very_many_tiny_pieces_are_malformed():
    """A batch in pieces of one row would cost many times its length in memory."""
    table = table_of(batch(SPLIT, 20_000).body)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table, max_chunksize=1)
    assert problem(Intake(SPLIT), sink.getvalue().to_pybytes(), "batch") == "malformed"


# ---- keys that stand twice, and files that grow


@by_collection
def test_a_key_that_stands_twice_is_malformed(collection):
    """JSON leaves it open which one counts, so none does; at any depth, however it is written."""
    intake = Intake(collection)
    body = submission(collection, np.random.default_rng(5)).to_json()
    assert problem(intake, body) is None
    assert problem(intake, json.dumps(json.loads(body), indent=3).encode()) is None
    name, text = next(iter(json.loads(body)["reports"].items()))
    again = f'"reports":{{"{name}":"{text}",'.encode()
    doubled = {
        b'"round":1': (b'"round":1,"round":1', b'"r\\u006fund":1,"round":1'),
        b'"reports":{': (b'"reports":{},"reports":{', again),
        b'{"collection"': (b'{"id":"","collection"', b'{"collection":"x","collection"'),
    }  # fmt: skip
    for place, others in doubled.items():
        for other in others:
            assert place in body
            assert problem(intake, body.replace(place, other, 1)) == "malformed", other


@pytest.mark.slow
def test_a_small_file_that_stands_for_many_rows_is_not_read(tmp_path, monkeypatch):
    """Two million equal reports, and a long text 20,000 times: files of a few kilobytes."""
    monkeypatch.setattr(reports, "MOST_BYTES", 1 << 20)
    mechanism = dn.GRR(["a", "b"], 1.0)
    few = dn.Reports(mechanism, np.zeros(1000, dtype=mechanism.dtype))
    few.to_parquet(tmp_path / "few.parquet")
    assert len(dn.Reports.from_parquet(tmp_path / "few.parquet")) == 1000
    many = dn.Reports(mechanism, np.zeros(2_000_000, dtype=mechanism.dtype))
    parquet.write_table(many.to_arrow(), tmp_path / "many.parquet", compression="zstd")
    table = pa.table({q.name: ["x" * 1000] * 20_000 for q in SPLIT.questions})
    parquet.write_table(table, tmp_path / "texts.parquet", compression="zstd")
    for name in ("many", "texts"):
        assert (tmp_path / f"{name}.parquet").stat().st_size < 20_000
    with pytest.raises(CorruptData, match="more than 1 MB"):
        dn.Reports.from_parquet(tmp_path / "many.parquet")
    with pytest.raises(CorruptData, match="more than 1 MB"):
        privatized(SPLIT, tmp_path / "texts.parquet", 1, 1000, "refuse")


def test_other_columns_of_a_file_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "MOST_BYTES", 1 << 16)
    answers = {"way": "car", "ever": "yes", "hours": 6.5, "pets": "pet 1"}
    table = pa.table(
        {**{name: [value] * 20 for name, value in answers.items()}, "z": ["x" * 5000] * 20}
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    assert sum(part.n for part in privatized(SPLIT, tmp_path / "t.parquet", 1, 7, "refuse")) == 20
    parquet.write_table(table.drop_columns(["way"]), tmp_path / "u.parquet")
    with pytest.raises(InvalidArgument, match="'z'"):
        privatized(SPLIT, tmp_path / "u.parquet", 1, 7, "refuse")
