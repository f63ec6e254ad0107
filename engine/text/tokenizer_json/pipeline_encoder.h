// tokenizer.json's pipeline from text to tokens.
#pragma once

#include <mutex>
#include <optional>

#include "engine/text/text_encoder.h"
#include "engine/text/tokenizer_json/bpe_model.h"
#include "engine/text/tokenizer_json/normalizer.h"
#include "engine/text/tokenizer_json/pre_tokenizer.h"
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
  struct Memory {
    BpeModel::Memory model;
    WordCache words;
  };
  void encode_word(std::string_view word, Memory& memory, std::vector<TokenId>& tokens) const;
  void encode_part(std::string_view part, Memory& memory, std::vector<TokenId>& tokens) const;
  void encode_with(Memory& memory, std::string_view text, bool at_start,
                   const EncodeProgress& progress, std::vector<TokenId>& tokens) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  BpeModel model_;
  // Of whoever comes first; another thread at the same time makes its own.
  mutable std::mutex memory_mutex_;
  mutable Memory memory_;
};

}  // namespace tessera
