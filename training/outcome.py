"""Step 2: fits scores and verdicts on the predictions of the encoder, and writes the model.

    python3 training/outcome.py target/training --out crates/scoring/model/reader.bin

reads `encoder.npz` and `predictions.npz`, which training/encoder.py wrote, and fits linear models on the part `dev`, which
the encoder has not seen. Regularisation and calibration are chosen by cross-validation over the writers of
`dev`. The part `test` is only reported.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from base import int8_tensors
from corpus import ACTS, CHARGES, SOLVERS, STATUSES
from encoder_file import read_model, write_model
from features import features
from scipy.optimize import minimize
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold

FEATURES_VERSION = 2
SETS = ("everyday", "unusual", "languages", "tone")
CLASSES = {"status": STATUSES, "by": SOLVERS, "charge": CHARGES}
# In the order of the outputs. Accuracy, effort and status use only what the customer saw.
OUTPUTS = ("RA", "IE", "HS", "status", "by", "charge")
SEEN = ("RA", "IE", "status")
FULL = {"RA": "resolution_accuracy", "IE": "interaction_effort", "HS": "handoff_smoothness"}
STRENGTHS = {"scores": (100, 300, 1000, 3000), "classes": (0.001, 0.003, 0.01, 0.03, 0.1)}
CHARGE_WEIGHT = 0.5
FOLDS = 7
# Sample weight of a changed conversation or one made of a stock phrase, and factor for a public one.
SYNTHETIC_WEIGHT = 0.06
PUBLIC_WEIGHT = 1.0


class Read:
    """A conversation with the predictions of the encoder and the labels."""

    def __init__(self, given, label, predictions):
        self.label, self.roles = label, given["roles"]
        self.acts, impression = (predictions[f"{label['id']}/{part}"] for part in ("acts", "impression"))
        self.facts_with_unseen = given["facts_with_unseen"]
        self.seen, self.whole = (features(self.roles, self.acts, given[name], impression) for name in ("facts", "facts_with_unseen"))

    def counts(self):
        """Sample weight of the conversation."""
        return (SYNTHETIC_WEIGHT if self.label["changed"] else 1.0) * (PUBLIC_WEIGHT if self.is_public() else 1.0)

    def is_public(self):
        return self.label["kind"] == "public"

    def set(self):
        return self.label["kind"] if self.label["language"] == "en" else "languages"


def load(folder):
    predictions = np.load(folder / "predictions.npz")
    known = {name.rsplit("/", 1)[0] for name in predictions.files}
    with open(folder / "inputs.jsonl") as inputs, open(folder / "labels.jsonl") as labels:
        pairs = [(json.loads(given), json.loads(label)) for given, label in zip(inputs, labels, strict=True)]
    return [Read(given, label, predictions) for given, label in pairs if label["id"] in known]


class Outcome:
    """A linear model for each output over standardised features."""

    def __init__(self, reads, made, strengths):
        self.weights, self.bias = {}, {}
        for name in OUTPUTS:
            rows = [read for read in reads + made if known(read, name)]
            counts = np.array([read.counts() for read in rows])
            matrix = np.array([view(read, name) for read in rows], np.float64)
            mean, spread = matrix.mean(0), matrix.std(0) + 1e-3
            matrix = (matrix - mean) / spread
            if name in CLASSES:
                model = LogisticRegression(C=strengths[name], max_iter=2000).fit(matrix, [target(read, name) for read in rows], sample_weight=counts)
                weights, bias = np.zeros((matrix.shape[1], len(CLASSES[name]))), np.full(len(CLASSES[name]), -8.0)
                weights[:, model.classes_], bias[model.classes_] = model.coef_.T, model.intercept_
            else:
                model = Ridge(alpha=strengths[name]).fit(matrix, [target(read, name) for read in rows], sample_weight=counts)
                weights, bias = model.coef_[:, None], np.array([model.intercept_])
            self.weights[name] = weights / spread[:, None]
            self.bias[name] = bias - (mean / spread) @ weights

    def predict(self, reads, name):
        """For each conversation a score, or logits."""
        found = np.array([view(read, name) for read in reads]) @ self.weights[name] + self.bias[name]
        return found if name in CLASSES else found[:, 0]


def view(read, name):
    return read.seen if name in SEEN else read.whole


def known(read, name):
    return sum(read.label[name]) > 0 if name in CLASSES else read.label[name] is not None


def target(read, name):
    return int(np.argmax(read.label[name])) if name in CLASSES else read.label[name]


def folds(reads):
    return GroupKFold(FOLDS).split(reads, groups=[read.label["writer"] for read in reads])


def held_out(reads, made, strengths):
    """Cross-validated predictions: each writer by models that have not seen them."""
    found = {name: np.zeros((len(reads), len(CLASSES[name])) if name in CLASSES else len(reads)) for name in OUTPUTS}
    for others, own in folds(reads):
        writers = {reads[at].label["writer"] for at in own}
        outcome = Outcome([reads[at] for at in others], [read for read in made if read.label["writer"] not in writers], strengths)
        for name in OUTPUTS:
            found[name][own] = outcome.predict([reads[at] for at in own], name)
    return found


def choose_strengths(reads, made):
    """Regularisation strength of each output, by cross-validation over writers."""
    best = {}
    trials = max(len(values) for values in STRENGTHS.values())
    for trial in range(trials):
        strengths = {name: STRENGTHS["classes" if name in CLASSES else "scores"] for name in OUTPUTS}
        strengths = {name: values[min(trial, len(values) - 1)] for name, values in strengths.items()}
        found = held_out(reads, made, strengths)
        for name in OUTPUTS:
            rows = [at for at, read in enumerate(reads) if known(read, name)]
            wanted = np.array([target(reads[at], name) for at in rows])
            if name in CLASSES:
                loss = -np.mean(log_softmax(found[name][rows])[np.arange(len(rows)), wanted])
            else:
                loss = np.mean((found[name][rows] - wanted) ** 2)
            best[name] = min(best.get(name, (np.inf, None)), (loss, strengths[name]))
    return {name: strength for name, (_, strength) in best.items()}


def log_softmax(logits):
    logits = logits - logits.max(1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def default_charge(status, by, has_ai):
    """crates/scoring/src/audit/resolution.rs"""
    if not has_ai:
        return "na"
    if by == "human" or status == "not_resolved" or (status, by) == ("resolved", "customer"):
        return "disputed"
    return "supported" if (status, by) == ("resolved", "ai") else "review"


def verdict(read, status, by, charge, temperature):
    """The most probable combination of status, solver and charge (crates/scoring/src/audit/resolution.rs), without the
    engine's rule on a clear complaint at the end."""
    status, by, charge = (log_softmax(np.atleast_2d(logits))[0] for logits in (status / temperature, by, charge))
    has_ai = "A" in read.roles
    able = {"ai": has_ai, "human": "H" in read.roles or read.facts_with_unseen[4] > 0, "customer": True, "unknown": "M" in read.roles or not has_ai}
    trials = []
    for state, of_state in zip(STATUSES, status):
        for solver, of_solver in zip(SOLVERS, by):
            possible = solver == "none" if state == "not_resolved" else able.get(solver, False) and (solver != "customer" or state == "resolved")
            if possible:
                follows = default_charge(state, solver, has_ai)
                trials.append((of_state + of_solver + CHARGE_WEIGHT * charge[CHARGES.index(follows)], state, solver, follows))
    return max(trials)[1:]


