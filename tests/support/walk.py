"""Two answers on their way from a device to a chart, and the functions that they enter.

Run as a script with the path of a new store, it prints the names of all functions of the package
that ran for them, as ``file: function``, in the order of their first calls.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import deniable
from deniable.collection.client import Client
from deniable.collection.survey import survey_of
from deniable.service.access import new_token
from deniable.service.app import create_app
from deniable.service.run import bind, serve
from deniable.service.store import open_store

SOURCE = f"{Path(deniable.__file__).parent}/"
#: Whether somebody read a paper today, afresh in each round, and where people live, as remembered.
QUESTIONS = [
    {"name": "paper", "ask": "A paper?", "kind": "yes/no", "mechanism": "brr"},
    {
        "name": "home",
        "ask": "Where?",
        "kind": "choice",
        "answers": ["town", "country"],
        "mechanism": "lgrr",
    },
]

#: The functions that ran, in order: a dictionary, since several threads write into it.
seen: dict[str, None] = {}


def noted(frame: Any, event: str, _: Any) -> None:
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(SOURCE):
        seen[f"{code.co_filename.removeprefix(SOURCE)}: {code.co_qualname}"] = None


def answered(port: int, folder: str, token: str) -> None:
    """One respondent answers; an analyst asks for numbers, and for the chart."""
    address = f"http://127.0.0.1:{port}"
    urllib.request.urlopen(f"{address}/v2/health").close()  # the collector has started
    with Client(address, memo=f"{folder}/memo") as client:
        client.enrol()
        seen.clear()
        client.answer({"paper": "yes", "home": "town"})
    for query in ("", "?format=chart"):
        analyst = {"Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(f"{address}/v2/estimates/paper{query}", headers=analyst)
        urllib.request.urlopen(asked).close()


def main(folder: str) -> None:
    threading.setprofile(noted)  # of all threads that start from now on
    sys.setprofile(noted)
    survey = survey_of(
        {"title": "Walk", "epsilon": 4.0, "rounds": 2, "changes": 0, "questions": QUESTIONS}
    )
    store = open_store(f"{folder}/store.db", survey)
    token = new_token(store, "ada")
    app = create_app(store)
    listening = bind("127.0.0.1", 0)

    def asked() -> None:
        try:
            answered(listening.getsockname()[1], folder, token)
            print(json.dumps(list(seen)), flush=True)
        finally:
            os._exit(0)

    threading.Thread(target=asked).start()
    serve(app, listening)


if __name__ == "__main__":
    main(sys.argv[1])
