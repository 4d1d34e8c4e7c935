"""A lake in an object store: a server on this machine that speaks S3, and addresses of it."""

import json
import logging

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

import deniable as dn
from command import run
from deniable.engines import report_files, tally_files
from deniable.engines.privatising import privatise_files
from deniable.errors import CorruptData, InvalidArgument
from lakes import some

pytestmark = pytest.mark.network

M = dn.OUE(["car", "train", "bus"], 2.0)
REPORTS = some(M, 600)
ANSWERS = np.random.default_rng(1).choice(["daily", "never"], 500).tolist()


@pytest.fixture(scope="module")
def bucket():
    """The address of a bucket, and Arrow's file system that holds it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        server.start()
        host, port = server.get_host_and_port()
        place = f"endpoint_override=http%3A%2F%2F{host}%3A{port}&scheme=http"
        system, _ = pa.fs.FileSystem.from_uri(f"s3://lake?{place}&allow_bucket_creation=true")
        system.create_dir("lake")
        yield lambda path: f"s3://lake/{path}?{place}", system
        server.stop()


@pytest.fixture(scope="module")
def lake(bucket):
    """The address of 600 reports of two regions in four files."""
    address, system = bucket
    for i, region in enumerate(("north", "south")):
        for part in (0, 1):
            rows = REPORTS[300 * i + 150 * part :][:150]
            path = f"lake/reports/region={region}/{part}.parquet"
            with system.open_output_stream(path) as file:
                pq.write_table(rows.to_arrow(), file, row_group_size=70)
    return address("reports")


def test_reports_in_an_object_store_are_tallied(lake, tmp_path):
    found = tally_files([lake], by=["region"])
    assert {group: tally.n for group, tally in found.items()} == {("north",): 300, ("south",): 300}
    run("tally", lake, "-o", tmp_path / "all.tally")
    tally = dn.Tally.from_bytes((tmp_path / "all.tally").read_bytes())
    np.testing.assert_array_equal(tally.counts, M.tally(REPORTS).counts)
    assert len(tally.sources) == 4


def test_decoders_that_need_reports_read_them_there(lake):
    held = M.estimate(REPORTS, "likelihood").frequencies
    stored = report_files([lake])
    np.testing.assert_allclose(stored.estimate("likelihood").frequencies, held, atol=1e-9)
    shown = json.loads(run("estimate", lake, "-f", "json").stdout)
    assert shown["n"] == 600


def test_answers_in_an_object_store_are_privatised(bucket, tmp_path):
    address, system = bucket
    with system.open_output_stream("lake/answers/a.parquet") as file:
        pq.write_table(pa.table({"smoking": ANSWERS}), file)
    asked = {"smoking": dn.GRR(["daily", "never"], 1.0)}
    privatise_files([address("answers")], asked, tmp_path / "out")
    (tally,) = tally_files([tmp_path / "out"]).values()
    assert tally.n == 500


def test_what_is_missing_or_damaged_is_named(bucket, lake):
    address, system = bucket
    with pytest.raises(FileNotFoundError, match="nothing"):
        tally_files([address("nothing")])
    with system.open_output_stream("lake/damaged/a.parquet") as file:
        file.write(b"PAR1 and nothing that follows")
    with pytest.raises(CorruptData, match=r"lake/damaged/a\.parquet"):
        tally_files([address("damaged")])
    with pytest.raises(InvalidArgument, match="would count twice"):
        tally_files([lake, lake])
