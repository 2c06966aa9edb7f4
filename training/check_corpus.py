"""Checks the corpus and prints the figures of its card.

    python3 training/check_corpus.py            faults, and the figures
    python3 training/check_corpus.py --write    puts the figures into corpus/README.md

Needs Python's standard library alone. Prints faults with file and conversation; the exit code is 1 if there are any.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict

import corpus
from corpus import ACTS, AGENT_ACTS, CHARGES, CUSTOMER_ACTS, ROOT, SCORES, SOLVERS, STATUSES

CARD = ROOT / "README.md"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
PARTS = ["train", "dev", "test"]
WORDINGS = ["everyday", "unusual", "tone"]
LANGUAGES = ["en", "es", "de", "fr", "pt", "zh", "mix"]
# One writer has about 40 conversations; more would give one style too much weight.
MOST_OF_A_WRITER = 42
MOST_ITEMS = 50
LEAST_OTHER_LANGUAGES = 0.25
# Shorter sentences (words, or Chinese characters) are too common to compare.
SENTENCE_WORDS, SENTENCE_CHARACTERS = 5, 12
# Maximum share of sentences in more than one conversation: courtesies ("To whom it may concern").
MOST_REPEATED = 0.01
# Longer sentences are not courtesies: maximum conversations of one writer with the same one, and maximum writers.
LONG_SENTENCE_WORDS, LONG_SENTENCE_CHARACTERS = 8, 20
MOST_OF_A_SENTENCE, MOST_WRITERS_OF_A_SENTENCE = 2, 3
# Shorter conversations share skeletons by chance.
SKELETON_MESSAGES, MOST_OF_A_SKELETON = 5, 3
LENGTH_BANDS = [6, 16, 41, 101]
SAME_WORDS = 0.5
LINE = re.compile(r"^(### .*|[CAHNSM]:.*|  .*|= design:.*|\s*)$")
RATED = re.compile(r"^\S+-\d+\s*\|")


def writers(faults):
    """Parses writers.tsv and checks that each writer has files."""
    lines = (ROOT / "writers.tsv").read_text(encoding="utf-8").splitlines()
    if lines[0].split("\t") != ["writer", "part", "wording", "language"]:
        faults.append("writers.tsv: the first line must be writer, part, wording, language")
    found = []
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != 4 or fields[1] not in PARTS or fields[2] not in WORDINGS or fields[3] not in LANGUAGES:
            faults.append(f"writers.tsv line {number}: {line!r} is not writer, part, wording, language")
            continue
        found.append(fields)
    for name, count in Counter(fields[0] for fields in found).items():
        if count > 1:
            faults.append(f"writers.tsv: {name} stands there {count} times; a writer belongs to one part")
    known = {fields[0] for fields in found}
    for folder in ("conversations", "ratings"):
        have = {path.name.split(".")[0] for path in (ROOT / folder).glob("*.txt")}
        faults += [f"{folder}: there is no file of writer {name}" for name in sorted(known - have)]
        faults += [f"{folder}: writer {name} is not in writers.tsv" for name in sorted(have - known)]
    return found


def check_lines(path, faults):
    """Checks that every line of a file of conversations follows the protocol."""
    closed = True
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not LINE.match(line):
            faults.append(f"{path.name} line {number}: further lines of a text begin with two spaces")
        if line.startswith("### "):
            if not closed:
                faults.append(f"{path.name} line {number}: the conversation before it has no design line")
            if len(line.split("|")) != 4:
                faults.append(f"{path.name} line {number}: a head is id | domain | subject | channel")
            closed = False
        elif line.startswith("= design:"):
            if closed:
                faults.append(f"{path.name} line {number}: a second design line")
            closed = True
        elif closed and line.strip():
            faults.append(f"{path.name} line {number}: text behind the design line")
    if not closed:
        faults.append(f"{path.name}: the last conversation has no design line")


def check_conversations(conversations, faults):
    """Checks ids, sizes and texts."""
    for name, count in Counter(one.id for one in conversations).items():
        if count > 1:
            faults.append(f"{name}: {count} conversations have this id")
    for writer, count in Counter(one.writer for one in conversations).items():
        if count > MOST_OF_A_WRITER:
            faults.append(f"{writer}: {count} conversations are too many of one writer (at most {MOST_OF_A_WRITER})")
    for one in conversations:
        if not re.fullmatch(re.escape(one.writer) + r"-\d+", one.id):
            faults.append(f"{one.id}: the id must be {one.writer}- and a number")
        if not 1 <= len(one.items) <= MOST_ITEMS:
            faults.append(f"{one.id}: {len(one.items)} items, 1 to {MOST_ITEMS} are allowed")
        if not one.design:
            faults.append(f"{one.id}: the design line is empty")
        for place, item in enumerate(one.items, 1):
            if not item.text.strip() or "= design" in item.text:
                faults.append(f"{one.id} item {place}: empty, or with a design line in it")
        if not one.ratings:
            faults.append(f"{one.id}: nobody rated it")
        if one.split == "train" and not any(rating.acts for rating in one.ratings):
            faults.append(f"{one.id}: no codes for its messages, which the training part needs")


def check_ratings(path, known, faults):
    """Checks one file of ratings: lines, scores, verdicts, codes."""
    names = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if RATED.match(line):
            names.append(line.split("|")[0].strip())
            fields = [part.strip() for part in line.split("|")]
            wrong = len(fields) < 8 or any(not is_score(value) for value in fields[1:4])
            verdicts = list(zip(fields[4:7], (STATUSES, SOLVERS, CHARGES)))
            if wrong or any(value not in [*allowed, "-"] for value, allowed in verdicts):
                faults.append(f"{path.name} line {number}: not id | RA | IE | HS | status | by | charge | why")
        elif line.strip() and not re.match(r"^\s+\d+ ", line):
            faults.append(f"{path.name} line {number}: neither a rating nor codes")
        elif line.strip() and any(not re.match(r"^\d+\s+\w", part.strip()) for part in line.split(";") if part.strip()):
            faults.append(f"{path.name} line {number}: codes are `place code,code; place code`")
    faults += [f"{path.name}: {name} is rated {count} times" for name, count in Counter(names).items() if count > 1]
    for name, rating in corpus.parse_ratings(path).items():
        one = known.get(name)
        if one is None or one.writer != path.name.split(".")[0]:
            faults.append(f"{path.name}: {name} is no conversation of that writer")
        elif rating.acts:
            check_codes(f"{path.name} {name}", one, rating.acts, faults)


def is_score(text):
    """Whether the text is a score: 1 to 5 in halves, or `-`."""
    return text == "-" or bool(re.fullmatch(r"[1-4](\.[05])?|5(\.0)?", text))


def check_codes(where, one, acts, faults):
    """Checks that each message has codes, and only those of its side."""
    sides = {"C": CUSTOMER_ACTS, "A": AGENT_ACTS, "H": AGENT_ACTS, "M": ACTS}
    for place, item in enumerate(one.items, 1):
        codes = acts.get(place, [])
        if item.author in sides and not codes:
            faults.append(f"{where}: item {place} ({item.author}) has no code")
        for code in codes:
            if code not in sides.get(item.author, []):
                faults.append(f"{where}: item {place} ({item.author}) cannot have the code {code}")
    faults += [f"{where}: there is no item {place}" for place in acts if not 1 <= place <= len(one.items)]


def check_phrases(faults):
    """Checks the stock phrases; returns their number by language."""
    lines = (ROOT / "phrases.tsv").read_text(encoding="utf-8").splitlines()
    counts = Counter()
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != 3 or fields[0] not in LANGUAGES or any(code not in ACTS for code in fields[1].split(",")):
            faults.append(f"phrases.tsv line {number}: not language, codes, phrase")
        counts[fields[0]] += 1
    return counts


def sentences(text):
    """Yields sentences above the minimum length, normalised, and whether they are long."""
    for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n", text):
        plain = re.sub(r"\W+", " ", sentence.lower()).strip()
        count, characters = len(plain.split()), sum("\u4e00" <= character <= "\u9fff" for character in plain)
        if count >= SENTENCE_WORDS or characters >= SENTENCE_CHARACTERS:
            yield plain, count >= LONG_SENTENCE_WORDS or characters >= LONG_SENTENCE_CHARACTERS


def places_of(conversations, authors):
    """For each sentence of these authors the ids of its conversations, by writer."""
    places = defaultdict(lambda: defaultdict(set))
    for one in conversations:
        for item in one.items:
            for sentence in sentences(item.text) if item.author in authors else ():
                places[sentence][one.writer].add(one.id)
    return places


def repeated_sentences(conversations, faults):
    """Rows on sentences in several conversations: of one writer, and of several."""
    places = places_of(conversations, "CAHNM")
    own = shared = repeated = 0
    for (sentence, is_long), by_writer in sorted(places.items()):
        most = max(len(ids) for ids in by_writer.values())
        own, shared, repeated = own + (most > 1), shared + (len(by_writer) > 1), repeated + (most > 1 or len(by_writer) > 1)
        if is_long and (most > MOST_OF_A_SENTENCE or len(by_writer) > MOST_WRITERS_OF_A_SENTENCE):
            faults.append(f"a sentence in {most} conversations of one writer, by {len(by_writer)} writers: {sentence[:90]!r}")
    total = max(1, len(places))
    if repeated / total > MOST_REPEATED:
        faults.append(f"{repeated / total:.2%} of the sentences stand in several conversations, at most {MOST_REPEATED:.0%} may")
    events = places_of(conversations, "S").values()
    recurring = sum(max(len(ids) for ids in by_writer.values()) > 1 or len(by_writer) > 1 for by_writer in events)
    widest = max(((len(by_writer), sentence) for (sentence, _), by_writer in places.items()), default=(0, ""))
    return [
        [f"different sentences of at least {SENTENCE_WORDS} words ({SENTENCE_CHARACTERS} Chinese characters), without system events", len(places)],
        ["… in more than one conversation of a writer", f"{own} ({own / total:.2%})"],
        ["… of more than one writer", f"{shared} ({shared / total:.2%})"],
        [f"… most writers of one: “{widest[1]}”", widest[0]],
        ["such sentences in system events; of these in more than one conversation", f"{len(events)}; {recurring}"],
    ]


def skeleton(one):
    """Authors and length bands in order, and the acts of the last message of both sides."""
    steps, last = [], {"C": (), "A": ()}
    acts = one.ratings[0].acts if one.ratings else {}
    for place, item in enumerate(one.items, 1):
        count = len(item.text.split()) + sum("\u4e00" <= c <= "\u9fff" for c in item.text) // 2
        steps.append((item.author, sum(count >= band for band in LENGTH_BANDS)))
        side = "C" if item.author == "C" else "A"
        if place in acts:
            last[side] = tuple(sorted(acts[place]))
    return tuple(steps), last["C"], last["A"]


def repeated_skeletons(conversations, faults):
    """Number of long conversations, and of those that share their skeleton."""
    found = defaultdict(list)
    long_ones = [one for one in conversations if len(one.items) >= SKELETON_MESSAGES]
    for one in long_ones:
        found[skeleton(one)].append(one.id)
    for ids in found.values():
        if len(ids) > MOST_OF_A_SKELETON:
            faults.append(f"the same skeleton in {len(ids)} conversations: {', '.join(ids[:6])}")
    return len(long_ones), sum(len(ids) for ids in found.values() if len(ids) > 1)


def words(one):
    """The different words of a conversation; of Chinese text, pairs of characters."""
    text = " ".join(item.text.lower() for item in one.items)
    han = re.findall(r"[\u4e00-\u9fff]+", text)
    pairs = {run[at : at + 2] for run in han for at in range(max(1, len(run) - 1))}
    return frozenset(pairs | set(re.findall(r"[^\W\d_\u4e00-\u9fff]+", text)))


def near_duplicates(conversations, faults):
    """Number of pairs with at least half of their words in common, and the highest overlap.

    Prefix filtering: such a pair shares one of the rarest words of each, so that few pairs are compared.
    """
    bags = [words(one) for one in conversations]
    counts = Counter(word for bag in bags for word in bag)
    holding, highest, pairs = defaultdict(list), 0.0, 0
    for at, bag in enumerate(bags):
        order = sorted(bag, key=lambda word: (counts[word], word))
        rarest = order[: len(order) - int(SAME_WORDS * len(order)) + 1]
        others = {other for word in rarest for other in holding[word]}
        for other in others:
            alike = len(bag & bags[other]) / max(1, len(bag | bags[other]))
            highest = max(highest, alike)
            if alike >= SAME_WORDS:
                pairs += 1
                faults.append(f"{conversations[other].id} and {conversations[at].id} have {alike:.0%} of their words in common")
        for word in rarest:
            holding[word].append(at)
    return pairs, highest


def ranks(values):
    """Ranks; ties share their mean rank."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    found, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for at in order[start : end + 1]:
            found[at] = (start + end) / 2
        start = end + 1
    return found


