"""Fits the reader: what messages do, then what conversations were like.

    python3 training/train.py target/training --out crates/scoring/model/reader.bin

`--parts train` says what it is fitted on; the other parts are reported. Several parts (`train,dev`) are for the model
that ships. What messages do is predicted for every writer by models that have not seen that writer, and the second
step is fitted on these predictions: it learns how far to believe them.
"""

import argparse
import json
import multiprocessing
from pathlib import Path

import numpy as np
from corpus import ACTS, CHARGES, SOLVERS, STATUSES
from inputs import CUSTOMER, Grams, can, features, load
from model_file import write_model
from scipy.optimize import minimize
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold

FEATURES_VERSION = 1
FOLDS = 5
SEEDS = 3
# What a changed conversation counts for, beside one that was read.
CHANGED = 0.5
# What a stock phrase counts for.
PHRASE = 0.25
# Seldomer than this in the training messages, and nothing can be learnt of it.
LEAST = 3
LEAF = 2**32 - 1


def fit_act(matrix, wanted, weights):
    """A linear model of one act: weights, and the intercept."""
    model = LogisticRegression(C=8.0, solver="liblinear", max_iter=80, random_state=0)
    model.fit(matrix, wanted, sample_weight=weights)
    return model.coef_[0], model.intercept_[0]


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


class Acts:
    """What messages do."""

    def __init__(self, grams, reads, weights):
        self.grams, matrix = grams, grams.matrix(reads)
        wanted = np.concatenate([read.acts for read in reads]) > 0.4
        side = np.concatenate([np.array([can(role) for role in read.roles]).reshape(-1, len(ACTS)) for read in reads])
        told = np.concatenate([read.told() for read in reads])
        message_weights = np.concatenate([np.full(len(read.roles), weight) for read, weight in zip(reads, weights)])
        self.weights, self.bias = np.zeros((len(ACTS), matrix.shape[1]), np.float32), np.zeros(len(ACTS), np.float32)
        for act in range(len(ACTS)):
            rows = np.flatnonzero(side[:, act] & told)
            self.weights[act], self.bias[act] = fit_act(matrix[rows], wanted[rows, act], message_weights[rows])
        # As they are shipped: 8 bits for a weight.
        self.scale = (np.abs(self.weights).max(1) / 127).astype(np.float32)
        self.small = np.clip(np.rint(self.weights / self.scale[:, None]), -127, 127).astype(np.int8)

    def predict(self, reads):
        """For each conversation the probabilities of its messages."""
        matrix = self.grams.matrix(reads)
        logits = matrix @ (self.small.astype(np.float32) * self.scale[:, None]).T + self.bias
        probabilities, found, at = sigmoid(logits), [], 0
        for read in reads:
            masks = np.array([can(role) for role in read.roles]).reshape(-1, len(ACTS))
            found.append(probabilities[at : at + len(read.roles)] * masks)
            at += len(read.roles)
        return found


WORK = None


def fit_fold(fold):
    """What the messages of one fold do, by a model that has not seen its writers; the model itself for the last one."""
    grams, fitted, weights, folds = WORK
    others, own = folds[fold]
    model = Acts(grams, [fitted[at] for at in others], [weights[at] for at in others])
    return model.predict([fitted[at] for at in own]) if len(own) else model


def monotone(count):
    """What must not lower resolution accuracy (1), and what must not raise it (-1), in the customer's last words."""
    signs = np.zeros(count, int)
    signs[0], signs[2] = 1, -1
    blocks = {"faded": 4, "last": 4 + 4 * len(ACTS), "final": 4 + 8 * len(ACTS)}
    for block in blocks.values():
        signs[block + ACTS.index("confirm")] = 1
        for name in ("reject", "person", "quit", "back", "irony", "repeat"):
            signs[block + ACTS.index(name)] = -1
    for block in (4 + len(ACTS), 4 + 7 * len(ACTS)):
        for name in ("claim", "beside", "refuse"):
            signs[block + ACTS.index(name)] = -1
    return signs


