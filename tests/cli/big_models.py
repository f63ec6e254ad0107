"""Model folders on which things take long, made of the tiny model's files."""

import json
import math
import pathlib
import random
import shutil
import struct

import support

BLOCK_BYTES = 1 << 20
BYTE_PIECE = 6


def write_slow_model(source, folder):
    """A model of 126 million random parameters: 2,048 tokens take seconds on a few cores."""
    copy_text_files(source, folder)
    config = json.loads((source / "config.json").read_text())
    config.update(hidden_size=2048, intermediate_size=8192, num_attention_heads=16,
                  num_key_value_heads=8, head_dim=128, max_position_embeddings=16384,
                  torch_dtype="bfloat16")
    (folder / "config.json").write_text(json.dumps(config))
    write_random_weights(folder / "model.safetensors", support.expected_tensors(folder))


def write_model_without_length_limit(source, folder):
    """The tiny model with a tokenizer without byte pieces, to which unknown characters in a row are
    one token, however many: no text is too long before it has been tokenised."""
    copy_text_files(source, folder)
    shutil.copy(source / "model.safetensors", folder)
    model = (source / "tokenizer.model").read_bytes()
    kept = b"".join(field for field in fields(model) if not is_byte_piece(field))
    (folder / "tokenizer.model").write_bytes(kept.replace(b"\x98\x02\x01", b"\x98\x02\x00"))


def copy_text_files(source, folder):
    folder.mkdir()
    for path in pathlib.Path(source).iterdir():
        if path.suffix != ".safetensors" and path.is_file():
            shutil.copy(path, folder)


# --- weights --------------------------------------------------------------------------------------


def random_bfloat16(num_bytes):
    """Values between 2^-7 and 2^-5 of either sign, as bytes."""
    chance = random.Random(1)
    low = chance.randbytes(num_bytes // 2)
    high = bytes(0x3C | byte & 0x80 for byte in chance.randbytes(num_bytes // 2))
    return bytes(byte for pair in zip(low, high) for byte in pair)


def write_random_weights(path, tensors):
    header, end = {}, 0
    for tensor in tensors:
        begin, end = end, end + 2 * math.prod(tensor["shape"])
        header[tensor["name"]] = {"dtype": "BF16", "shape": tensor["shape"],
                                  "data_offsets": [begin, end]}  # fmt: skip
    text = json.dumps(header).encode()
    block = random_bfloat16(BLOCK_BYTES)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for begin in range(0, end, BLOCK_BYTES):
            file.write(block[: min(BLOCK_BYTES, end - begin)])


# --- tokenizer.model, a protobuf ------------------------------------------------------------------


def read_varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def fields(message):
    """The fields of a message, each with its key, as bytes."""
    at = 0
    while at < len(message):
        begin = at
        key, at = read_varint(message, at)
        kind = key & 7
        if kind == 0:
            _, at = read_varint(message, at)
        elif kind == 2:
            size, at = read_varint(message, at)
            at += size
        else:
            at += {1: 8, 5: 4}[kind]
        yield message[begin:at]


def is_byte_piece(field):
    if field[0] != 0x0A:  # field 1: a piece
        return False
    _, at = read_varint(field, 1)
    return any(part == bytes([0x18, BYTE_PIECE]) for part in fields(field[at:]))
