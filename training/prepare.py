"""Prepares the training data of the reader: rated conversations, and changed ones whose ratings follow from the change.

    python3 training/prepare.py target/training [--public FOLDER]

writes `bodies.jsonl` (for the example `reader_inputs` of crates/scoring) and `labels.jsonl`, one line each.
The changes are those of the phrase banks in crates/scoring/tests/metamorphic and of corpus/endings.tsv: a final
complaint makes an issue unresolved, a final confirmation resolved; a confirmation followed by a return makes it unresolved;
an issue that the customer solves alone is resolved by the customer. Ending politely, claims of an agent, prompt injections,
signatures, capitals and typos do not change the label. `--public` is a folder of public conversations with ratings by people
(scores only), which are not part of the project; without it the reader is fitted on the corpus alone.
"""

import argparse
import copy
import functools
import gzip
import json
import random
from datetime import datetime
from pathlib import Path

import corpus
from corpus import CHARGES, SOLVERS, STATUSES, Item

BANKS = Path(__file__).resolve().parent.parent / "crates/scoring/tests/metamorphic"
LANGUAGES = ["en", "es", "de", "fr", "pt", "zh"]
# Share of the conversations of each part that are added again with a change.
CHANGED = {"train": 0.5, "dev": 0.4, "test": 0.0}
# Number of stock phrases for each step: few relative to the conversations. Complaints and confirmations have a label of
# the verdict, the others only of acts.
PHRASES = {"train": 2000, "dev": 400}
# Number of short questions with an answer for each step, and the share of them with the answer to another question. With 0.4 of
# 600 the encoder doubted right answers, with none it took wrong ones for right (ADR 25).
ANSWERS = {"train": 400, "dev": 120}
WRONG_ANSWERS = {"train": 0.2, "dev": 0.4}
# Public conversations for each step, by set, and how their labels become scores (the sets' documentation).
PUBLIC = {
    "stc3_en": ({"train": 420, "dev": 597}, {"RA": ("A", 3, 1), "IE": ("E", 3, 1)}),
    "reuse_sgd": ({"train": 300, "dev": 500}, {"RA": ("goal3", 1, 2)}),
    "reuse_mwoz": ({"train": 360, "dev": 440}, {"RA": ("goal3", 1, 2)}),
}
COMPLAINTS = {"rejections": ["reject"], "sarcasm": ["irony", "reject"], "human_requests": ["person"], "complaint_repetitions": ["repeat", "reject"]}
COMPLAINT_COUNTS = [3, 3, 2, 1]
STOCK_COMPLAINTS = {"rejections": ["reject"], "sarcasm": ["irony,reject"], "human_requests": ["person"]}
CAPITALS = (str.upper, str.lower, str.lower)


def bank(name, language):
    """The phrases of a bank."""
    path = BANKS / f"{name}.{language}.txt"
    return [line.replace("\\n", "\n") for line in path.read_text(encoding="utf-8").splitlines()]


def endings(kind, language):
    """The texts of a kind in `corpus/endings.tsv`."""
    lines = (corpus.ROOT / "endings.tsv").read_text(encoding="utf-8").splitlines()[1:]
    found = (line.split("\t") for line in lines)
    return [text.replace("\\n", "\n") for own, other, text in found if (own, other) == (language, kind)]


def stock(acts, language):
    """The stock phrases with these acts."""
    return [phrase for own, codes, phrase in phrases() if own == language and codes in acts]


def one_hot(name, names):
    return [float(name == other) for other in names]


def language_of(conversation):
    """The language of a conversation; guessed by characters and common words in files of several languages."""
    if conversation.language in LANGUAGES:
        return conversation.language
    text = " ".join(item.text for item in conversation.items)
    if sum("\u4e00" <= c <= "\u9fff" for c in text) > 5:
        return "zh"
    common = {"es": " el que los una ", "de": " der und nicht ist ", "fr": " les une est pas vous ", "pt": " não uma você com os "}
    counts = {name: sum(text.lower().count(f" {word} ") for word in words.split()) for name, words in common.items()}
    return max(counts, key=counts.get)


