"""What the reader is trained on: the conversations of the corpus, and changed ones whose ratings follow from the change.

    python3 training/prepare.py target/training

writes `bodies.jsonl` (for the example `reader_inputs` of crates/scoring) and `labels.jsonl`, one line each.
The changes are those of the phrase banks in crates/scoring/tests/metamorphic: a complaint added at the end makes a
resolved issue an unresolved one, a confirmation the other way round, an agent's claim and a signature change nothing.
"""

import argparse
import copy
import json
import random
from pathlib import Path

import corpus
from corpus import CHARGES, SOLVERS, STATUSES, Item

BANKS = Path(__file__).resolve().parent.parent / "crates/scoring/tests/metamorphic"
LANGUAGES = ["en", "es", "de", "fr", "pt", "zh"]
# Share of the training conversations that come once more with a change.
CHANGED = 0.2
# Stock phrases that are fitted on: few beside the conversations, so that they are known but do not teach what to look for.
PHRASES = 800
COMPLAINTS = {"rejections": ["reject"], "sarcasm": ["irony", "reject"], "human_requests": ["person"], "complaint_repetitions": ["repeat", "reject"]}


def bank(name, language):
    """The phrases of a bank."""
    path = BANKS / f"{name}.{language}.txt"
    return [line.replace("\\n", "\n") for line in path.read_text(encoding="utf-8").splitlines()]


def one_hot(name, names):
    return [float(name == other) for other in names]


def language_of(conversation):
    """The language of a conversation; in files of several languages they take turns, so it is guessed by letters."""
    if conversation.language in LANGUAGES:
        return conversation.language
    text = " ".join(item.text for item in conversation.items)
    if sum("\u4e00" <= c <= "\u9fff" for c in text) > 5:
        return "zh"
    common = {"es": " el que los una ", "de": " der und nicht ist ", "fr": " les une est pas vous ", "pt": " não uma você com os "}
    counts = {name: sum(text.lower().count(f" {word} ") for word in words.split()) for name, words in common.items()}
    return max(counts, key=counts.get)


def complain(label, acts, items, language, chance):
    """The customer complains at the end."""
    name = chance.choice(list(COMPLAINTS))
    text = chance.choice(bank(name, language))
    if name == "complaint_repetitions":
        first = next(item.text for item in items if item.author == "C")
        text = f"{text} {first}"
    items.append(Item("C", chance.choice([30, 120, 900]), text))
    acts[len(items)] = [COMPLAINTS[name]]
    label["RA"] = max(1.0, min(label["RA"] - 1.0, 2.0 if name != "human_requests" else 2.2))
    label["IE"] = max(1.0, label["IE"] - 0.5)
    label["status"], label["by"] = one_hot("not_resolved", STATUSES), one_hot("none", SOLVERS)
    label["charge"] = one_hot("disputed", CHARGES)
    if name == "human_requests":
        label["HS"] = min(label["HS"], 1.5)


def confirm(label, acts, items, language, chance):
    """The customer confirms at the end that the issue is solved."""
    items.append(Item("C", chance.choice([30, 120, 900]), chance.choice(bank("confirmations", language))))
    acts[len(items)] = [["confirm", "thank"]]
    human = any(item.author == "H" for item in items)
    label["RA"] = max(label["RA"], min(5.0, 4.2 + 0.2 * label["RA"]))
    label["status"] = one_hot("resolved", STATUSES)
    label["by"] = one_hot("human" if human else "ai", SOLVERS)
    label["charge"] = one_hot("disputed" if human else "supported", CHARGES)


def claim(label, acts, items, language, chance):
    """The AI claims at the end that all is well."""
    items.append(Item("A", chance.choice([20, 60]), chance.choice(bank("agent_claims", language))))
    acts[len(items)] = [["close", "claim"]]


def sign(label, acts, items, language, chance):
    """A signature below words of the customer, mostly their last ones."""
    own = [at for at, item in enumerate(items) if item.author == "C"]
    last = own[-1] if chance.random() < 0.8 else chance.choice(own)
    items[last].text += "\n\n" + chance.choice(bank("neutral_additions", language))