def report(reads, found, temperature, title):
    """Prints the agreement of predictions with raters for each set."""
    print(f"{title}: RA IE HS status by charge")
    verdicts = [verdict(read, *(found[name][at] for name in CLASSES), temperature) for at, read in enumerate(reads)]
    for kind in (*SETS, "all"):
        rows = [at for at, read in enumerate(reads) if kind in (read.set(), "all")]
        if len(rows) < 15:
            continue
        values = []
        for name in ("RA", "IE", "HS"):
            scored = [at for at in rows if known(reads[at], name)]
            values.append(spearmanr(found[name][scored], [target(reads[at], name) for at in scored])[0])
        for place, (name, names) in enumerate(CLASSES.items()):
            judged = [at for at in rows if known(reads[at], name)]
            values.append(np.mean([verdicts[at][place] == names[target(reads[at], name)] for at in judged]))
        print(f"  {kind:10} {len(rows):5}   " + " ".join(f"{value:.3f}" for value in values), flush=True)


def calibration(reads, found):
    """Fits the temperature and the calibration of confidences."""
    rows = [at for at, read in enumerate(reads) if known(read, "status")]
    wanted = np.array([target(reads[at], "status") for at in rows])

    def loss(temperature):
        return -np.mean(log_softmax(found["status"][rows] / temperature)[np.arange(len(rows)), wanted])

    temperature = min(np.arange(0.5, 3.01, 0.05), key=loss)
    certainty = np.exp(log_softmax(found["status"] / temperature)).max(1)
    lines = {}
    for name, full in FULL.items():
        scored = [at for at, read in enumerate(reads) if known(read, name)]
        near = np.array([abs(np.clip(found[name][at], 1, 5) - target(reads[at], name)) <= 1.0 for at in scored], float)
        lines[full] = logistic_line(certainty[scored], near)
    return {"temperature": round(float(temperature), 2), **lines}


