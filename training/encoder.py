"""Step 1: fits the encoder and its heads, which predict the acts of each message and an impression of the conversation.

    python3 training/encoder.py target/training --out target/training/encoder.npz

reads `base.npz`, `inputs.jsonl` and `labels.jsonl` of the folder. Predictions for the other parts are written to
`--predictions`, on which step 2 (outcome.py) is fitted.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
from corpus import ACTS, CHARGES, CUSTOMER_ACTS, SOLVERS, STATUSES
from base import MARKERS
from encoder_file import read_model
from torch import nn
from torch.nn import functional as F

HEADS = 12
DROPOUT = 0.1
INNER = 192
# Scores are standardised.
MEAN, SPREAD = torch.tensor([3.2, 3.4, 3.4]), torch.tensor([1.3, 1.0, 1.2])
SCORES = ("RA", "IE", "HS")
# Segment number of padding: later than all others, so nothing attends to it.
PADDING = 10_000
BATCH = 16
# Processors without instructions for bfloat16 take 2.4 times as long with it as with single precision (10.6 and 4.5 s a step).
HAS_BFLOAT16 = "bf16" in Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else False
# Weight of the loss of acts relative to that of impressions.
ACTS_WEIGHT = 2.5


class Layer(nn.Module):
    """Attention and a feed-forward part, each followed by normalisation."""

    def __init__(self, hidden, inner):
        super().__init__()
        self.qkv, self.output = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.attention_norm, self.output_norm = (nn.LayerNorm(hidden, eps=1e-12) for _ in range(2))
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, rows, mask):
        count, length, hidden = rows.shape
        queries, keys, values = self.qkv(rows).view(count, length, 3, HEADS, hidden // HEADS).permute(2, 0, 3, 1, 4)
        # One conversation at a time fits the cache and is faster on CPUs than torch's masked attention.
        looks = (torch.baddbmm(unseen, query, key.mT, alpha=(hidden // HEADS) ** -0.5) for unseen, query, key in zip(mask, queries, keys))
        context = torch.stack([look.softmax(-1).to(value.dtype) @ value for look, value in zip(looks, values)])
        rows = self.attention_norm(rows + self.output(context.transpose(1, 2).reshape(count, length, hidden)))
        return self.output_norm(rows + F.dropout(self.down(F.gelu(self.up(rows))), DROPOUT, self.training))


class Reader(nn.Module):
    """The encoder of crates/encoder, and the heads of crates/scoring/src/reader/encoding.rs."""

    def __init__(self, base):
        super().__init__()
        hidden = base["embedding.word"].shape[1]
        layers = 1 + max(int(name.split(".")[1]) for name in base if name.startswith("layer."))
        # Word embeddings are frozen: too few conversations to train them.
        self.word = nn.Embedding.from_pretrained(torch.tensor(base["embedding.word"]), freeze=True)
        self.marker = nn.Embedding.from_pretrained(torch.tensor(base["embedding.marker"]), freeze=False)
        self.position = nn.Embedding.from_pretrained(torch.tensor(base["embedding.position"]), freeze=False)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(Layer(hidden, base["layer.0.up.bias"].shape[0]) for _ in range(layers))
        self.acts = nn.Linear(2 * hidden, len(ACTS))
        self.inner = nn.Linear(8 * hidden, INNER)
        self.impression = nn.Linear(INNER, 3 + len(STATUSES) + len(SOLVERS) + len(CHARGES))
        with torch.no_grad():
            for name, parameter in self.encoder_parameters():
                parameter.copy_(torch.tensor(base[name]))

    def start_from(self, weights):
        """Takes weights of a model file, but for the word embeddings: a fit has those of the base."""
        with torch.no_grad():
            for name, parameter in self.encoder_parameters():
                parameter.copy_(torch.tensor(weights[name]))
            self.marker.weight.copy_(torch.tensor(weights["embedding.marker"]))
            for name, head in self.heads():
                head.weight.copy_(torch.tensor(weights[f"{name}.weight"]).T)
                head.bias.copy_(torch.tensor(weights[f"{name}.bias"]))
            self.position.weight.copy_(torch.tensor(weights["embedding.position"]))

    def heads(self):
        """The heads by their names in the model file, where their weights have a row for each input."""
        return ("acts", self.acts), ("impression.inner", self.inner), ("impression", self.impression)

    def encoder_parameters(self):
        """Parameters by their names in the model file."""
        yield "embedding.norm.weight", self.norm.weight
        yield "embedding.norm.bias", self.norm.bias
        for number, layer in enumerate(self.layers):
            for name, parameter in layer.named_parameters():
                yield f"layer.{number}.{name}", parameter

    def forward(self, batch):
        ids, segment = batch["ids"], batch["segment"]
        words = self.word.num_embeddings
        marked = (ids >= words)[..., None]
        rows = torch.where(marked, self.marker((ids - words).clamp(min=0)), self.word(ids.clamp(max=words - 1)))
        rows = F.dropout(self.norm(rows + self.position.weight[: ids.shape[1]]), DROPOUT, self.training)
        kind = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
        unseen = segment[:, :, None] < segment[:, None, :]
        mask = torch.zeros(unseen.shape, dtype=kind).masked_fill(unseen, -1e4)[:, None]
        for layer in self.layers:
            rows = layer(rows, mask)
        # Vectors of a message: the one at its marker, and the mean of its segment.
        marker = rows[torch.arange(len(ids))[:, None], batch["markers"]]
        own = (segment[:, None, :] == batch["number"][:, :, None]).to(rows.dtype)
        mean = own @ rows / own.sum(2, keepdim=True).clamp(min=1)
        messages = torch.cat([marker, mean], 2)
        views = [(messages * keep[..., None]).sum(1) / keep.sum(1, keepdim=True).clamp(min=1) for keep in batch["views"]]
        return self.acts(messages), self.impression(F.dropout(F.relu(self.inner(torch.cat(views, 1))), DROPOUT, self.training))


def weights_of(path):
    """The weights of a model file, or of a checkpoint of this fit, as floating-point numbers, by the names of the base."""
    if path.suffix == ".npz":
        return dict(np.load(path))
    tensors = read_model(path)[1]
    weights = {}
    for name, array in tensors.items():
        scale = tensors.get(f"{name.removesuffix('.weight')}.scale")
        array = array.astype(np.float32)
        weights[name] = array if scale is None else array * scale[:, None]
    weights["embedding.word"], weights["embedding.marker"] = np.split(weights["embedding.word"], [-MARKERS])
    return weights


class Conversation:
    """Inputs and labels of one conversation."""

    def __init__(self, given, label):
        self.id, self.label, self.roles = given["id"], label, given["roles"]
        self.ids, self.markers, self.ends = given["ids"], given["markers"], given["segments"]
        places = {message: at for at, message in enumerate(given["messages"])}
        self.acts = {places[int(at)]: readings for at, readings in label["acts"].items() if int(at) in places}

    def targets(self):
        """For each message and act the share of raters who assigned it, and whether the act is allowed and was rated."""
        wanted, known = np.zeros((len(self.roles), len(ACTS)), np.float32), np.zeros((len(self.roles), len(ACTS)), np.float32)
        for at, readings in self.acts.items():
            role = self.roles[at]
            known[at, : len(CUSTOMER_ACTS)] = role in "CM"
            known[at, len(CUSTOMER_ACTS) :] = role in "AHM"
            for codes in readings:
                for code in set(codes) & set(ACTS):
                    wanted[at, ACTS.index(code)] += 1 / len(readings)
        return wanted, known


def load(folder):
    with open(folder / "inputs.jsonl") as inputs, open(folder / "labels.jsonl") as labels:
        conversations = [Conversation(json.loads(given), json.loads(label)) for given, label in zip(inputs, labels, strict=True)]
    assert all(conversation.id == conversation.label["id"] for conversation in conversations)
    return [conversation for conversation in conversations if conversation.roles]


def batch_of(conversations):
    count, length = len(conversations), max(len(conversation.ids) for conversation in conversations)
    most = max(len(conversation.roles) for conversation in conversations)
    batch = {
        "ids": torch.ones(count, length, dtype=torch.long), "segment": torch.full((count, length), PADDING),
        "markers": torch.zeros(count, most, dtype=torch.long), "number": torch.full((count, most), -1),
        "views": torch.zeros(4, count, most), "acts": torch.zeros(count, most, len(ACTS)), "known": torch.zeros(count, most, len(ACTS)),
        "scores": torch.zeros(count, 3), "scored": torch.zeros(count, 3),
    }  # fmt: skip
    for row, conversation in enumerate(conversations):
        roles = conversation.roles
        batch["ids"][row, : len(conversation.ids)] = torch.tensor(conversation.ids)
        numbers = np.searchsorted(conversation.ends, np.arange(len(conversation.ids)), side="right")
        batch["segment"][row, : len(conversation.ids)] = torch.tensor(numbers)
        batch["markers"][row, : len(roles)] = torch.tensor(conversation.markers)
        batch["number"][row, : len(roles)] = torch.arange(1, len(roles) + 1)
        customer = [at for at, role in enumerate(roles) if role == "C"]
        answers = [at for at, role in enumerate(roles) if role in "AHM"]
        for view, places in enumerate([[len(roles) - 1], customer, customer[-1:], answers[-1:]]):
            batch["views"][view, row, places] = 1
        wanted, known = conversation.targets()
        batch["acts"][row, : len(roles)], batch["known"][row, : len(roles)] = torch.tensor(wanted), torch.tensor(known)
        for at, name in enumerate(SCORES):
            if conversation.label[name] is not None:
                batch["scores"][row, at], batch["scored"][row, at] = conversation.label[name], 1
    for name in ("status", "by", "charge"):
        size = {"status": len(STATUSES), "by": len(SOLVERS), "charge": len(CHARGES)}[name]
        batch[name] = torch.tensor([conversation.label[name] or [0.0] * size for conversation in conversations])
    return batch


def loss_of(batch, acts, impression):
    def crossed(logits, wanted):
        return -(wanted * F.log_softmax(logits, 1)).sum(1)

    off = (impression[:, :3] - (batch["scores"] - MEAN) / SPREAD) ** 2 * batch["scored"]
    loss = (off * torch.tensor([1.0, 0.7, 0.7])).sum(1) + crossed(impression[:, 3:6], batch["status"])
    loss = loss + 0.7 * crossed(impression[:, 6:11], batch["by"]) + 0.7 * crossed(impression[:, 11:15], batch["charge"])
    missed = F.binary_cross_entropy_with_logits(acts, batch["acts"].clamp(max=1), reduction="none") * batch["known"]
    messages = (batch["known"].sum((1, 2)) / len(CUSTOMER_ACTS)).clamp(min=1)
    return (loss + ACTS_WEIGHT * missed.sum((1, 2)) / messages).mean()


def batches(conversations, chance):
    """Batches of conversations of similar length, shuffled."""
    order = list(range(len(conversations)))
    chance.shuffle(order)
    found = []
    for start in range(0, len(order), 8 * BATCH):
        alike = sorted(order[start : start + 8 * BATCH], key=lambda at: len(conversations[at].ids))
        found += [alike[at : at + BATCH] for at in range(0, len(alike), BATCH)]
    chance.shuffle(found)
    return [[conversations[at] for at in places] for places in found]


def fit(model, conversations, epochs, rate, checkpoint, seed):
    matrices = [parameter for name, parameter in model.encoder_parameters() if parameter.ndim > 1]
    heads = [parameter for _, head in model.heads() for parameter in head.parameters()]
    chosen = {id(parameter) for parameter in matrices + heads}
    others = [parameter for parameter in model.parameters() if parameter.requires_grad and id(parameter) not in chosen]
    groups = [{"params": matrices, "lr": rate, "weight_decay": 0.01}, {"params": others, "lr": rate, "weight_decay": 0.0}, {"params": heads, "lr": 1e-3, "weight_decay": 0.01}]
    optimizer = torch.optim.AdamW(groups, fused=True)
    steps, chance = epochs * -(-len(conversations) // BATCH), random.Random(seed)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / (0.06 * steps)) * max(0.02, 0.5 * (1 + np.cos(np.pi * min(1, step / steps)))))
    model.train()
    for epoch in range(epochs):
        start, losses = time.time(), []
        for chosen in batches(conversations, chance):
            batch = batch_of(chosen)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=HAS_BFLOAT16):
                acts, impression = model(batch)
            loss = loss_of(batch, acts.float(), impression.float())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if len(losses) % 50 == 0:
                print(f"  {len(losses)} of {steps // epochs}, {time.time() - start:.0f} s, loss {np.mean(losses[-50:]):.3f}", flush=True)
        print(f"epoch {epoch + 1}: {time.time() - start:.0f} s, loss {np.mean(losses):.3f}", flush=True)
        if checkpoint:
            save(model, checkpoint)


def predict(model, conversations):
    """For each conversation the probabilities of its messages' acts, and the outputs of the impression head."""
    model.eval()
    found = {}
    order = sorted(conversations, key=lambda conversation: len(conversation.ids))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=HAS_BFLOAT16):
        for start in range(0, len(order), 32):
            chosen = order[start : start + 32]
            batch = batch_of(chosen)
            acts, impression = (values.float() for values in model(batch))
            able = torch.zeros(len(chosen), acts.shape[1], len(ACTS))
            for row, conversation in enumerate(chosen):
                for at, role in enumerate(conversation.roles):
                    able[row, at, : len(CUSTOMER_ACTS)] = role in "CM"
                    able[row, at, len(CUSTOMER_ACTS) :] = role in "AHM"
            acts = (torch.sigmoid(acts) * able).numpy()
            for row, conversation in enumerate(chosen):
                found[conversation.id] = acts[row, : len(conversation.roles)], impression[row].numpy()
    return found