def changed(conversation, label, chance):
    """A changed conversation and what holds for it; None where the change does not fit."""
    items, label = copy.deepcopy(conversation.items), copy.deepcopy(label)
    acts = {}
    for rating in conversation.ratings:
        for place, codes in rating.acts.items():
            acts.setdefault(place, []).append(codes)
    authors = {item.author for item in items}
    if not {"A", "C"} <= authors or None in (label["RA"], label["IE"], label["HS"]) or len(items) >= 49:
        return None
    ends_with_customer = [item.author for item in items if item.author not in "SN"][-1] == "C"
    # A conversation that nobody answered has nothing to confirm.
    changes = [complain, complain, confirm, sign, sign] + [claim] * ends_with_customer
    change = chance.choice(changes)
    change(label, acts, items, language_of(conversation), chance)
    return items, label, acts


def phrases():
    """Stock phrases by language and what they do: what the lists of the first scorer knew."""
    lines = (corpus.ROOT / "phrases.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t") for line in lines]


def label_of_phrase(codes):
    """What a conversation of a request, an answer and this phrase is like; nothing where the phrase does not say."""
    label = {name: None for name in corpus.SCORES} | {name: [] for name in ("status", "by", "charge")}
    if codes[0] in ("reject", "person", "quit", "back", "repeat", "irony"):
        verdict = {"status": one_hot("not_resolved", STATUSES), "by": one_hot("none", SOLVERS), "charge": one_hot("disputed", CHARGES)}
        return label | verdict | {"RA": 1.7, "IE": 3.0}
    if codes[0] == "confirm":
        verdict = {"status": one_hot("resolved", STATUSES), "by": one_hot("ai", SOLVERS), "charge": one_hot("supported", CHARGES)}
        return label | verdict | {"RA": 4.7, "IE": 4.5}
    return label


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    chance = random.Random(12)
    conversations = [conversation for conversation in corpus.load() if conversation.ratings]
    with open(arguments.folder / "bodies.jsonl", "w") as bodies, open(arguments.folder / "labels.jsonl", "w") as labels:

        def write(name, conversation, items, label, acts, change):
            body = corpus.body(name, conversation.subject, items)
            kept = [at + 1 for at, item in enumerate(items) if item.text.strip()]
            places = {place: at for at, place in enumerate(kept)}
            entry = {"id": name, "part": conversation.split, "kind": conversation.kind, "language": conversation.language, "writer": conversation.writer, "changed": change}
            entry["authors"] = "".join(items[place - 1].author for place in kept)
            entry["acts"] = {places[place]: codes for place, codes in acts.items() if place in places}
            bodies.write(json.dumps(body, ensure_ascii=False) + "\n")
            labels.write(json.dumps({**entry, **label}) + "\n")

        for conversation in conversations:
            label, acts = corpus.label(conversation), {}
            for rating in conversation.ratings:
                for place, codes in rating.acts.items():
                    acts.setdefault(place, []).append(codes)
            write(conversation.id, conversation, conversation.items, label, acts, False)
            if conversation.split != "test" and chance.random() < CHANGED and (other := changed(conversation, label, chance)):
                write(f"{conversation.id}+", conversation, *other, True)
        openings = {}
        for conversation in conversations:
            authors = [item.author for item in conversation.items if item.author in "CA"]
            if conversation.split == "train" and authors[:2] == ["C", "A"]:
                openings.setdefault(language_of(conversation), []).append(conversation)
        for number, (language, acts, phrase) in enumerate(chance.sample(phrases(), PHRASES)):
            if language not in openings:
                continue
            conversation = chance.choice(openings[language])
            first, answer = [item for item in conversation.items if item.author in "CA"][:2]
            codes = acts.split(",")
            items = [first, answer, Item("C", 60, phrase)] if codes[0] in corpus.CUSTOMER_ACTS else [first, Item("A", 30, phrase)]
            write(f"phrase-{number}", conversation, items, label_of_phrase(codes), {len(items): [codes]}, True)
    print(f"{len(conversations)} conversations")


if __name__ == "__main__":
    main()
