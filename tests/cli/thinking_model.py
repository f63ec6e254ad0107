"""A model that thinks before it answers, the same every time."""

import random
import struct

from rows.model_files import Safetensors, piece, pieces_of, with_pieces
from support import edit_json

HIDDEN, VOCABULARY, END_OF_SEQUENCE = 64, 320, 2
THINK, END_THINK = 259, 260  # two pieces of the tiny model that become marks

# What follows what. The last token of a prompt decides how an answer begins.
SUCCESSORS = ["~{h m}yes$", "#y", ">h"]

# As Qwen3's does, in small: an older answer's thoughts are left out, an empty thought says that
# there is to be none. Prints what it is given for tests to look at.
TEMPLATE = """\
{%- for m in messages %}[{{ m.role }}:{{ m.content }}:{{ m.reasoning_content is defined }}]
{%- endfor %}{{ '#' if enable_thinking is defined and not enable_thinking else '~' }}"""
# Thinks only where it is asked to.
QUIET_TEMPLATE = """\
{{ messages[-1].content }}{{ '~' if enable_thinking is defined and enable_thinking else '#' }}"""
# The prompt itself begins the thought.
OPEN_TEMPLATE = "{{ messages[-1].content }}<think>"


def token(character):
    special = {"{": THINK, "}": END_THINK, "$": END_OF_SEQUENCE}
    return special.get(character, 3 + ord(character))


def make_thinking(folder, template=TEMPLATE):
    """Makes the tiny model in `folder` recite "<think>h m</think>yes"."""
    path = folder / "tokenizer.model"
    content = path.read_bytes()
    pieces = pieces_of(content)
    pieces[THINK], pieces[END_THINK] = piece(b"<think>"), piece(b"</think>")
    path.write_bytes(with_pieces(content, pieces))

    weights = Safetensors(folder / "model.safetensors")
    draw = random.Random(1)
    rows = [[draw.choice((-1.0, 1.0)) for _ in range(HIDDEN)] for _ in range(VOCABULARY)]
    outputs = [[0.0] * HIDDEN for _ in range(VOCABULARY)]
    for text in SUCCESSORS:
        for first, second in zip(text, text[1:]):
            output = outputs[token(second)]
            outputs[token(second)] = [a + b for a, b in zip(output, rows[token(first)])]
    # What a block adds to the residual is nothing.
    for name, entry in weights.tensors.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            entry[2] = bytes(len(entry[2]))
        if name.endswith("norm.weight"):
            entry[2] = struct.pack("<f", 1.0) * HIDDEN
    for name, matrix in (("model.embed_tokens.weight", rows), ("lm_head.weight", outputs)):
        values = b"".join(struct.pack(f"<{HIDDEN}f", *row) for row in matrix)
        weights.tensors[name] = ["F32", [VOCABULARY, HIDDEN], values]
    weights.save()
    edit_json(folder / "config.json", tie_word_embeddings=False)
    (folder / "chat_template.jinja").write_text(template)
    return ["-m", str(folder), "--device", "cpu"]
