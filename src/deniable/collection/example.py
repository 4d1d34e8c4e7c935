"""An example of a survey, and the file of any survey as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

EXAMPLE: dict[str, Any] = {
    "title": "Health at work",
    "about": "How we work, sleep and feel. Your device randomises every answer before it leaves.",
    "epsilon": 4.0,
    "divide": "split",
    "respondents": 20_000,
    "questions": [
        {
            "name": "smoking",
            "ask": "How often do you smoke?",
            "kind": "choice",
            "answers": ["never", "sometimes", "daily"],
            "optional": True,
        },
        {"name": "sick", "ask": "Did you work while sick last month?", "kind": "yes/no"},
        {
            "name": "sleep",
            "ask": "How many hours did you sleep last night?",
            "kind": "number",
            "edges": [5, 6, 7, 8],
        },
        {
            "name": "medicine",
            "ask": "Which painkiller did you take last? One word, or none.",
            "kind": "text",
            "candidates": ["none", "ibuprofen", "paracetamol", "aspirin", "diclofenac"],
        },
    ],
}
#: What the keys mean, for whoever edits the file.
_NOTES = {
    "epsilon": "what one respondent spends at most, all questions and rounds together",
    "divide": '"split": each person answers all questions; "sampled": one that the device draws',
    "respondents": "how many you expect; mechanisms are chosen for this number",
    "rounds": "how often the same people are asked",
    "changes": "how many changes of an answer are reported at most",
    "optional": "people may skip the question; estimates are about those who answer",
}


def to_toml(survey: Mapping[str, Any]) -> str:
    """A survey as the file that `read_survey` reads."""
    lines = []
    lines += [_line(*pair) for pair in survey.items() if pair[0] != "questions"]
    for question in survey["questions"]:
        lines += ["", "[[questions]]", *(_line(*pair) for pair in question.items())]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:
    note = f"  # {_NOTES[key]}" if key in _NOTES else ""
    return f"{key} = {_value(value)}{note}"


def _value(value: Any) -> str:
    """JSON's texts, numbers and lists are TOML's; only DEL must be escaped, too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