class Outcome:
    """What conversations were like: boosted trees over what was done in them."""

    def __init__(self, seen, whole, reads, weights):
        self.models, weights = {}, np.array(weights)
        for name, numbers in (("RA", seen), ("IE", seen), ("HS", whole)):
            rows = [at for at, read in enumerate(reads) if read.label[name] is not None]
            signs = monotone(numbers.shape[1]) if name == "RA" else None
            self.models[name] = [
                HistGradientBoostingRegressor(max_iter=220, learning_rate=0.04, max_leaf_nodes=10, min_samples_leaf=15, max_features=0.4, l2_regularization=1.0, monotonic_cst=signs, early_stopping=False, random_state=seed).fit(numbers[rows], [reads[at].label[name] for at in rows], sample_weight=weights[rows])
                for seed in range(SEEDS)
            ]
        for name, numbers, names in (("status", seen, STATUSES), ("by", whole, SOLVERS)):
            rows = [at for at, read in enumerate(reads) if sum(read.label[name])]
            targets = [int(np.argmax(reads[at].label[name])) for at in rows]
            self.models[name] = [
                HistGradientBoostingClassifier(max_iter=130, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=15, max_features=0.4, l2_regularization=1.0, early_stopping=False, random_state=seed).fit(numbers[rows], targets, sample_weight=weights[rows])
                for seed in range(SEEDS)
            ]
            assert list(self.models[name][0].classes_) == list(range(len(names)))

    def predict(self, seen, whole):
        """Scores, and the logits of states and solvers."""
        views = {"RA": seen, "IE": seen, "HS": whole, "status": seen, "by": whole}
        found = {}
        for name, models in self.models.items():
            if name in ("RA", "IE", "HS"):
                found[name] = np.mean([model.predict(views[name]) for model in models], 0)
            else:
                found[name] = np.mean([model.decision_function(views[name]) for model in models], 0)
        return found

    def tables(self):
        """The trees as crates/scoring/src/reader/trees.rs reads them."""
        columns = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
        roots, outputs, base, count = [], [], np.zeros(3 + len(STATUSES) + len(SOLVERS), np.float32), 0
        first = {"RA": 0, "IE": 1, "HS": 2, "status": 3, "by": 3 + len(STATUSES)}
        for name, models in self.models.items():
            for model in models:
                for at, value in enumerate(np.asarray(model._baseline_prediction).ravel()):
                    base[first[name] + at] += value / len(models)
                for round_ in model._predictors:
                    for at, tree in enumerate(round_):
                        nodes = tree.nodes
                        leaf = nodes["is_leaf"].astype(bool)
                        roots.append(count)
                        outputs.append(first[name] + at)
                        columns["feature"].append(np.where(leaf, LEAF, nodes["feature_idx"]).astype(np.uint32))
                        columns["threshold"].append(np.where(leaf, 0, nodes["num_threshold"]).astype(np.float32))
                        columns["left"].append(np.where(leaf, LEAF, nodes["left"] + count).astype(np.uint32))
                        columns["right"].append(np.where(leaf, LEAF, nodes["right"] + count).astype(np.uint32))
                        columns["value"].append((np.where(leaf, nodes["value"], 0) / len(models)).astype(np.float32))
                        count += len(nodes)
        tables = {f"trees.{name}": np.concatenate(column) for name, column in columns.items()}
        tables |= {"trees.root": np.array(roots, np.uint32), "trees.output": np.array(outputs, np.uint32), "trees.base": base}
        return tables


def views(reads, acts):
    """The numbers of conversations: of what the customer saw, and of all."""
    seen = np.array([features(read, probabilities, read.facts) for read, probabilities in zip(reads, acts)])
    whole = np.array([features(read, probabilities, read.facts_with_unseen) for read, probabilities in zip(reads, acts)])
    return seen, whole


