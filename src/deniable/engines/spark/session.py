"""The Spark session that runs, or a new one that is set up for our tasks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deniable.errors import EngineUnavailable, InvalidArgument
from deniable.extras import pyspark

#: The oldest Java that Spark 4 runs on.
JAVA = 17
#: What a worker says that cannot run our tasks.
CANNOT = "deniable cannot run on this Spark worker: "
#: The settings of a session that is started here: nobody needs its web page and its bars.
_SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def session(master: str | None = None) -> Any:
    """The session that is active; else a new one on ``master``.

    Without ``master``, a new session runs where `spark-submit` or Spark's own settings say, or on
    all cores of this machine.
    """
    sql = pyspark("pyspark.sql")
    running = sql.SparkSession.getActiveSession()
    if running is None:
        return _started(sql.SparkSession.builder, master)
    found = running.sparkContext.master
    if master is not None and master != found:
        allowed = f"{found!r}, where a session is running; stop it to use another master"
        raise InvalidArgument("master", master, allowed)
    return running


def _started(builder: Any, master: str | None) -> Any:
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        require_java()
        if master is None or master.startswith("local"):
            # Workers run on this machine: with this Python, and without the network.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    if master is not None:
        builder = builder.master(master)
    try:
        started = builder.appName("deniable").getOrCreate()
    except pyspark("pyspark.errors").PySparkException as error:
        raise EngineUnavailable(f"Spark did not start: {error}") from error
    started.sparkContext.setLogLevel("ERROR")
    return started


def require_java() -> None:
    """Refuse to start Spark without Java, or with one that is too old."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    install = f"Install Java {JAVA} or later (Debian: apt-get install openjdk-17-jre-headless)"
    if program is None:
        where = f"JAVA_HOME, which is {home}" if home else "the folders of PATH"
        raise EngineUnavailable(f"Spark needs Java, and there is none in {where}. {install}")
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found is None or int(found[1]) < JAVA:
        version = found[1] if found else "of an unknown version"
        raise EngineUnavailable(f"Spark needs Java {JAVA}; {program} is Java {version}. {install}")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Say in words why Spark gave up."""
    known = (pyspark("pyspark.errors").PySparkException, pyspark("py4j.protocol").Py4JError)
    try:
        yield
    except known as error:
        told = str(error)
        if cannot := re.search(f"{CANNOT}(.*)", told):
            raise EngineUnavailable(cannot[0]) from error
        if "PYTHON_VERSION_MISMATCH" in told:
            words = "the workers have another version of Python than this program, which is "
            here = "{}.{}".format(*sys.version_info)
            raise EngineUnavailable(f"{CANNOT}{words}{here}. Set PYSPARK_PYTHON") from error
        raise EngineUnavailable(f"Spark gave up: {_reason(told)}") from error


def _reason(told: str) -> str:
    """The line of a report of Spark's that says what happened: the last error of Python, or else
    the first line."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    ours = [line for line in errors if not line.startswith(("org.", "py4j.", "java."))]
    return (ours or errors or lines or ["for no stated reason"])[0]
