"""Reads the corpus: conversations, ratings and parts.

`corpus/PROTOCOL.md` describes the formats.
"""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "corpus"
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
AUTHORS = {
    "C": {"type": "contact", "external_id": "customer"},
    "A": {"type": "ai", "external_id": "support-bot"},
    "H": {"type": "teammate", "external_id": "teammate"},
    "N": {"type": "teammate", "external_id": "teammate"},
    "S": {"type": "system"},
    "M": {"type": "mixed"},
}
CUSTOMER_ACTS = "ask tell confirm accept thank doubt reject repeat person quit back off irony".split()
AGENT_ACTS = "fit beside askback act claim promise decline refuse handover sorry close".split()
ACTS = CUSTOMER_ACTS + AGENT_ACTS
STATUSES = ["resolved", "partial", "not_resolved"]
SOLVERS = ["ai", "human", "customer", "none", "unknown"]
CHARGES = ["supported", "review", "disputed", "na"]
SCORES = ["RA", "IE", "HS"]


@dataclass
class Item:
    """One item: author (a letter of the protocol), seconds since the previous item, text."""

    author: str
    gap: int
    text: str


@dataclass
class Rating:
    """A rating by one rater; a score is None if not applicable."""

    scores: list
    status: str
    by: str
    charge: str
    why: str
    # Acts of each item, by its position from 1.
    acts: dict = field(default_factory=dict)


@dataclass
class Conversation:
    """A conversation with its metadata and ratings."""

    id: str
    writer: str
    split: str
    kind: str
    language: str
    domain: str
    subject: str
    channel: str
    items: list
    design: str = ""
    ratings: list = field(default_factory=list)


def parse_conversations(path):
    """Yields (id, domain, subject, channel, items, design) of a file of one writer."""
    found = None
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        if line.startswith("### "):
            if found:
                yield found
            head = [part.strip() for part in line[4:].split("|")] + [""] * 3
            found = {"id": head[0], "domain": head[1], "subject": head[2], "channel": head[3], "items": [], "design": ""}
        elif found is None:
            continue
        elif line.startswith("= design:"):
            found["design"] = line[9:].strip()
        elif match := re.match(r"^([CAHNSM]):\s?(.*)$", line):
            gap, text = 30, match.group(2)
            if time := re.match(r"^\[(\d+(?:\.\d+)?)\s*([smhd])\]\s*(.*)$", text):
                gap, text = int(float(time.group(1)) * SECONDS[time.group(2)]), time.group(3)
            found["items"].append(Item(match.group(1), gap, text))
        elif found["design"]:
            found["design"] += " " + line.strip()
        elif found["items"]:
            found["items"][-1].text += "\n" + (line[2:] if line.startswith("  ") else line)
    if found:
        yield found


def parse_ratings(path):
    """The ratings of a file of one rater, by conversation."""
    ratings, current = {}, None
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        if re.match(r"^\S+-\d+\s*\|", line):
            name, *fields = [part.strip() for part in line.split("|")]
            scores = [None if value == "-" else float(value) for value in fields[:3]]
            current = ratings[name] = Rating(scores, *fields[3:6], why=" ".join(fields[6:]))
        elif current and re.match(r"^\s+\d+ ", line):
            for entry in filter(None, (part.strip() for part in line.split(";"))):
                place, codes = entry.split(None, 1)
                current.acts[int(place)] = [code for code in re.split(r"[,\s]+", codes) if code]
    return ratings


def load():
    """Every conversation of the corpus with its ratings, in the order of the files."""
    conversations = []
    for line in (ROOT / "writers.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        writer, split, kind, language = line.split("\t")[:4]
        readers = [parse_ratings(path) for path in sorted((ROOT / "ratings").glob(f"{writer}.*.txt"))]
        for found in parse_conversations(ROOT / "conversations" / f"{writer}.txt"):
            ratings = [ratings[found["id"]] for ratings in readers if found["id"] in ratings]
            conversations.append(Conversation(writer=writer, split=split, kind=kind, language=language, ratings=ratings, **found))
    return conversations


def body(conversation_id, subject, items):
    """The request body; its start time, in spring 2026, depends on the id alone."""
    at = 1767600000000 + int(hashlib.sha256(conversation_id.encode()).hexdigest()[:6], 16) % (90 * 86400) * 1000
    messages = []
    for index, item in enumerate(items):
        at += item.gap * 1000 if index else 0
        if not item.text.strip():
            continue
        message = {"external_id": f"{conversation_id}-{index + 1}", "timestamp": at, "author": AUTHORS[item.author], "content": item.text.strip()}
        if item.author == "N":
            message["kind"] = "comment"
        messages.append(message)
    return {"ticket_id": conversation_id, "source": "written", **({"subject": subject} if subject else {}), "messages": messages}


def mean(values):
    """The mean of the values that are not None; None without any."""
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def shares(values, names):
    """The share of each name among the values; zeros without any."""
    counts = [sum(value == name for value in values) for name in names]
    return [count / max(1, sum(counts)) for count in counts]


def label(conversation):
    """The combined label of all raters: means of scores, shares of verdicts."""
    ratings = conversation.ratings
    return {
        **{name: mean(rating.scores[at] for rating in ratings) for at, name in enumerate(SCORES)},
        "status": shares([rating.status for rating in ratings], STATUSES),
        "by": shares([rating.by for rating in ratings], SOLVERS),
        "charge": shares([rating.charge for rating in ratings], CHARGES),
    }