def unresolved(label):
    """Sets the verdicts of an unresolved conversation."""
    label["status"], label["by"] = one_hot("not_resolved", STATUSES), one_hot("none", SOLVERS)
    label["charge"] = one_hot("disputed", CHARGES)


def at_most(label, name, most):
    if label[name] is not None:
        label[name] = max(1.0, min(most, label[name]))


def either(some, others, chance):
    """A text of one of two banks, of each with the same probability."""
    return chance.choice(chance.choice([some, others or some]))


def complain(label, acts, items, language, chance):
    """The customer complains at the end."""
    name = chance.choices(list(COMPLAINTS), COMPLAINT_COUNTS)[0]
    text = either(bank(name, language), stock(STOCK_COMPLAINTS.get(name, ()), language), chance)
    if name == "complaint_repetitions":
        first = next(item.text for item in items if item.author == "C")
        text = f"{text} {first}"
    items.append(Item("C", chance.choice([30, 120, 900]), text))
    acts[len(items)] = [COMPLAINTS[name]]
    at_most(label, "RA", min(label["RA"] - 1.0, 2.0 if name != "human_requests" else 2.2))
    at_most(label, "IE", (label["IE"] or 5.0) - 0.5)
    unresolved(label)
    if name == "human_requests":
        at_most(label, "HS", 1.5)


def confirm(label, acts, items, language, chance):
    """The customer confirms at the end that the issue is solved."""
    items.append(Item("C", chance.choice([30, 120, 900]), either(bank("confirmations", language), stock(["confirm"], language), chance)))
    acts[len(items)] = [["confirm", "thank"]]
    human = any(item.author == "H" for item in items)
    label["RA"] = max(label["RA"], min(5.0, 4.2 + 0.2 * label["RA"]))
    label["status"] = one_hot("resolved", STATUSES)
    label["by"] = one_hot("human" if human else "ai", SOLVERS)
    label["charge"] = one_hot("disputed" if human else "supported", CHARGES)


def come_back(label, acts, items, language, chance):
    """The customer confirms, and comes back with the same issue."""
    confirm(label, acts, items, language, chance)
    items.append(Item("C", chance.choice([7200, 86400, 2 * 86400]), chance.choice(endings("again", language))))
    acts[len(items)] = [["back", "reject"]]
    label["RA"] = 1.7
    at_most(label, "IE", (label["IE"] or 5.0) - 0.7)
    unresolved(label)


def solve_alone(label, acts, items, language, chance):
    """The customer solves the issue without help."""
    items.append(Item("C", chance.choice([120, 900, 3600]), chance.choice(endings("alone", language))))
    acts[len(items)] = [["confirm"]]
    label["RA"] = 3.4
    label["status"], label["by"], label["charge"] = one_hot("resolved", STATUSES), one_hot("customer", SOLVERS), one_hot("disputed", CHARGES)


def want_nothing_more(label, acts, items, language, chance):
    """The agent asks whether there is anything else, and the customer declines: neither a confirmation nor a rejection."""
    items.append(Item("A", 30, chance.choice(endings("more", language))))
    acts[len(items)] = [["close"]]
    items.append(Item("C", 30, chance.choice(endings("no", language))))
    acts[len(items)] = [["accept"]]


def claim(label, acts, items, language, chance):
    """The AI claims at the end that all is well."""
    items.append(Item("A", chance.choice([20, 60]), either(bank("agent_claims", language), endings("claim", language), chance)))
    acts[len(items)] = [["close", "claim"]]


def inject(label, acts, items, language, chance):
    """The customer's last message is a prompt injection."""
    items.append(Item("C", 60, either(bank("customer_injections", language), endings("injection", language), chance)))
    acts[len(items)] = [["off"]]


def sign(label, acts, items, language, chance):
    """A signature below words of the customer, mostly their last ones."""
    own = [at for at, item in enumerate(items) if item.author == "C"]
    last = own[-1] if chance.random() < 0.8 else chance.choice(own)
    items[last].text += "\n\n" + either(bank("neutral_additions", language), endings("signature", language), chance)