def charge_of(status, by, has_ai):
    """What a status and a solver mean for a charge (crates/scoring/src/audit/charge.rs)."""
    if not has_ai:
        return "na"
    if by == "human" or status == "not_resolved":
        return "disputed"
    if status == "resolved" and by in ("ai", "customer"):
        return "supported" if by == "ai" else "disputed"
    return "review"


def verdicts(reads, found):
    """Status, solver and charge as the engine decides them."""
    decided = []
    for at, read in enumerate(reads):
        status = STATUSES[int(np.argmax(found["status"][at]))]
        possible = {"ai": "A" in read.roles, "human": "H" in read.roles or read.facts_with_unseen[4] > 0, "customer": status == "resolved", "unknown": "M" in read.roles or "A" not in read.roles}
        order = [SOLVERS[place] for place in np.argsort(-found["by"][at])]
        by = "none" if status == "not_resolved" else next((name for name in order if possible.get(name)), "unknown")
        decided.append((status, by, charge_of(status, by, "A" in read.roles)))
    return decided


def report(reads, found, title):
    """Prints how well predictions agree with readers, for each set of conversations."""
    decided = verdicts(reads, found)
    sets = {"everyday": [], "unusual": [], "languages": [], "tone": [], "all": []}
    for at, read in enumerate(reads):
        kind = read.label["kind"] if read.label["language"] == "en" else "languages"
        sets[kind].append(at)
        sets["all"].append(at)
    print(title)
    for kind, rows in sets.items():
        if len(rows) < 15:
            continue
        rho = []
        for name in ("RA", "IE", "HS"):
            known = [at for at in rows if reads[at].label[name] is not None]
            rho.append(spearmanr(found[name][known], [reads[at].label[name] for at in known])[0])
        right = []
        for place, (name, names) in enumerate((("status", STATUSES), ("by", SOLVERS), ("charge", CHARGES))):
            known = [at for at in rows if sum(reads[at].label[name])]
            right.append(np.mean([decided[at][place] == names[int(np.argmax(reads[at].label[name]))] for at in known]))
        print(f"  {kind:10} {len(rows):5}   " + " ".join(f"{value:.3f}" for value in rho + right), flush=True)


def logistic_line(x, y):
    """Intercept and slope of the probability of `y` over `x`; never falling."""

    def loss(line):
        p = np.clip(sigmoid(line[0] + line[1] * x), 1e-6, 1 - 1e-6)
        return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)) + 1e-3 * line[1] ** 2

    return minimize(loss, [1.0, 0.0], bounds=[(-10, 10), (0, 10)]).x.tolist()


def calibration(reads, found):
    """From logits to how often they are right, on conversations held back."""
    rows = [at for at, read in enumerate(reads) if sum(read.label["status"])]
    target = np.array([int(np.argmax(reads[at].label["status"])) for at in rows])
    logits = found["status"][rows]

    def loss(temperature):
        scaled = logits / temperature
        scaled = scaled - scaled.max(1, keepdims=True)
        return -np.mean(scaled[np.arange(len(rows)), target] - np.log(np.exp(scaled).sum(1)))

    temperature = min(np.arange(0.6, 3.01, 0.05), key=loss)
    powers = np.exp(found["status"] / temperature)
    certainty = (powers / powers.sum(1, keepdims=True)).max(1)
    lines = {}
    for name, full in (("RA", "resolution_accuracy"), ("IE", "interaction_effort"), ("HS", "handoff_smoothness")):
        known = [at for at in range(len(reads)) if reads[at].label[name] is not None]
        near = np.array([abs(np.clip(found[name][at], 1, 5) - reads[at].label[name]) <= 1.0 for at in known], float)
        lines[full] = [round(value, 4) for value in logistic_line(certainty[known], near)]
    return {"temperature": round(float(temperature), 2), **lines}


