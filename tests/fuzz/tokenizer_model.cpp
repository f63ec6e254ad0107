// tokenizer.model: our reader, and SentencePiece with what the reader lets through.
#include <algorithm>

#include "engine/text/sentencepiece_model.h"
#include "tests/engine/text/sentencepiece_damages.h"
#include "tests/fuzz/encoded_text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/oracle.h"

namespace tessera {
namespace {

constexpr std::string_view kTexts[] = {"hello world", " <s>he</s>  llo<unk>é\n▁", "<0x0A><|user|>"};

// serialize() renames control pieces; a second time it finds nothing to rename.
void check_serialized(const SentencePieceModel& model) {
  const auto is_renamed = [](const SentencePiece& piece) {
    return piece.type != PieceType::kControl && piece.text.starts_with("<control ");
  };
  if (std::ranges::any_of(model.pieces, is_renamed)) return;  // might now be there twice
  const std::string proto = serialize(model);
  require(serialize(parse_sentencepiece_model(proto, "tokenizer.model")) == proto,
          "a serialised model reads the same");
}

void read(std::string_view bytes) {
  static const MemoryFolder file("tokenizer.model");
  check_serialized(parse_sentencepiece_model(bytes, "tokenizer.model"));
  check_tokenizer(file, bytes, kTexts);
}

SentencePieceBuilder few_pieces(uint64_t model_type) {
  SentencePieceBuilder builder;
  builder.model_type = model_type;
  builder.has_byte_fallback = false;
  builder.add("<unk>", PieceType::kUnknown);
  builder.add("<s>", PieceType::kControl);
  builder.add("</s>", PieceType::kControl);
  builder.add("<|user|>", PieceType::kUserDefined);
  builder.add("▁unused", PieceType::kUnused);
  builder.add_merges({"h", "e", "l", "o", "▁", "he", "ll", "llo", "▁w", "é"});
  return builder;
}

std::string unknown_piece_like_a_space() {
  SentencePieceBuilder builder = few_pieces(1);
  builder.pieces[0].text = "▁?";
  return builder.build();
}

std::vector<std::string> seeds() {
  std::vector<std::string> seeds = {small_model().build(), few_pieces(1).build(),
                                    few_pieces(2).build(), unknown_piece_like_a_space()};
  for (const Damage& damage : kDamages) {
    SentencePieceBuilder builder = small_model();
    damage.apply(builder);
    std::string bytes = builder.build();
    if (bytes.size() <= seeds.front().size() + 1024) seeds.push_back(std::move(bytes));
  }
  return seeds;
}

}  // namespace

FuzzTarget tokenizer_model_target() {
  return {.name = "tokenizer_model",
          .read = read,
          .seeds = seeds(),
          .dictionary = {"<unk>", "<s>", "</s>", "<0x0A>", "<0xFF>", "▁", "hello", "\xC3",
                         "\xED\xA0\x80", SentencePieceBuilder::piece_message({"▁▁", 1e30f, 1}),
                         SentencePieceBuilder::piece_message({"x", -0.0f, 4}),
                         std::string("\x18\x02", 2), std::string("\x98\x02\x01", 3),
                         std::string("\x15\x00\x00\x80\x7F", 5)},
          .max_bytes = 8192};
}

}  // namespace tessera