def write_carelessly(label, acts, items, language, chance):
    """The customer writes in capitals or without any, and with typing errors."""
    case, errors = chance.choice([*CAPITALS, str]), chance.choice([0, 0.02, 0.05])
    for item in items:
        if item.author == "C":
            item.text = mistyped(case(item.text), errors, chance)


def mistyped(text, share, chance):
    """The text with that share of its letters left out, doubled or swapped with the next."""
    letters = list(text)
    for at in range(len(letters) - 1):
        if letters[at].isalpha() and letters[at].isascii() and chance.random() < share:
            follows = letters[at + 1]
            letters[at], letters[at + 1] = chance.choice([("", follows), (letters[at] * 2, follows), (follows, letters[at])])
    return "".join(letters)


# Changes with their relative frequencies.
CHANGES = {complain: 6, confirm: 3, come_back: 2, solve_alone: 1, want_nothing_more: 2, claim: 2, inject: 2, sign: 6, write_carelessly: 3}


def acts_of(conversation):
    """Codes of all raters for each item, by its position."""
    acts = {}
    for rating in conversation.ratings:
        for place, codes in rating.acts.items():
            acts.setdefault(place, []).append(codes)
    return acts


def changed(conversation, label, chance):
    """A changed conversation with its label and acts; None if no change is possible."""
    items, label, acts = copy.deepcopy(conversation.items), copy.deepcopy(label), acts_of(conversation)
    authors = {item.author for item in items}
    if not {"A", "C"} <= authors or label["RA"] is None or len(items) >= 48:
        return None
    # After a customer's last message an agent's addition could be an answer; after the agent's own message it is only a claim.
    waits = [item.author for item in items if item.author not in "SN"][-1] == "C"
    weights = [count * (change is not want_nothing_more or not waits) for change, count in CHANGES.items()]
    change = chance.choices(list(CHANGES), weights)[0]
    change(label, acts, items, language_of(conversation), chance)
    return items, label, acts


@functools.cache
def phrases():
    """Stock phrases with language and acts, from the phrase lists of the first scorer."""
    lines = (corpus.ROOT / "phrases.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t") for line in lines]


def label_of_phrase(codes):
    """The label of a conversation of a request, an answer and this phrase; empty if the phrase implies none."""
    label = {name: None for name in corpus.SCORES} | {name: [] for name in ("status", "by", "charge")}
    if codes[0] in ("reject", "person", "quit", "back", "repeat", "irony"):
        verdict = {"status": one_hot("not_resolved", STATUSES), "by": one_hot("none", SOLVERS), "charge": one_hot("disputed", CHARGES)}
        return label | verdict | {"RA": 1.7, "IE": 3.0}
    if codes[0] == "confirm":
        verdict = {"status": one_hot("resolved", STATUSES), "by": one_hot("ai", SOLVERS), "charge": one_hot("supported", CHARGES)}
        return label | verdict | {"RA": 4.7, "IE": 4.5}
    return label


def phrase_conversations(conversations, number, chance):
    """Yields openings of conversations followed by a stock phrase, with label and acts."""
    openings = {}
    for conversation in conversations:
        authors = [item.author for item in conversation.items if item.author in "CA"]
        if authors[:2] == ["C", "A"]:
            openings.setdefault(language_of(conversation), []).append(conversation)
    for language, acts, phrase in chance.sample(phrases(), number):
        conversation, codes = chance.choice(openings[language]), acts.split(",")
        first, answer = [item for item in conversation.items if item.author in "CA"][:2]
        items = [first, answer, Item("C", 60, phrase)] if codes[0] in corpus.CUSTOMER_ACTS else [first, Item("A", 30, phrase)]
        yield conversation, items, label_of_phrase(codes), {len(items): [codes]}


def answers(part):
    """Short questions with their answers in `corpus/answers.tsv`, by language; each fourth is for the second step."""
    found = {}
    for number, line in enumerate((corpus.ROOT / "answers.tsv").read_text(encoding="utf-8").splitlines()[1:]):
        if (number % 4 == 0) == (part == "dev"):
            language, question, answer = line.split("\t")
            found.setdefault(language, []).append((question, answer))
    return found


