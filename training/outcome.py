"""Step 2: fits scores and verdicts on the predictions of the encoder, and writes the model.

    python3 training/outcome.py target/training --out crates/scoring/model/reader.bin

reads `encoder.npz` and `predictions.npz`, which training/encoder.py wrote, and fits linear models and boosted trees on the part `dev`, which
the encoder has not seen; an output is the mean of both. Confidences are calibrated by cross-validation over the writers of `dev`. The part `test` is only reported.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from base import int8_tensors
from corpus import ACTS, CHARGES, SOLVERS, STATUSES
from encoder_file import read_model, write_model
from features import features
from joblib import Parallel, delayed
from scipy.optimize import minimize
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold

FEATURES_VERSION = 3
SETS = ("everyday", "unusual", "languages", "tone")
CLASSES = {"status": STATUSES, "by": SOLVERS, "charge": CHARGES}
# In the order of the outputs. Accuracy, effort and status use only what the customer saw.
OUTPUTS = ("RA", "IE", "HS", "status", "by", "charge")
SEEN = ("RA", "IE", "status")
FULL = {"RA": "resolution_accuracy", "IE": "interaction_effort", "HS": "handoff_smoothness"}
# Chosen by cross-validation over the writers of `dev` (ADR 25).
TREES = {
    "learning_rate": 0.05, "max_iter": 250, "max_leaf_nodes": 5, "min_samples_leaf": 15, "l2_regularization": 5.0,
    "max_features": 0.3, "early_stopping": False, "random_state": 12,
}  # fmt: skip
# Regularisation of the linear models, chosen likewise.
REGULARISATION = {"RA": 1000, "IE": 300, "HS": 1000, "status": 0.01, "by": 0.03, "charge": 0.01}
# Logit of a class that no conversation of `dev` has.
IMPOSSIBLE = -8.0
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
    """For each output a linear model and boosted trees."""

    def __init__(self, reads, made):
        self.linear, self.trees = {}, {}
        for name in OUTPUTS:
            rows = [read for read in reads + made if known(read, name)]
            matrix, wanted = np.array([view(read, name) for read in rows], np.float64), [target(read, name) for read in rows]
            counts = [read.counts() for read in rows]
            kind = HistGradientBoostingClassifier if name in CLASSES else HistGradientBoostingRegressor
            self.trees[name] = kind(**TREES).fit(matrix, wanted, sample_weight=counts)
            self.linear[name] = linear(name, matrix, wanted, counts)

    def predict(self, reads, name):
        """For each conversation a score, or logits."""
        trees, (weights, bias) = self.trees[name], self.linear[name]
        matrix = np.array([view(read, name) for read in reads], np.float64)
        found = matrix @ weights + bias
        if name not in CLASSES:
            return (found[:, 0] + trees.predict(matrix)) / 2
        grown = np.full(found.shape, IMPOSSIBLE)
        grown[:, trees.classes_] = trees.decision_function(matrix)
        return (found + grown) / 2

    def tensors(self):
        """Weights and biases, the nodes, and output and root of each tree (crates/scoring/src/reader/), halved for the mean."""
        weights, bias, nodes, trees = [], [], [], []
        for name in OUTPUTS:
            # scikit-learn has no public way to the trees; its version is pinned.
            model, first = self.trees[name], len(bias)
            classes = model.classes_ if name in CLASSES else [0]
            # With two classes scikit-learn grows trees for the second one alone.
            assert name not in CLASSES or len(classes) > 2, f"{name}: two classes or one"
            start = np.full(len(CLASSES.get(name, [0])), IMPOSSIBLE)
            start[classes] = model._baseline_prediction.ravel()
            weights.append(self.linear[name][0] / 2)
            bias.extend((self.linear[name][1] + start) / 2)
            for step in model._predictors:
                for at, predictor in zip(classes, step, strict=True):
                    trees.append([first + at, len(nodes)])
                    add_nodes(nodes, predictor.nodes, 0)
        tables = {"weight": np.concatenate(weights, 1), "bias": bias, "nodes": nodes, "trees": trees}
        return {f"outcome.{part}": np.array(table, np.float32) for part, table in tables.items()}


def linear(name, matrix, wanted, counts):
    """Weights, a row for each feature, and biases of a model that is fitted on standardised features."""
    mean, spread = matrix.mean(0), matrix.std(0) + 1e-3
    matrix = (matrix - mean) / spread
    if name in CLASSES:
        model = LogisticRegression(C=REGULARISATION[name], max_iter=2000).fit(matrix, wanted, sample_weight=counts)
        weights, bias = np.zeros((matrix.shape[1], len(CLASSES[name]))), np.full(len(CLASSES[name]), IMPOSSIBLE)
        weights[:, model.classes_], bias[model.classes_] = model.coef_.T, model.intercept_
    else:
        model = Ridge(alpha=REGULARISATION[name]).fit(matrix, wanted, sample_weight=counts)
        weights, bias = model.coef_[:, None], np.array([model.intercept_])
    return weights / spread[:, None], bias - (mean / spread) @ weights


def add_nodes(found, nodes, at):
    """Appends a node and those below it: first the branch for inputs up to the threshold, then the other one."""
    node = nodes[at]
    if node["is_leaf"]:
        found.append([-1, node["value"] / 2, 0])
        return
    index = len(found)
    found.append([node["feature_idx"], rounded_down(node["num_threshold"]), 0])
    add_nodes(found, nodes, node["left"])
    found[index][2] = len(found)
    add_nodes(found, nodes, node["right"])


def rounded_down(threshold):
    """The greatest 32-bit number that is not above the threshold: features have 32 bits, and are compared with the same result."""
    nearest = np.float32(threshold)
    return nearest if float(nearest) <= float(threshold) else np.nextafter(nearest, np.float32(-np.inf))


def view(read, name):
    return read.seen if name in SEEN else read.whole


def known(read, name):
    return sum(read.label[name]) > 0 if name in CLASSES else read.label[name] is not None


def target(read, name):
    return int(np.argmax(read.label[name])) if name in CLASSES else read.label[name]


def folds(reads):
    return GroupKFold(FOLDS).split(reads, groups=[read.label["writer"] for read in reads])


def held_out(reads, made):
    """Cross-validated predictions: each writer by models that have not seen them."""

    def fold(others, own):
        writers = {reads[at].label["writer"] for at in own}
        outcome = Outcome([reads[at] for at in others], [read for read in made if read.label["writer"] not in writers])
        return {name: outcome.predict([reads[at] for at in own], name) for name in OUTPUTS}

    found = {name: np.zeros((len(reads), len(CLASSES[name])) if name in CLASSES else len(reads)) for name in OUTPUTS}
    parts = list(folds(reads))
    for (_, own), predicted in zip(parts, Parallel(n_jobs=-1)(delayed(fold)(*part) for part in parts), strict=True):
        for name in OUTPUTS:
            found[name][own] = predicted[name]
    return found


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
    print(f"{len(dev)} conversations and {len(made)} made or public ones")
    unseen = held_out(dev, made)
    calibrated = calibration(dev, unseen)
    report(dev, unseen, calibrated["temperature"], "dev, each writer by models of the others")
    outcome = Outcome(dev, made)
    if test:
        report(test, {name: outcome.predict(test, name) for name in OUTPUTS}, calibrated["temperature"], "test")
    if arguments.out:
        base, tensors = read_model(arguments.model) if arguments.model else fitted_encoder(arguments.folder)
        tensors = {name: array for name, array in tensors.items() if not name.startswith("outcome.")} | outcome.tensors()
        metadata = {"features": FEATURES_VERSION, "calibration": calibrated, "effects": {FULL[name]: effects(dev, name) for name in ("RA", "IE")}}
        header = {**base, "name": "assay-reader", "version": "1", "metadata": metadata}
        print(write_model(arguments.out, header, tensors), arguments.out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