def logistic_line(x, y):
    """Intercept and slope (at least 0) of a logistic regression of `y` on `x`."""

    def loss(line):
        p = np.clip(1 / (1 + np.exp(-(line[0] + line[1] * x))), 1e-6, 1 - 1e-6)
        return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)) + 1e-3 * line[1] ** 2

    return [round(value, 4) for value in minimize(loss, [1.0, 0.0], bounds=[(-10, 10), (0, 10)]).x.tolist()]


def effects(reads, name):
    """Effect of each act on a score by ridge regression, for explanations."""
    rows = [read for read in reads if known(read, name)]
    numbers = []
    for read in rows:
        found, last = read.acts >= 0.5, read.roles.rfind("C")
        late = [at for at in range(len(read.roles)) if at >= last]
        early = [at for at in range(len(read.roles)) if at < last]
        numbers.append(np.concatenate([found[places].any(0) if places else np.zeros(len(ACTS), bool) for places in (late, early)]))
    model = Ridge(alpha=20.0).fit(np.array(numbers, float), [target(read, name) for read in rows])
    rounded = [round(float(value), 3) for value in model.coef_]
    return {"last": rounded[: len(ACTS)], "earlier": rounded[len(ACTS) :]}


def fitted_encoder(folder):
    """The header of the base, and the tensors of the encoder that training/encoder.py fitted."""
    base, vocabulary = read_model(folder / "base.assayenc")
    arrays = dict(np.load(folder / "encoder.npz"))
    heads = {name: arrays.pop(name) for name in list(arrays) if name.startswith(("acts.", "impression"))}
    tensors = {name: array for name, array in vocabulary.items() if name.startswith("tokenizer.")} | int8_tensors(arrays)
    return base, tensors | {name: np.ascontiguousarray(array) for name, array in heads.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--model", type=Path, help="a model file whose encoder is kept as it is, in place of encoder.npz")
    arguments = parser.parse_args()
    reads = load(arguments.folder)
    own = [read for read in reads if not read.label["changed"] and not read.is_public()]
    dev, test = ([read for read in own if read.label["part"] == part] for part in ("dev", "test"))
    made = [read for read in reads if read.label["part"] == "dev" and (read.label["changed"] or read.is_public())]
    strengths = choose_strengths(dev, made)
    print(f"{len(dev)} conversations and {len(made)} made or public ones; regularised by {strengths}")
    unseen = held_out(dev, made, strengths)
    calibrated = calibration(dev, unseen)
    report(dev, unseen, calibrated["temperature"], "dev, each writer by models of the others")
    outcome = Outcome(dev, made, strengths)
    if test:
        report(test, {name: outcome.predict(test, name) for name in OUTPUTS}, calibrated["temperature"], "test")
    if arguments.out:
        base, tensors = read_model(arguments.model) if arguments.model else fitted_encoder(arguments.folder)
        tensors["outcome.weight"] = np.concatenate([outcome.weights[name] for name in OUTPUTS], 1).astype(np.float32)
        tensors["outcome.bias"] = np.concatenate([outcome.bias[name] for name in OUTPUTS]).astype(np.float32)
        metadata = {"features": FEATURES_VERSION, "calibration": calibrated, "effects": {FULL[name]: effects(dev, name) for name in ("RA", "IE")}}
        header = {**base, "name": "assay-reader", "version": "1", "metadata": metadata}
        print(write_model(arguments.out, header, tensors), arguments.out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