def save(model, path):
    """Saves the encoder by the tensor names of the model file, and the heads with a row for each input."""
    arrays = {name: parameter for name, parameter in model.encoder_parameters()}
    arrays |= {"embedding.word": model.word.weight, "embedding.marker": model.marker.weight, "embedding.position": model.position.weight}
    for name, head in model.heads():
        arrays |= {f"{name}.weight": head.weight.T, f"{name}.bias": head.bias}
    np.savez(path, **{name: array.detach().numpy() for name, array in arrays.items()})


def save_predictions(found, path):
    np.savez(path, **{f"{name}/{part}": values for name, pair in found.items() for part, values in zip(("acts", "impression"), pair)})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", default="train")
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--epochs", type=int, default=4, help="0 only writes the predictions of --start, on inputs that were made with it: for another second step")
    parser.add_argument("--start", type=Path, help="a model file, or a checkpoint that --out wrote, whose weights the fit starts from instead of the base's")
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--conversations", type=int, default=0, help="limit of conversations of the corpus, without changed and public ones: for learning curves")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    parts = arguments.parts.split(",")
    everything = load(arguments.folder)
    fitted = [conversation for conversation in everything if conversation.label["part"] in parts]
    if arguments.conversations:
        own = (conversation for conversation in fitted if not conversation.label["changed"] and conversation.label["kind"] != "public")
        fitted = sorted(own, key=lambda conversation: conversation.id[::-1])[: arguments.conversations]
    print(f"{len(fitted)} conversations of {len(everything)}", flush=True)
    start = weights_of(arguments.start) if arguments.start else None
    # A model that is not fitted further reads inputs in its own vocabulary.
    model = Reader(np.load(arguments.folder / "base.npz") if arguments.epochs else start)
    if start:
        model.start_from(start)
    if arguments.epochs:
        fit(model, fitted, arguments.epochs, arguments.rate, arguments.out, arguments.seed)
    if arguments.predictions:
        # Step 2 is fitted on parts that the encoder has not seen.
        held_out = [conversation for conversation in everything if conversation.label["part"] not in parts]
        save_predictions(predict(model, held_out), arguments.predictions)


if __name__ == "__main__":
    main()
