#include "engine/text/tokenizer_json/pipeline_encoder.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

constexpr size_t kProgressBytes = 4 << 10;
// Of a word: its merges take seconds, in which nothing can be interrupted.
constexpr size_t kMaxWordBytes = 4 << 20;

}  // namespace

PipelineEncoder::PipelineEncoder(const TokenizerJson& json, const Vocabulary& vocabulary)
    : normalizer_(json),
      pre_tokenizer_(json),
      model_(json, vocabulary, pre_tokenizer_.is_byte_level()) {}

void PipelineEncoder::encode_part(std::string_view part, Memory& memory,
                                  std::vector<TokenId>& tokens) const {
  if (part.size() > WordCache::kMaxWordBytes) {
    CHECK(part.size() <= kMaxWordBytes, "cannot tokenise more than ", kMaxWordBytes,
          " bytes in a row that cannot be divided, such as spaces or letters of one word");
    return model_.encode(part, memory.model, tokens);
  }
  WordCache::Entry& entry = memory.words.place_of(part);
  if (WordCache::holds(entry, part)) {
    tokens.insert(tokens.end(), entry.tokens.begin(), entry.tokens.begin() + entry.num_tokens);
    return;
  }
  const size_t before = tokens.size();
  model_.encode(part, memory.model, tokens);
  WordCache::keep(entry, part, std::span(tokens).subspan(before));
}

void PipelineEncoder::encode_word(std::string_view word, Memory& memory,
                                  std::vector<TokenId>& tokens) const {
  const TextChunker* const chunker = model_.chunker();
  if (chunker == nullptr) return encode_part(word, memory, tokens);
  while (!word.empty()) {
    const std::string_view part = chunker->first_chunk(word, 1);
    encode_part(part, memory, tokens);
    word.remove_prefix(part.size());
  }
}

void PipelineEncoder::encode_with(Memory& memory, std::string_view text, bool at_start,
                                  const EncodeProgress& progress,
                                  std::vector<TokenId>& tokens) const {
  std::string storage;
  const std::string_view normalized = normalizer_.apply(text, storage);
  size_t done_bytes = 0;
  size_t reported_bytes = 0;
  pre_tokenizer_.split(normalized, at_start, [&](std::string_view word) {
    encode_word(word, memory, tokens);
    done_bytes += word.size();
    if (!progress || done_bytes < reported_bytes + kProgressBytes) return;
    reported_bytes = done_bytes;
    // Of the normalised text, which may be longer.
    progress(std::min(done_bytes, text.size()), text.size());
  });
  if (progress) progress(text.size(), text.size());
}

void PipelineEncoder::encode(std::string_view text, bool at_start, const EncodeProgress& progress,
                             std::vector<TokenId>& tokens) const {
  tokens.reserve(text.size() / 3);
  const std::unique_lock lock(memory_mutex_, std::try_to_lock);
  if (lock.owns_lock()) return encode_with(memory_, text, at_start, progress, tokens);
  const auto own_memory = std::make_unique<Memory>();
  encode_with(*own_memory, text, at_start, progress, tokens);
}

std::optional<int64_t> PipelineEncoder::max_token_bytes() const {
  const auto longest = model_.max_token_bytes();
  const auto shrinking = normalizer_.max_shrinking();
  if (!longest || !shrinking || pre_tokenizer_.drops_text()) return std::nullopt;
  return *longest * *shrinking;
}

}  // namespace tessera
