"""Conversations as the models see them, with what readers said of them."""

import json
from dataclasses import dataclass

import numpy as np
from corpus import ACTS, AGENT_ACTS, CUSTOMER_ACTS
from scipy.sparse import csr_matrix

# Of an act, in the order of the outputs.
CUSTOMER = len(CUSTOMER_ACTS)
COMPLAINTS = [ACTS.index(name) for name in ("reject", "repeat", "person", "quit", "back", "irony")]
FADES, HELP_FADES = 0.6, 0.8


@dataclass
class Read:
    """One conversation."""

    label: dict
    roles: str
    grams: list
    facts: np.ndarray
    facts_with_unseen: np.ndarray
    # For each message that is read: shares of the readers who gave each act.
    acts: np.ndarray
    # Whether any reader said what the messages do.
    has_acts: bool

    def is_phrase(self):
        """Whether this is a stock phrase behind the opening of a conversation, and no conversation."""
        return self.label["id"].startswith("phrase-")

    def told(self):
        """For each message whether it is known what it does."""
        if self.is_phrase():
            return self.acts.any(1)
        return np.full(len(self.roles), self.has_acts)


def load(folder):
    """Every conversation of `inputs.jsonl` and `labels.jsonl`."""
    reads = []
    with open(folder / "inputs.jsonl") as inputs, open(folder / "labels.jsonl") as labels:
        for line, told in zip(inputs, labels):
            found, label = json.loads(line), json.loads(told)
            assert found["id"] == label["id"]
            acts = np.zeros((len(found["messages"]), len(ACTS)), np.float32)
            for place, item in enumerate(found["messages"]):
                given = label["acts"].get(str(item), [])
                for codes in given:
                    for code in codes:
                        if code in ACTS:
                            acts[place, ACTS.index(code)] += 1 / len(given)
            facts = [np.array(found[name], np.float32) for name in ("facts", "facts_with_unseen")]
            reads.append(Read(label, found["roles"], found["grams"], *facts, acts, bool(label["acts"])))
    return reads


def can(role):
    """Which acts a speaker of this letter can do."""
    mask = np.zeros(len(ACTS), bool)
    mask[:CUSTOMER] = role in "CM"
    mask[CUSTOMER:] = role in "AHM"
    return mask


class Grams:
    """What is seen of messages, as rows of a matrix."""

    def __init__(self, reads, least):
        seen, counts = np.unique(np.concatenate([np.array(grams, np.uint32) for read in reads for grams in read.grams]), return_counts=True)
        kept = counts >= least
        self.hashes = seen[kept]
        messages = sum(len(read.grams) for read in reads)
        self.rarity = (np.log((1 + messages) / (1 + counts[kept])) + 1).astype(np.float32)

    def matrix(self, reads):
        """One row of length 1 for each message of these conversations, in order."""
        rows, columns, at = [], [], 0
        for read in reads:
            for grams in read.grams:
                grams = np.array(grams, np.uint32)
                places = np.searchsorted(self.hashes, grams)
                places[places == len(self.hashes)] = 0
                found = places[self.hashes[places] == grams]
                rows.append(np.full(len(found), at))
                columns.append(found)
                at += 1
        rows, columns = np.concatenate(rows), np.concatenate(columns)
        values = self.rarity[columns]
        matrix = csr_matrix((values, (rows, columns)), (at, len(self.hashes)))
        lengths = np.sqrt(matrix.multiply(matrix).sum(1)).A1 if hasattr(matrix, "A1") else np.asarray(np.sqrt(matrix.multiply(matrix).sum(1))).ravel()
        return csr_matrix((values / np.maximum(lengths[rows], 1e-30), (rows, columns)), matrix.shape)


def features(read, acts, facts):
    """A conversation in numbers, as crates/scoring/src/reader/course_features.rs computes them."""
    roles, none = read.roles, np.zeros(len(ACTS))
    customer = [at for at, role in enumerate(roles) if role == "C"]
    answers = [at for at, role in enumerate(roles) if role in "AHM"]
    last = customer[-1] if customer else None
    heard = next((at for at in reversed(answers) if last is not None and at < last), None)
    unheard = [at for at in answers if last is None or at >= last]
    final_turn = [at for at in customer if at >= (heard or 0)]

    def total(places):
        return sum((acts[at] for at in places), none)

    def highest(places):
        return np.max([acts[at] for at in places], 0) if places else none

    def faded(places):
        return sum((FADES**place * acts[at] for place, at in enumerate(reversed(places))), none)

    content = courteous = unhappy = helped = 0.0
    index = ACTS.index
    for at in customer:
        confirms, complains = acts[at][index("confirm")], max(acts[at][COMPLAINTS])
        content = max(confirms, content * (1 - complains))
        courteous = max(acts[at][index("thank")], acts[at][index("accept")], courteous * (1 - complains))
        unhappy = max(complains, unhappy * (1 - confirms))
    for at in answers:
        helped = max(acts[at][index("fit")], acts[at][index("act")], helped * HELP_FADES)
    parts = [[content, courteous, unhappy, helped], faded(customer), faded(answers)]
    parts += [total(range(len(roles))), highest(list(range(len(roles)))), total(customer[-1:]), total(customer[-2:-1])]
    parts += [total([heard] if heard is not None else []), total(unheard), highest(final_turn), facts]
    return np.concatenate(parts).astype(np.float32)


assert len(CUSTOMER_ACTS) + len(AGENT_ACTS) == len(ACTS)
