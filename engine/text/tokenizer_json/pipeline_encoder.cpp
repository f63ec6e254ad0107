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
      model_(make_model(json, vocabulary, pre_tokenizer_.is_byte_level())) {
  read_added_text(json, vocabulary);
}

PipelineEncoder::Model PipelineEncoder::make_model(const TokenizerJson& json,
                                                   const Vocabulary& vocabulary,
                                                   bool is_byte_level) {
  if (json.model.kind == TokenizerModel::Kind::kBytePairs) {
    return BpeModel(json, vocabulary, is_byte_level);
  }
  CHECK(!is_byte_level, json.path, ": model.type is Unigram behind a pre_tokenizer of bytes, ",
        "which is not supported");
  return UnigramModel(json, vocabulary);
}

void PipelineEncoder::read_added_text(const TokenizerJson& json, const Vocabulary& vocabulary) {
  for (const AddedToken& token : json.added_tokens) {
    const auto id = static_cast<size_t>(token.id);
    if (id >= vocabulary.tokens.size() || !vocabulary.tokens[id].is_text) continue;
    longest_added_bytes_ = std::max(longest_added_bytes_, token.content.size());
    std::string storage;
    if (token.normalized) {
      const auto no_pause = [] {};
      const std::string_view content = normalizer_.apply(token.content, no_pause, storage).text;
      if (!content.empty()) normalized_added_text_.add(content, static_cast<TokenId>(id));
    } else {
      added_text_.add(token.content, static_cast<TokenId>(id));
    }
  }
}

struct PipelineEncoder::Run {
  Memory& memory;
  std::vector<TokenId>& tokens;
  const EncodeProgress& progress;
  size_t total_bytes = 0;     // of the text as it was given
  size_t done_bytes = 0;      // of the normalised text, which may be longer
  size_t reported_bytes = 0;  // of these
  // Long work on a word calls it. Made once: it may be asked for with every word.
  Pause pause = [this] { report(); };

  void report() {
    if (progress) progress(std::min(done_bytes, total_bytes), total_bytes);
    reported_bytes = done_bytes;
  }
  void add_done(size_t bytes) {
    done_bytes += bytes;
    if (done_bytes >= reported_bytes + kProgressBytes) report();
  }
};

// Adds the tokens of `added` that `text` has, and calls encode_part(part, where it begins) for what
// is between them.
template <typename EncodePart>
void PipelineEncoder::for_each_part(const AddedText& added, std::string_view text, Run& run,
                                    const EncodePart& encode_part) {
  size_t done = 0;
  while (const auto match = added.find(text, done)) {
    const size_t begin = match->span.begin;
    if (begin > done) encode_part(text.substr(done, begin - done), done);
    run.tokens.push_back(match->token);
    done = match->span.end;
    run.add_done(match->span.end - begin);
  }
  if (done < text.size()) encode_part(text.substr(done), done);
}

void PipelineEncoder::encode_by_model(std::string_view part, Run& run) const {
  std::visit(
      [&]<typename WordModel>(const WordModel& model) {
        auto& memory = std::get<typename WordModel::Memory>(run.memory.models);
        model.encode(part, run.pause, memory, run.tokens);
      },
      model_);
}

void PipelineEncoder::encode_part(std::string_view part, Run& run) const {
  Memory& memory = run.memory;
  if (part.size() > WordCache::kMaxWordBytes) {
    CHECK(part.size() <= kMaxWordBytes, "cannot tokenise more than ", kMaxWordBytes,
          " bytes in a row that cannot be divided, such as spaces or letters of one word");
    return encode_by_model(part, run);
  }
  const WordCache::Key key(part);
  WordCache::Entry& entry = memory.words.place_of(key);
  if (entry.holds(key)) {
    for (size_t i = 0; i < entry.num_tokens; ++i) run.tokens.push_back(entry.tokens[i]);
    return;
  }
  const size_t before = run.tokens.size();
  encode_by_model(part, run);
  entry.keep(key, std::span(run.tokens).subspan(before));
}

void PipelineEncoder::encode_word(std::string_view word, Run& run) const {
  // The sums of a unigram model's scores depend on where they begin.
  const auto* const byte_pairs = std::get_if<BpeModel>(&model_);
  const TextChunker* const chunker = byte_pairs == nullptr ? nullptr : byte_pairs->chunker();
  while (!word.empty()) {
    const std::string_view part = chunker == nullptr ? word : chunker->first_chunk(word, 1);
    encode_part(part, run);
    run.add_done(part.size());
    word.remove_prefix(part.size());
  }
}

void PipelineEncoder::encode_normalized(std::string_view text, size_t first_bytes, Run& run) const {
  pre_tokenizer_.split(text, first_bytes, run.pause,
                       [&](std::string_view word) { encode_word(word, run); });
}

void PipelineEncoder::encode_text(std::string_view text, bool at_start, Run& run) const {
  std::string storage;
  const Normalized normalized = normalizer_.apply(text, run.pause, storage);
  // The library asks where a part began in the text as it was given.
  const size_t first_bytes = at_start ? normalized.first_bytes : 0;
  for_each_part(normalized_added_text_, normalized.text, run,
                [&](std::string_view part, size_t begin) {
                  encode_normalized(part, rest_of_first(first_bytes, begin), run);
                });
}

void PipelineEncoder::encode_with(Memory& memory, std::string_view text, bool at_start,
                                  const EncodeProgress& progress,
                                  std::vector<TokenId>& tokens) const {
  Run run = {.memory = memory, .tokens = tokens, .progress = progress, .total_bytes = text.size()};
  for_each_part(added_text_, text, run, [&](std::string_view part, size_t begin) {
    encode_text(part, at_start && begin == 0, run);
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
  const auto longest =
      std::visit([](const auto& model) { return model.max_token_bytes(); }, model_);
  const auto shrinking = normalizer_.max_shrinking();
  if (!longest || !shrinking || pre_tokenizer_.drops_text()) return std::nullopt;
  return std::max(*longest, static_cast<int64_t>(longest_added_bytes_)) * *shrinking;
}

}  // namespace tessera
