#!/usr/bin/env python3
"""Makes the small tokenizer.json files of data/tokenizers and what Hugging Face's library makes of
tricky strings with them.

    make_tokenizers.py [DATA_FOLDER]      needs the package tokenizers (0.23)

Each file has the pipeline of a family of models, trained on text written here. Text in the expected
ids never contains an added token: that no text becomes one is another test's affair.
"""

import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
TEKKEN = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}|" + TAIL)
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENGLISH}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENGLISH}"
         r"|\p{N}{1,3}|" + TAIL)
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
            r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]

WORDS = """the a of and to in is it that was for on with as at by be this have from or had not but what all
were when we there can an your which their said if do will each about how up out them then she many some so
these would other into has more her two like him see time could no make than first been its who now people
my made over did down only way find use may water long little very after words called just where most know
I'll don't we're you've she'd it's He Paris London 1999 2024 3.14 12345 été naïve façade Straße Ελλάδα мир
дом снег 你好 世界 語言 日本 カタカナ ひらがな 한국어 עברית العربية ไทย हिन्दी 😀 👍🏽 🇩🇪 ∑ ∫ → « » … — ≤ def return for(i=0;
x+=1) {"key": [1, 2]} <div> </div> C++ Wi-Fi e-mail HTTPServer snake_case camelCase ABC""".split()


def corpus(seed, lines):
    rng = random.Random(seed)
    for _ in range(lines):
        words = rng.choices(WORDS, k=rng.randint(3, 14))
        yield rng.choice(["", "  ", "\t", "    "]) + " ".join(words) + rng.choice([".", "!\n", "\n\n", "?\r\n", ""])


def byte_level(pre_tokenizer, normalizer=None, prefix=None):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(corpus(1, 3000), trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=alphabet, show_progress=False))  # fmt: skip
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    if prefix:
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{prefix} $A", special_tokens=[
                (prefix, tokenizer.token_to_id(prefix))])])  # fmt: skip
    return json.loads(tokenizer.to_str())


def split(*patterns):
    steps = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                                     use_regex=False)])  # fmt: skip


def sentencepiece_like(normalizer, pre_tokenizer, decoder):
    """Trained on words, as SentencePiece is, though the file divides no text."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"]
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(corpus(2, 3000), trainers.BpeTrainer(
        vocab_size=1000, special_tokens=special + byte_tokens, limit_alphabet=120,
        show_progress=False))  # fmt: skip
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])
    result = json.loads(tokenizer.to_str())
    result["added_tokens"] = [token for token in result["added_tokens"] if token["content"] in special]
    result.update(normalizer=normalizer, pre_tokenizer=pre_tokenizer, decoder=decoder)
    return result


SPACE = "▁"
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
TO_SPACE = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
FALLBACK = [TO_SPACE, {"type": "ByteFallback"}, {"type": "Fuse"}]
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def unigram(normalizer, pre_tokenizer, decoder, has_bytes=False):
    """Of a trainer that sees words, whose scores are those of the model."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(corpus(3, 3000), trainers.UnigramTrainer(
        vocab_size=700, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False))  # fmt: skip
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)])
    result = json.loads(tokenizer.to_str())
    if has_bytes:
        result["model"]["byte_fallback"] = True
        result["model"]["vocab"] += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    result.update(normalizer=normalizer, pre_tokenizer=pre_tokenizer, decoder=decoder)
    return result


def sequence(kind, steps):
    return {"type": "Sequence", kind: steps}


def with_joined_merges(result):
    """As versions before 0.20 wrote them."""
    result["model"]["merges"] = [" ".join(pair) for pair in result["model"]["merges"]]
    return result


def with_flags(result, **flags):
    result["model"].update(flags)
    return result


def with_added_text(result):
    """With pieces that are looked for before the pipeline begins, some in the text as it is."""
    vocabulary = result["model"]["vocab"]
    for content, normalized in [(2 * SPACE, True), (3 * SPACE, True), (7 * SPACE, True), ("\n\n", False),
                                ("\n\n\n", False), ("<table>", False), ("<table> 1", True), ("<t", False),
                                ("e\u0301", True), ("中", False), (SPACE + "the", False)]:  # fmt: skip
        token = vocabulary.setdefault(content, len(vocabulary))
        result["added_tokens"].append({"id": token, "content": content, "single_word": False, "lstrip": False,
                                       "rstrip": False, "normalized": normalized, "special": False})  # fmt: skip
    return result


def added_text(result):
    """What added_tokens has that is text like any other: no part of templates."""
    return [token["content"] for token in result["added_tokens"]
            if not token["special"] and token["content"] in result["model"]["vocab"]]  # fmt: skip


def without_template_tokens(result):
    """For the library to read text as it is read here, where none becomes a token of templates. Texts
    have no token of files with an unknown one, which decoding leaves out."""
    if result["model"]["type"] == "Unigram" or result["model"]["unk_token"] is not None:
        return result
    contents = added_text(result)
    return {**result, "added_tokens": [token for token in result["added_tokens"]
                                       if token["content"] in contents]}  # fmt: skip