def answer_conversations(part, number, chance):
    """Yields a short question and a short answer, to this or to another question; sometimes the customer confirms."""
    pairs = answers(part)
    for at in range(number):
        language = LANGUAGES[at % len(LANGUAGES)]
        question, answer = chance.choice(pairs[language])
        is_wrong = chance.random() < WRONG_ANSWERS[part]
        if is_wrong:
            answer = chance.choice([other for _, other in pairs[language] if other != answer])
        items, acts = [Item("C", 0, question), Item("A", chance.choice([2, 20, 60]), answer)], {1: [["ask"]]}
        acts[2] = [["beside"]] if is_wrong else [["fit"]]
        label = {"RA": 1.5, "IE": 2.5, "HS": 3.5} if is_wrong else {"RA": 3.9, "IE": 4.8, "HS": 5.0}
        label |= {"status": one_hot("partial", STATUSES), "by": one_hot("ai", SOLVERS), "charge": one_hot("review", CHARGES)}
        if is_wrong:
            unresolved(label)
        elif chance.random() < 0.3:
            confirm(label, acts, items, language, chance)
        conversation = corpus.Conversation("", f"answers-{at % 7}", part, "made", language, "", "", "chat", items)
        yield conversation, items, label, acts


def public_conversations(folder, chance):
    """Yields public conversations, assigned to a part, with their labels."""
    for name, (numbers, scores) in PUBLIC.items():
        with gzip.open(folder / f"{name}.labels.jsonl.gz", "rt") as lines:
            rated = {label["ticket_id"]: label for label in map(json.loads, lines) if label["split"] == "train"}
        with gzip.open(folder / f"{name}.jsonl.gz", "rt") as lines:
            bodies = [body for body in map(json.loads, lines) if body["ticket_id"] in rated]
        chance.shuffle(bodies)
        for at, body in enumerate(bodies[: sum(numbers.values())]):
            split = "train" if at < numbers["train"] else "dev"
            label = {score: None for score in corpus.SCORES} | {verdict: [] for verdict in ("status", "by", "charge")}
            label |= {score: base + unit * rated[body["ticket_id"]][key] for score, (key, base, unit) in scores.items()}
            yield public_conversation(name, split, body), label


def public_conversation(name, split, body):
    """Converts a public conversation; the public sets have only the authors `ai` and `contact`."""
    letters = {"ai": "A", "contact": "C"}
    times = [moment(message["timestamp"]) for message in body["messages"]]
    gaps = [0, *(int(later - earlier) for earlier, later in zip(times, times[1:]))]
    items = [Item(letters[message["author"]["type"]], gap, message["content"]) for message, gap in zip(body["messages"], gaps)]
    return corpus.Conversation(body["ticket_id"], f"{name}-{len(items) % 7}", split, "public", "en", "", "", "chat", items)


def moment(timestamp):
    """Seconds of a timestamp in milliseconds or as text."""
    return timestamp / 1000 if isinstance(timestamp, int) else datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--public", type=Path)
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

        def write_with_change(conversation, label):
            write(conversation.id, conversation, conversation.items, label, acts_of(conversation), False)
            if chance.random() < CHANGED[conversation.split] and (other := changed(conversation, label, chance)):
                write(f"{conversation.id}+", conversation, *other, True)

        for conversation in conversations:
            write_with_change(conversation, corpus.label(conversation))
        for part, number in PHRASES.items():
            own = [conversation for conversation in conversations if conversation.split == part]
            for at, (conversation, *made) in enumerate(phrase_conversations(own, number, chance)):
                write(f"phrase-{part}-{at}", conversation, *made, True)
        for part, number in ANSWERS.items():
            for at, (conversation, *made) in enumerate(answer_conversations(part, number, chance)):
                write(f"answer-{part}-{at}", conversation, *made, True)
        for conversation, label in public_conversations(arguments.public, chance) if arguments.public else ():
            write_with_change(conversation, label)
    print(f"{len(conversations)} conversations")


if __name__ == "__main__":
    main()