def rho(pairs):
    """Spearman's rank correlation; None if one side is constant."""
    one, other = (ranks(values) for values in zip(*pairs)) if pairs else ([], [])
    middle = (len(pairs) - 1) / 2
    spread = [sum((value - middle) ** 2 for value in values) for values in (one, other)]
    if not spread[0] or not spread[1]:
        return None
    return sum((x - middle) * (y - middle) for x, y in zip(one, other)) / (spread[0] * spread[1]) ** 0.5


def agreement(conversations):
    """Of the first two raters: rho of the scores, share of equal verdicts."""
    both = [one.ratings[:2] for one in conversations if len(one.ratings) > 1]
    figures = []
    for at in range(len(SCORES)):
        figures.append(rho([(x.scores[at], y.scores[at]) for x, y in both if None not in (x.scores[at], y.scores[at])]))
    for name in ("status", "by", "charge"):
        told = [(getattr(x, name), getattr(y, name)) for x, y in both]
        told = [(one, other) for one, other in told if "-" not in (one, other)]
        figures.append(sum(one == other for one, other in told) / len(told) if told else None)
    return len(both), figures


def table(head, rows):
    """A table in Markdown."""
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in [head, *rows]]
    return [lines[0], "|" + "---|" * len(head), *lines[1:], ""]


