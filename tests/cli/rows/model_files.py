"""Writing and rewriting the files of a model folder."""

import json
import struct


def with_header(header, data=b""):
    """A safetensors file; `header` is an object, text or bytes."""
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header)) + header + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


class Safetensors:
    """The tensors of a file: name -> [dtype, shape, bytes]."""

    def __init__(self, path):
        self.path = path
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__", None)
        data = content[8 + length :]
        self.tensors = {
            name: [entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])]]
            for name, entry in header.items()
        }

    def content(self, names=None):
        header, data = {}, b""
        for name in names if names is not None else self.tensors:
            dtype, shape, values = self.tensors[name]
            header[name] = tensor(dtype, shape, (len(data), len(data) + len(values)))
            data += values
        return with_header(header, data)

    def save(self):
        self.path.write_bytes(self.content())


def split_into_shards(folder, num_shards=2):
    """Replaces model.safetensors by shards and an index, and returns the index."""
    whole = Safetensors(folder / "model.safetensors")
    names = sorted(whole.tensors)
    index = {"metadata": {}, "weight_map": {}}
    for shard in range(num_shards):
        file = f"model-{shard + 1:05}-of-{num_shards:05}.safetensors"
        part = names[shard::num_shards]
        (folder / file).write_bytes(whole.content(part))
        index["weight_map"].update((name, file) for name in part)
    whole.path.unlink()
    save_index(folder, index)
    return index


def save_index(folder, index):
    text = index if isinstance(index, str) else json.dumps(index)
    (folder / "model.safetensors.index.json").write_text(text)


# --- tokenizer.model: the wire format of protobuf -------------------------------------------------

NORMAL, UNKNOWN, CONTROL = 1, 2, 3


def varint(value):
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def field(number, content):
    """A field of bytes, or of a varint when `content` is a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def piece(text, kind=NORMAL):
    score = varint(2 << 3 | 5) + struct.pack("<f", -1.0)
    return field(1, field(1, text) + score + field(3, kind))


def fields(content):
    """(number, bytes of the whole field, value) of each field of a message."""

    def read_varint(at):
        value = shift = 0
        while True:
            value |= (content[at] & 0x7F) << shift
            shift += 7
            at += 1
            if not content[at - 1] & 0x80:
                return value, at

    at = 0
    while at < len(content):
        begin = at
        key, at = read_varint(at)
        if key & 7 == 0:
            value, at = read_varint(at)
        elif key & 7 == 5:
            value, at = content[at : at + 4], at + 4
        else:
            length, at = read_varint(at)
            value, at = content[at : at + length], at + length
        yield key >> 3, content[begin:at], value


def pieces_of(content):
    return [raw for number, raw, _ in fields(content) if number == 1]


def with_pieces(content, pieces):
    return b"".join(pieces) + b"".join(raw for number, raw, _ in fields(content) if number != 1)