def effects(reads, acts, name):
    """What an act moves a score by, all others equal: ridge regression on what messages do, for explanations."""
    rows = [at for at, read in enumerate(reads) if read.label[name] is not None]
    numbers = []
    for at in rows:
        roles, found = reads[at].roles, acts[at] >= 0.5
        last = roles.rfind("C")
        late = [place for place in range(len(roles)) if place >= last]
        early = [place for place in range(len(roles)) if place < last]
        pick = lambda places: found[places].any(0) if places else np.zeros(len(ACTS), bool)
        numbers.append(np.concatenate([pick(late), pick(early)]))
    model = Ridge(alpha=20.0).fit(np.array(numbers, float), [reads[at].label[name] for at in rows])
    rounded = [round(float(value), 3) for value in model.coef_]
    return {"last": rounded[: len(ACTS)], "earlier": rounded[len(ACTS) :]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", default="train")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--calibration", type=Path, help="reads it where all parts are fitted on, writes it else")
    parser.add_argument("--conversations", type=int, default=0, help="how many of the training part are used: for learning curves")
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    reads = load(arguments.folder)
    fitted = [read for read in reads if read.label["part"] in parts or read.is_phrase()]
    if arguments.conversations:
        ids = sorted({read.label["id"].split("+")[0] for read in fitted if not read.is_phrase()}, key=lambda name: name[::-1])
        chosen = set(ids[: arguments.conversations])
        fitted = [read for read in fitted if read.is_phrase() or read.label["id"].split("+")[0] in chosen]
    held = [read for read in reads if read.label["part"] not in parts and not read.label["changed"]]
    weights = [PHRASE if read.is_phrase() else CHANGED if read.label["changed"] else 1.0 for read in fitted]
    grams = Grams(fitted, LEAST)
    print(f"{len(fitted)} conversations, {len(grams.hashes)} grams", flush=True)
    groups = [read.label["writer"] for read in fitted]
    acts = [None] * len(fitted)
    folds = [*GroupKFold(FOLDS).split(fitted, groups=groups), (range(len(fitted)), [])]
    global WORK
    WORK = grams, fitted, weights, folds
    with multiprocessing.get_context("fork").Pool(2) as pool:
        *models, messages = pool.map(fit_fold, range(len(folds)), chunksize=1)
    for model, (_, own) in zip(models, folds):
        for at, found in zip(own, model):
            acts[at] = found
    whole_ones = [at for at, read in enumerate(fitted) if not read.is_phrase()]
    fitted, acts, weights = ([values[at] for at in whole_ones] for values in (fitted, acts, weights))
    outcome = Outcome(*views(fitted, acts), fitted, weights)
    if held:
        held_acts = messages.predict(held)
        found = outcome.predict(*views(held, held_acts))
        for part in ("dev", "test"):
            rows = [at for at, read in enumerate(held) if read.label["part"] == part]
            if rows:
                chosen = [held[at] for at in rows]
                report(chosen, {name: values[rows] for name, values in found.items()}, f"{part}: RA IE HS status by charge")
        calibrated = calibration(held, found)
        if arguments.calibration:
            arguments.calibration.write_text(json.dumps(calibrated))
    elif arguments.calibration:
        calibrated = json.loads(arguments.calibration.read_text())
    if arguments.out:
        plain = [at for at, read in enumerate(fitted) if not read.label["changed"]]
        header = {
            "features": FEATURES_VERSION,
            "conversations": len(plain),
            "calibration": calibrated,
            "effects": {full: effects([fitted[at] for at in plain], [acts[at] for at in plain], name) for name, full in (("RA", "resolution_accuracy"), ("IE", "interaction_effort"))},
        }
        used = np.flatnonzero(np.abs(messages.small).max(0) > 0)
        tables = {"grams.hashes": grams.hashes[used], "grams.rarity": grams.rarity[used], "acts.weights": np.ascontiguousarray(messages.small.T[used]), "acts.scale": messages.scale, "acts.bias": messages.bias}
        print(write_model(arguments.out, header, tables | outcome.tables()), arguments.out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
