#include <sentencepiece_processor.h>

#include "engine/text/sentencepiece_model.h"
#include "engine/text/sentencepiece_vocabulary.h"
#include "engine/text/text_chunker.h"
#include "engine/text/tokenizer_parts.h"
#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"

namespace tessera {
namespace {

// The library takes about 100 bytes of memory per byte of text and is fastest on a few kilobytes.
constexpr size_t kChunkBytes = 4 << 10;
// Of what cannot be divided: tokenising it takes 0.2 s, which a person can wait for Ctrl-C.
constexpr size_t kMaxChunkBytes = 1 << 20;

// Runs a function of the library. Its errors are a status, exceptions of its own trie, and those
// of protobuf.
template <typename Call>
void call_library(std::string_view what, Call call) {
  std::string problem;
  try {
    const sentencepiece::util::Status status = call();
    if (status.ok()) return;
    problem = status.ToString();
  } catch (const std::exception& exception) {
    problem = exception.what();
  } catch (...) {
    problem = "unknown exception";
  }
  throw Error(concat(what, ": SentencePiece reports: ", problem));
}

// `text` without spaces at its ends and with one for several. As to the library, which has written
// all spaces as U+2581 by then, a U+2581 at the end is a space whoever wrote it.
std::string without_extra_spaces(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char character : text) {
    if (character == ' ' && (result.empty() || result.back() == ' ')) continue;
    result += character;
  }
  while (result.ends_with(' ') || result.ends_with(kPieceSpace)) {
    result.resize(result.size() - (result.ends_with(' ') ? 1 : kPieceSpace.size()));
  }
  return result;
}

std::optional<int64_t> longest_token_bytes(const SentencePieceModel& model) {
  if (!model.has_byte_fallback || model.removes_extra_whitespace) return std::nullopt;
  size_t longest = 1;  // of byte pieces
  for (const SentencePiece& piece : model.pieces) {
    const bool matches_text =
        piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined;
    if (matches_text) longest = std::max(longest, piece.text.size());
  }
  return static_cast<int64_t>(longest);
}

class SentencePieceEncoder final : public TextEncoder {
 public:
  SentencePieceEncoder(const SentencePieceModel& model, const ModelFolder& folder);

  void encode(std::string_view text, bool at_start, const EncodeProgress& progress,
              std::vector<TokenId>& tokens) const override;

 private:
  // Appends the tokens of a chunk.
  void encode_chunk(std::string_view chunk, std::vector<TokenId>& tokens) const;

  sentencepiece::SentencePieceProcessor processor_;
  TextChunker chunker_;
  TokenId unknown_token_ = 0;
  bool adds_prefix_ = false;  // a space in front of the first text
  bool adds_prefix_to_every_text_ = false;
  bool removes_extra_spaces_ = false;
};

bool adds_prefix(const SentencePieceModel& model, const ModelFolder& folder) {
  return folder.tokenizer.add_prefix_space.value_or(model.adds_dummy_prefix);
}

SentencePieceEncoder::SentencePieceEncoder(const SentencePieceModel& model,
                                           const ModelFolder& folder)
    : chunker_(model) {
  const std::string proto = serialize(model);
  call_library(folder.tokenizer_path, [&] { return processor_.LoadFromSerializedProto(proto); });
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].type == PieceType::kUnknown) unknown_token_ = static_cast<TokenId>(i);
  }
  adds_prefix_ = adds_prefix(model, folder);
  // Hugging Face's default: configurations older than the key mean the older convention.
  adds_prefix_to_every_text_ = adds_prefix_ && folder.tokenizer.legacy.value_or(true);
  removes_extra_spaces_ = model.removes_extra_whitespace;
}

void SentencePieceEncoder::encode_chunk(std::string_view chunk,
                                        std::vector<TokenId>& tokens) const {
  CHECK(chunk.size() <= kMaxChunkBytes, "cannot tokenise more than ", kMaxChunkBytes,
        " bytes in a row that cannot be divided, such as spaces or letters of one word");
  std::vector<TokenId> chunk_tokens;
  call_library("tokenising failed", [&] { return processor_.Encode(chunk, &chunk_tokens); });
  auto begin = chunk_tokens.begin();
  // The library makes one token of neighbouring unknown characters.
  if (begin != chunk_tokens.end() && *begin == unknown_token_ && !tokens.empty() &&
      tokens.back() == unknown_token_) {
    ++begin;
  }
  tokens.insert(tokens.end(), begin, chunk_tokens.end());
}

void SentencePieceEncoder::encode(std::string_view text, bool at_start,
                                  const EncodeProgress& progress,
                                  std::vector<TokenId>& tokens) const {
  std::string normalized;
  if (removes_extra_spaces_) text = normalized = without_extra_spaces(text);
  if (text.empty()) return;
  tokens.reserve(text.size() / 3);
  const size_t total_bytes = text.size();
  const auto encode_next = [&](std::string_view prefix) {
    const std::string_view chunk = chunker_.first_chunk(text, kChunkBytes, kMaxChunkBytes);
    encode_chunk(std::string(prefix) += chunk, tokens);
    text.remove_prefix(chunk.size());
    if (progress) progress(total_bytes - text.size(), total_bytes);
  };
  if (adds_prefix_to_every_text_ || (adds_prefix_ && at_start)) encode_next(kPieceSpace);
  while (!text.empty()) encode_next("");
}

}  // namespace

TokenizerParts load_sentencepiece_tokenizer(const ModelFolder& folder) {
  const std::string& path = folder.tokenizer_path;
  SentencePieceModel model =
      parse_sentencepiece_model(read_whole_file(path, kMaxSentencePieceModelBytes), path);
  CHECK(static_cast<int64_t>(model.pieces.size()) <= folder.config.vocab_size, path, ": ",
        counted(model.pieces.size(), "piece"), ", but config.json has vocab_size ",
        folder.config.vocab_size);
  mark_special_pieces(model, folder);
  TokenizerParts parts = {.path = path, .vocabulary = make_vocabulary(model, folder)};
  parts.encoder = std::make_unique<SentencePieceEncoder>(model, folder);
  if (adds_prefix(model, folder)) parts.leading_space = LeadingSpace::kPrefixGoes;
  parts.max_token_bytes = longest_token_bytes(model);
  const TokenizerConfig& config = folder.tokenizer;
  parts.bos_token =
      named_token(parts.vocabulary, "bos_token", config.bos_token, model.bos_piece, folder);
  parts.eos_token =
      named_token(parts.vocabulary, "eos_token", config.eos_token, model.eos_piece, folder);
  if (parts.bos_token && config.add_bos_token.value_or(true)) {
    parts.prompt_prefix = {*parts.bos_token};
  }
  if (parts.eos_token && config.add_eos_token.value_or(false)) {
    parts.prompt_suffix = {*parts.eos_token};
  }
  return parts;
}

}  // namespace tessera
