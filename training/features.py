"""The features of step 2, the same as in crates/scoring/src/reader/course_features.rs."""

import numpy as np
from corpus import ACTS

COMPLAINTS = [ACTS.index(name) for name in ("reject", "repeat", "person", "quit", "back", "irony")]
DECAY, HELP_DECAY = 0.6, 0.8


def features(roles, acts, facts, impression):
    """`acts`: for each message a probability for each act; `roles`: a letter for each message."""
    none = np.zeros(len(ACTS))
    customer = [at for at, role in enumerate(roles) if role == "C"]
    answers = [at for at, role in enumerate(roles) if role in "AHM"]
    last = customer[-1] if customer else None
    last_seen_answer = next((at for at in reversed(answers) if last is not None and at < last), None)
    answers_after_customer = [at for at in answers if last is None or at >= last]
    final_turn = [at for at in customer if at >= (last_seen_answer or 0)]

    def total(places):
        return sum((acts[at] for at in places), none)

    def highest(places):
        return np.max([acts[at] for at in places], 0) if places else none

    def decayed(places):
        return sum((DECAY**place * acts[at] for place, at in enumerate(reversed(places))), none)

    content = courteous = unhappy = helped = 0.0
    index = ACTS.index
    for at in customer:
        confirms, complains = acts[at][index("confirm")], max(acts[at][COMPLAINTS])
        content = max(confirms, content * (1 - complains))
        courteous = max(acts[at][index("thank")], acts[at][index("accept")], courteous * (1 - complains))
        unhappy = max(complains, unhappy * (1 - confirms))
    for at in answers:
        helped = max(acts[at][index("fit")], acts[at][index("act")], helped * HELP_DECAY)
    parts = [[content, courteous, unhappy, helped], decayed(customer), decayed(answers)]
    parts += [total(range(len(roles))), highest(list(range(len(roles)))), total(customer[-1:]), total(customer[-2:-1])]
    parts += [total([last_seen_answer] if last_seen_answer is not None else []), total(answers_after_customer), highest(final_turn), facts, impression]
    return np.concatenate(parts).astype(np.float32)
