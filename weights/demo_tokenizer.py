#!/usr/bin/env python3
"""Writes the demo model's tokenizer.json: the SentencePiece model that training made, in the form that most
published models have.

  python3 weights/demo_tokenizer.py weights/demo_tokenizer.model weights/demo/tokenizer.json

SentencePiece joins the neighbours whose piece has the best score, wherever the two come from; tokenizer.json lists
the pairs themselves. Of the pairs that make one piece the order is free, as they make the same piece.
"""

import argparse
import json

import sentencepiece

SPACE = "\u2581"


def pairs_of(piece, ids):
    """The ways to join a piece from two."""
    halves = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
    return sorted((pair for pair in halves if pair[0] in ids and pair[1] in ids), key=lambda pair: (ids[pair[0]], ids[pair[1]]))


def tokenizer_json(processor):
    ids = {processor.id_to_piece(number): number for number in range(processor.get_piece_size())}
    is_text = {piece: not (processor.is_control(number) or processor.is_byte(number) or processor.is_unknown(number))
               for piece, number in ids.items()}
    text_ids = {piece: number for piece, number in ids.items() if is_text[piece]}
    special = [(number, piece) for piece, number in ids.items() if processor.is_control(number) or processor.is_unknown(number)]
    # Pieces that no pair makes are single characters; best score first.
    merges = [list(pair) for piece in sorted(text_ids, key=lambda piece: (-processor.get_score(ids[piece]), ids[piece]))
              for pair in pairs_of(piece, text_ids)]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": number, "content": piece, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for number, piece in sorted(special)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [ids["<s>"]], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": ids, "merges": merges}}


def write_tokenizer_json(processor, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tokenizer_json(processor), file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the SentencePiece model")
    parser.add_argument("output", help="where tokenizer.json goes")
    arguments = parser.parse_args()
    write_tokenizer_json(sentencepiece.SentencePieceProcessor(model_file=arguments.model), arguments.output)


if __name__ == "__main__":
    main()
