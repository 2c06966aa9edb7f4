"""Writes and reads the model file of the crate `assay-encoder`, and implements tokenizer and encoder in numpy as a reference.

The format is described in crates/encoder/src/file.rs, the tensors in crates/encoder/src/model.rs.
"""

import hashlib
import json
import math
import struct

import numpy as np

MAGIC = b"ASSAYENC"
FORMAT_VERSION = 1
ALIGNMENT = 64
METASPACE = "\u2581"
UNKNOWN_PENALTY = 10.0
DTYPES = {"int8": "i8", "uint8": "u8", "uint32": "u32", "float32": "f32"}


def write_model(path, header, tensors):
    """Writes the model and returns its SHA-256 in hexadecimal digits.

    `header` has what the crate's `Header` has; `tensors` is a dict of numpy arrays of int8, uint8, uint32 or float32.
    """
    entries, blocks, offset = [], [], 0
    for name, array in tensors.items():
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        entries.append(
            {"name": name, "dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "offset": offset}
        )
        blocks.append(data + bytes(-len(data) % ALIGNMENT))
        offset += len(blocks[-1])
    text = json.dumps({**header, "tensors": entries}, ensure_ascii=False, sort_keys=True).encode()
    content = MAGIC + struct.pack("<II", FORMAT_VERSION, len(text)) + text
    content += bytes(-len(content) % ALIGNMENT) + b"".join(blocks)
    checksum = hashlib.sha256(content)
    with open(path, "wb") as file:
        file.write(content + checksum.digest())
    return checksum.hexdigest()


def read_model(path):
    """The header and the tensors of a model file."""
    with open(path, "rb") as file:
        content = file.read()
    content, checksum = content[:-32], content[-32:]
    version, length = struct.unpack("<II", content[8:16])
    if content[:8] != MAGIC or version != FORMAT_VERSION:
        raise ValueError(f"{path} is not a model file of version {FORMAT_VERSION}")
    if hashlib.sha256(content).digest() != checksum:
        raise ValueError(f"the checksum of {path} is wrong")
    header = json.loads(content[16 : 16 + length])
    data = content[(16 + length + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT :]
    names = {short: np.dtype(name).newbyteorder("<") for name, short in DTYPES.items()}
    tensors = {}
    for entry in header.pop("tensors"):
        count = math.prod(entry["shape"])
        array = np.frombuffer(data, names[entry["dtype"]], count, entry["offset"])
        tensors[entry["name"]] = array.reshape(entry["shape"])
    return header, tensors


def vocabulary_tensors(pieces, scores, replacements):
    """The tensors of the tokenizer. `pieces` has "" for markers, `replacements` maps characters to strings."""
    encoded = [piece.encode() for piece in pieces]
    characters = sorted(replacements)
    lengths = [len(replacements[character]) for character in characters]
    return {
        "tokenizer.pieces": np.frombuffer(b"".join(encoded), np.uint8),
        "tokenizer.offsets": np.cumsum([0] + [len(piece) for piece in encoded]).astype(np.uint32),
        "tokenizer.scores": np.array(scores, np.float32),
        "tokenizer.normalise.from": np.array([ord(character) for character in characters], np.uint32),
        "tokenizer.normalise.offsets": np.cumsum([0] + lengths).astype(np.uint32),
        "tokenizer.normalise.to": np.array(
            [ord(new) for character in characters for new in replacements[character]], np.uint32
        ),
    }


def quantise_rows(matrix):
    """Quantises a float matrix to int8 with a scale for each row (tensors `….weight` and `….scale`)."""
    scale = np.maximum(np.abs(matrix).max(axis=1), 1e-9) / 127.0
    weight = np.clip(np.rint(matrix / scale[:, None]), -127, 127)
    return weight.astype(np.int8), scale.astype(np.float32)


def tokenizer_of(pieces, scores, replacements, unknown):
    """A fast equivalent of `tokenize`, by the package tokenizers: a function from a text to its ids."""
    from tokenizers import Tokenizer, models

    tokenizer = Tokenizer(models.Unigram([(piece, float(score)) for piece, score in zip(pieces, scores)], unknown, False))

    def ids_of(text):
        changed = "".join(replacements.get(character, character) for character in text.replace("\n", " ").replace("\t", " "))
        return tokenizer.encode("".join(METASPACE + word for word in changed.split(" ") if word)).ids

    return ids_of


def tokenize(header, tensors, text):
    """The ids of `text`; slow reference implementation."""
    offsets, data = tensors["tokenizer.offsets"], tensors["tokenizer.pieces"].tobytes()
    scores = tensors["tokenizer.scores"].astype(np.float64)
    unknown = header["unk_id"]
    pieces = {}
    for index, (start, end) in enumerate(zip(offsets[:-1], offsets[1:])):
        if end > start and index not in (header["bos_id"], unknown):
            pieces.setdefault(data[start:end].decode(), index)
    unknown_score = min((scores[index] for index in pieces.values()), default=0.0) - UNKNOWN_PENALTY
    longest = max(map(len, pieces), default=0)
    text = _normalise(tensors, text)
    best = [(0.0, 0, unknown)] + [(-math.inf, 0, unknown)] * len(text)
    for start in range(len(text)):
        for end in range(start + 1, min(len(text), start + longest) + 1):
            index = pieces.get(text[start:end])
            if index is not None and best[start][0] + scores[index] > best[end][0]:
                best[end] = (best[start][0] + scores[index], start, index)
        if best[start][0] + unknown_score > best[start + 1][0]:
            best[start + 1] = (best[start][0] + unknown_score, start, unknown)
    ids, end = [], len(text)
    while end > 0:
        _, end, index = best[end]
        if not (index == unknown and ids and ids[-1] == unknown):
            ids.append(index)
    return ids[::-1]


def encode_int8(header, tensors, ids, segments):
    """The vectors of the last layer, `[len(ids), hidden]`, with the quantised arithmetic of the crate.

    `segments` holds the end of each segment: an id attends to its own segment and to earlier ones.
    """
    number = np.searchsorted(segments, np.arange(len(ids)), side="right")
    unseen = number[:, None] < number[None, :]
    epsilon, heads = header["layer_norm_epsilon"], header["heads"]
    words = tensors["embedding.word"][ids].astype(np.float32) * tensors["embedding.word.scale"][ids][:, None]
    rows = _norm(words + tensors["embedding.position"][: len(ids)], tensors, "embedding.norm", epsilon)
    for layer in range(header["layers"]):
        name = f"layer.{layer}."
        queries, keys, values = (
            part.reshape(len(ids), heads, -1).transpose(1, 0, 2)
            for part in np.split(_multiply(rows, tensors, name + "qkv"), 3, axis=1)
        )
        scores = queries @ keys.transpose(0, 2, 1) / np.float32(math.sqrt(queries.shape[2]))
        scores = np.where(unseen, -np.inf, scores)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        context = (weights @ values).transpose(1, 0, 2).reshape(len(ids), -1)
        rows = rows + _multiply(context, tensors, name + "output")
        rows = _norm(rows, tensors, name + "attention_norm", epsilon)
        inner = _gelu(_multiply(rows, tensors, name + "up"))
        rows = rows + _multiply(inner, tensors, name + "down")
        rows = _norm(rows, tensors, name + "output_norm", epsilon)
    return rows


def _normalise(tensors, text):
    offsets, new = tensors["tokenizer.normalise.offsets"], tensors["tokenizer.normalise.to"]
    places = {int(old): index for index, old in enumerate(tensors["tokenizer.normalise.from"])}
    changed = []
    for character in text:
        code = ord(character)
        if code < 32 or 127 <= code < 160 or code in (0x2028, 0x2029):
            changed.append(" ")
        elif code in places:
            start, end = offsets[places[code]], offsets[places[code] + 1]
            changed.extend(chr(code) for code in new[start:end])
        else:
            changed.append(character)
    words = [word for word in "".join(changed).split(" ") if word]
    return "".join(METASPACE + word for word in words)


def _multiply(rows, tensors, name):
    largest = np.maximum(np.abs(rows).max(axis=1), np.float32(1e-9)).astype(np.float32)
    quantised = np.rint(rows * (np.float32(127.0) / largest)[:, None]).astype(np.int32)
    sums = quantised @ tensors[name + ".weight"].astype(np.int32).T
    scale = (largest / np.float32(127.0))[:, None] * tensors[name + ".scale"]
    return sums.astype(np.float32) * scale + tensors[name + ".bias"]


def _norm(rows, tensors, name, epsilon):
    rows = rows - rows.mean(axis=1, keepdims=True)
    rows = rows / np.sqrt((rows * rows).mean(axis=1, keepdims=True) + np.float32(epsilon))
    return (rows * tensors[name + ".weight"] + tensors[name + ".bias"]).astype(np.float32)


def _gelu(values):
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return (0.5 * values * (1.0 + erf(values / math.sqrt(2.0)))).astype(np.float32)