def counted(conversations):
    """Tables of counts."""
    lines = []
    for title, key, names in (("wording", "kind", WORDINGS), ("language", "language", LANGUAGES)):
        rows = []
        for name in [*names, "all"]:
            chosen = [one for one in conversations if name in (getattr(one, key), "all")]
            rows.append([name, len({one.writer for one in chosen}), *(sum(one.split == part for one in chosen) for part in PARTS), len(chosen)])
        lines += table([title, "writers", *PARTS, "all"], rows)
    rows = []
    for name in STATUSES:
        shares = []
        for part in [*PARTS, "all"]:
            told = [corpus.label(one)["status"] for one in conversations if part in (one.split, "all")]
            told = [status for status in told if sum(status)]
            shares.append(f"{sum(status[STATUSES.index(name)] for status in told) / len(told):.0%}" if told else "–")
        rows.append([name, *shares])
    lines += table(["status, by raters", *PARTS, "all"], rows)
    sizes = Counter("2–4" if len(one.items) <= 4 else "5–10" if len(one.items) <= 10 else "11 and more" for one in conversations)
    lines += table(["items", "conversations"], [[name, sizes[name]] for name in ("2–4", "5–10", "11 and more")])
    return lines


def agreed(conversations):
    """The table of agreement among raters."""
    shown = lambda value: "–" if value is None else f"{value:.2f}"
    rows = []
    for part in [*PARTS, "all"]:
        chosen = [one for one in conversations if part in (one.split, "all")]
        count, figures = agreement(chosen)
        third = sum(len(one.ratings) > 2 for one in chosen)
        rows.append([part, len(chosen), count, third, *(shown(value) for value in figures)])
    return table(["part", "conversations", "with two raters", "with a third", *(f"{name} rho" for name in SCORES), "same status", "same solver", "same charge"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the figures into corpus/README.md")
    arguments = parser.parse_args()
    faults = []
    listed = writers(faults)
    for path in sorted((ROOT / "conversations").glob("*.txt")):
        check_lines(path, faults)
    if faults:
        stop(faults)
    conversations = corpus.load()
    check_conversations(conversations, faults)
    known = {one.id: one for one in conversations}
    for path in sorted((ROOT / "ratings").glob("*.txt")):
        check_ratings(path, known, faults)
    phrases = check_phrases(faults)
    others = sum(one.language != "en" for one in conversations) / max(1, len(conversations))
    if others < LEAST_OTHER_LANGUAGES:
        faults.append(f"{others:.1%} of the conversations are not English, at least {LEAST_OTHER_LANGUAGES:.0%} must be")
    figures = [f"{len(conversations)} conversations by {len(listed)} writers, {others:.1%} of them not in English.", ""]
    figures += counted(conversations) + agreed(conversations)
    rows = repeated_sentences(conversations, faults)
    long_ones, alike = repeated_skeletons(conversations, faults)
    pairs, highest = near_duplicates(conversations, faults)
    figures += table(
        ["guard against templates", "found"],
        [
            *rows,
            [f"conversations of at least {SKELETON_MESSAGES} items that share a skeleton, of {long_ones}", f"{alike} ({alike / max(1, long_ones):.2%})"],
            [f"pairs with at least {SAME_WORDS:.0%} of their words in common", pairs],
            ["… largest share among the pairs that were compared", f"{highest:.2f}"],
        ],
    )
    figures += [f"Stock phrases in `phrases.tsv`: {sum(phrases.values())} ({', '.join(f'{name} {count}' for name, count in sorted(phrases.items()))})."]
    finish("\n".join(figures), faults, arguments.write)


def finish(figures, faults, write):
    """Prints the figures and compares the card with them, or writes them into it."""
    print(figures)
    card = CARD.read_text(encoding="utf-8")
    before, rest = card.split(BEGIN)
    stale, after = rest.split(END)
    if write:
        CARD.write_text(f"{before}{BEGIN}\n{figures}\n{END}{after}", encoding="utf-8")
    elif stale.strip() != figures:
        faults.append("corpus/README.md has other figures: run `python3 training/check_corpus.py --write`")
    if faults:
        stop(faults)


def stop(faults):
    """Prints the faults and exits with 1."""
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(faults)} faults", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
