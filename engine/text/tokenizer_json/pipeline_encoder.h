// tokenizer.json's pipeline from text to tokens.
#pragma once

#include <mutex>
#include <optional>
#include <tuple>
#include <variant>

#include "engine/text/text_encoder.h"
#include "engine/text/tokenizer_json/added_text.h"
#include "engine/text/tokenizer_json/bpe_model.h"
#include "engine/text/tokenizer_json/normalizer.h"
#include "engine/text/tokenizer_json/pre_tokenizer.h"
#include "engine/text/tokenizer_json/unigram_model.h"
#include "engine/text/tokenizer_json/word_cache.h"
#include "engine/text/vocabulary.h"
#include "model_loaders/tokenizer_json.h"

namespace tessera {

class PipelineEncoder final : public TextEncoder {
 public:
  // `vocabulary` has every id of the model.
  PipelineEncoder(const TokenizerJson& json, const Vocabulary& vocabulary);

  void encode(std::string_view text, bool at_start, const EncodeProgress& progress,
              std::vector<TokenId>& tokens) const override;

  // See Tokenizer::max_token_bytes.
  std::optional<int64_t> max_token_bytes() const;

 private:
  using Model = std::variant<BpeModel, UnigramModel>;
  struct Memory {
    std::tuple<BpeModel::Memory, UnigramModel::Memory> models;
    WordCache words;
  };
  // What encode() goes through a text with.
  struct Run;
  static Model make_model(const TokenizerJson& json, const Vocabulary& vocabulary,
                          bool is_byte_level);
  void read_added_text(const TokenizerJson& json, const Vocabulary& vocabulary);
  // Each goes through a smaller part: what is between added tokens of the text as it was given,
  // what is between those of the normalised text, a word, what of it may be encoded by itself.
  void encode_text(std::string_view text, bool at_start, Run& run) const;
  void encode_normalized(std::string_view text, size_t first_bytes, Run& run) const;
  template <typename EncodePart>
  static void for_each_part(const AddedText& added, std::string_view text, Run& run,
                            const EncodePart& encode_part);
  void encode_word(std::string_view word, Run& run) const;
  void encode_part(std::string_view part, Run& run) const;
  void encode_by_model(std::string_view part, Run& run) const;
  void encode_with(Memory& memory, std::string_view text, bool at_start,
                   const EncodeProgress& progress, std::vector<TokenId>& tokens) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Model model_;
  AddedText added_text_;             // looked for in the text as it was given
  AddedText normalized_added_text_;  // and in the normalised one
  size_t longest_added_bytes_ = 0;
  // Of whoever comes first; another thread at the same time makes its own.
  mutable std::mutex memory_mutex_;
  mutable Memory memory_;
};

}  // namespace tessera