def mixed_with(contents, rng, text):
    """`text` with some of `contents` at random places, unless there are none."""
    for _ in range(rng.randint(0, 5) if contents else 0):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(contents).replace(SPACE, rng.choice([" ", SPACE])) + text[at:]
    return text


def make_all():
    byte_level_alone = pre_tokenizers.ByteLevel(add_prefix_space=False)
    yield "gpt2", with_joined_merges(byte_level(byte_level_alone))
    yield "gpt2-prefix", byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))
    llama3 = byte_level(split(LLAMA3), prefix="<|begin|>")
    yield "llama3", with_flags(llama3, ignore_merges=True)
    yield "qwen2", byte_level(split(QWEN2), normalizers.NFC())
    yield "tekken", with_flags(byte_level(split(TEKKEN)), ignore_merges=True)
    yield "o200k", byte_level(split(O200K))
    yield "deepseek", byte_level(split(*DEEPSEEK), prefix="<|begin|>")
    yield "cohere", byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), byte_level_alone]), normalizers.NFC())  # fmt: skip
    yield "falcon3", byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), byte_level_alone, pre_tokenizers.Digits(False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))  # fmt: skip
    prepend = sequence("normalizers", [{"type": "Prepend", "prepend": SPACE}, REPLACE])
    yield "llama2", sentencepiece_like(prepend, None, sequence("decoders", [*FALLBACK, STRIP]))
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}
    yield "metaspace", sentencepiece_like(None, metaspace, sequence("decoders", [*FALLBACK, STRIP]))
    gemma = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
             "invert": False}  # fmt: skip
    yield "gemma", sentencepiece_like(REPLACE, gemma, sequence("decoders", FALLBACK))
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    always = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    yield "unigram", unigram(sequence("normalizers", [{"type": "NFKC"}, strip, spaces]), always, always)
    yield "unigram-bytes", unigram(prepend, None, sequence("decoders", [*FALLBACK, STRIP]), True)
    yield "unigram-lower", unigram(
        sequence("normalizers", [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]),
        sequence("pretokenizers", [{"type": "WhitespaceSplit"}, always]), always)  # fmt: skip
    yield "gemma-added", with_added_text(sentencepiece_like(REPLACE, gemma, sequence("decoders", FALLBACK)))


SPACES = " \t\n\r\v\f\u0085\u00a0\u1680\u180e\u2000\u2009\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
ODD = "ſİıßǅʰªº²½Ⅷ٣०๓\u0301\u0308\u093f\u20e3\u200d\ufe0f👩🏽🚀🇩é가각\u1100\u1161\u11a8Å\u212b豈\ue000\ufffd\U0010ffff\x00\x01\x7f<0x0A>▁Ġ'"


def assigned(rng):
    """A code point that Unicode 14 knows, so that all libraries agree on its category."""
    import unicodedata
    while True:
        code = rng.choice([rng.randrange(0x300), rng.randrange(0x3000), rng.randrange(0x10000),
                           rng.randrange(0x20000)])  # fmt: skip
        if not 0xD800 <= code < 0xE000 and unicodedata.category(chr(code)) != "Cn":
            return chr(code)


def random_text(rng):
    """One of six kinds of text, named."""
    kind = rng.choice(["words", "spaces", "odd", "any", "runs", "mixed"])
    pick = {
        "words": lambda: rng.choice(WORDS) + rng.choice([" ", "  ", "", "\n"]),
        "spaces": lambda: rng.choice(SPACES) * rng.randint(1, 4) + rng.choice(["", "a", "1", "."]),
        "odd": lambda: rng.choice(ODD),
        "any": lambda: assigned(rng),
        "runs": lambda: rng.choice(WORDS + list(SPACES) + list(ODD)) * rng.randint(1, 40),
    }
    if kind == "mixed":
        text = "".join(pick[rng.choice(list(pick))]() for _ in range(rng.randint(0, 12)))
    else:
        text = "".join(pick[kind]() for _ in range(rng.randint(0, 12 if kind != "runs" else 3)))
    return kind, text


def expectations(result, count):
    tokenizer = Tokenizer.from_str(json.dumps(without_template_tokens(result)))
    rng = random.Random(7)
    texts = ["", " ", "a", "Hello, world!", "  two  spaces ", "I'LL don'T", "12345678", "\n\n\n", "e\u0301"]
    while len(texts) < count:
        texts.append(mixed_with(added_text(result), rng, random_text(rng)[1][:60]))
    for text in dict.fromkeys(texts):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        yield {"text": text, "ids": ids, "decoded": tokenizer.decode(ids)}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "data")
    folder.mkdir(parents=True, exist_ok=True)
    for name, result in make_all():
        (folder / f"{name}.json").write_text(json.dumps(result, ensure_ascii=False, separators=(",", ":")))
        lines = [json.dumps(line) for line in expectations(result, 250)]
        (folder / f"{name}.expected.jsonl").write_text("\n".join(lines) + "\n")
        print(name, len(result["model"]["vocab"]), (folder / f"{name}.json").stat().st_size, len(lines))


if __name__ == "__main__":
    main()
