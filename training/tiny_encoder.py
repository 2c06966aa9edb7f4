"""Writes the tiny random model of the tests of `assay-encoder`, and the expected results computed with numpy.

`python training/tiny_encoder.py crates/encoder/tests/data`
"""

import json
import pathlib
import sys

import numpy as np

from encoder_file import encode_int8, quantise_rows, tokenize, vocabulary_tensors, write_model

HIDDEN, HEADS, FEED_FORWARD, LAYERS, VOCABULARY, POSITIONS = 64, 2, 128, 2, 400, 64
MARKERS = ["<s>", "<unk>"]
WORDS = """▁the ▁my ▁is ▁not ▁a ▁I ▁you ▁order ▁refund ▁thank s ed ing er est un re able ful ness ly tion ▁work ▁on
▁ne ▁pas ▁commande ▁merci ▁é té ▁où ▁für ▁Bestell ung ▁größe ▁danke ▁nicht ▁mañana ▁pedido ▁não ▁está 我 的 订单 订 单
退款 没有 谢谢 ！ ， 。 👍 👍🏽 ▁👍 ▁12 ▁2024 00 ’ ' ff fi 10 % € ▁€ ▁x xx xxxx xxxxxxxx""".split()
TEXTS = [
    "", "   ", "\n\t", "the order is not on the work", "The Order", "Où est ma commande ? Merci, été",
    "für meine Bestellung: Größe, größe, nicht", "mañana no está mi pedido; não está", "我的订单没有退款，谢谢！",
    "my 订单 is 没有 👍🏽 thanks", "👍👍🏽🎉🎉🎉 ok", "ﬀ ﬁ ①０", "a\u00a0b\u3000c  d\r\ne\u0000f", "\u2581the\u2581 x",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxx", "<s> <unk> s", "refunded, refunding, unrefundableness 100% €2024",
    "日本語の文章です", "Ça n’a pas marché", "e\u0301te\u0301",
]


def random_model(random):
    letters = sorted({*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;?!-éèßäöüñãçøœ", "▁"})
    pieces = MARKERS + [piece for piece in dict.fromkeys(WORDS + letters)]
    markers = [""] * 12
    filler = [f"▁{a}{b}" for a in "bcdfghklmnprstvw" for b in "aeiouy"] + [f"{a}{b}" for a in "lmnrst" for b in "aeiouy"]
    pieces += [piece for piece in filler if piece not in pieces][: VOCABULARY - len(pieces) - len(markers)]
    pieces += [""] * (VOCABULARY - len(pieces))
    scores = [0.0 if piece in MARKERS else -float(random.uniform(2, 12)) - 2 * (len(piece) == 1) for piece in pieces]
    replacements = {"\u00a0": " ", "\u3000": " ", "ﬀ": "ff", "ﬁ": "fi", "①": "1", "０": "0", "Ⅷ": "VIII", "\u00ad": ""}
    tensors = vocabulary_tensors(pieces, scores, replacements)
    weight, scale = quantise_rows(random.normal(0, 0.05, (VOCABULARY, HIDDEN)))
    tensors |= {"embedding.word": weight, "embedding.word.scale": scale}
    tensors["embedding.position"] = random.normal(0, 0.03, (POSITIONS, HIDDEN)).astype(np.float32)
    tensors |= norm(random, "embedding.norm")
    for layer in range(LAYERS):
        name = f"layer.{layer}."
        tensors |= matrix(random, name + "qkv", 3 * HIDDEN, HIDDEN)
        tensors |= matrix(random, name + "output", HIDDEN, HIDDEN)
        tensors |= matrix(random, name + "up", FEED_FORWARD, HIDDEN)
        tensors |= matrix(random, name + "down", HIDDEN, FEED_FORWARD)
        tensors |= norm(random, name + "attention_norm") | norm(random, name + "output_norm")
    tensors["head.weight"] = np.array([[0.5, -1.0, 2.0], [0.0, 1.5, 3.0]], np.float32)
    return tensors


def matrix(random, name, outputs, inputs):
    weight, scale = quantise_rows(random.normal(0, 2 / np.sqrt(inputs), (outputs, inputs)))
    bias = random.normal(0, 0.1, outputs).astype(np.float32)
    return {name + ".weight": weight, name + ".scale": scale, name + ".bias": bias}


def norm(random, name):
    weight = random.normal(1, 0.1, HIDDEN).astype(np.float32)
    return {name + ".weight": weight, name + ".bias": random.normal(0, 0.1, HIDDEN).astype(np.float32)}


def main(folder):
    header = {
        "name": "tiny", "version": "1", "hidden": HIDDEN, "heads": HEADS, "feed_forward": FEED_FORWARD,
        "layers": LAYERS, "vocabulary": VOCABULARY, "max_positions": POSITIONS, "layer_norm_epsilon": 1e-12,
        "bos_id": 0, "unk_id": 1, "metadata": {"made_by": "training/tiny_encoder.py"},
    }  # fmt: skip
    tensors = random_model(np.random.default_rng(20))
    sha256 = write_model(folder / "tiny.assayenc", header, tensors)
    cases = []
    for text in TEXTS:
        ids = tokenize(header, tensors, text)
        cases.append({"text": text, "ids": ids, "vectors": vectors(header, tensors, [0, *ids], [1 + len(ids)])})
    ids = np.random.default_rng(21).integers(0, VOCABULARY, POSITIONS).tolist()
    segments = [10, 25, POSITIONS]
    long = {"segments": segments, "ids": ids, "vectors": vectors(header, tensors, ids, segments)}
    expected = {"sha256": sha256, "texts": cases, "long": long}
    (folder / "tiny.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n")


def vectors(header, tensors, ids, segments):
    """First and last vector of the last layer."""
    rows = encode_int8(header, tensors, ids, segments)
    return [[round(float(value), 5) for value in rows[index]] for index in (0, -1)]


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
