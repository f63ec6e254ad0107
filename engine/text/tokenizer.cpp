#include "engine/text/tokenizer.h"

#include <sentencepiece_processor.h>

#include "engine/text/sentencepiece_model.h"
#include "engine/text/text_chunker.h"
#include "engine/text/utf8.h"
#include "engine/text/vocabulary.h"
#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/printable.h"

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

// `text` without spaces at its ends and with one for several.
std::string without_extra_spaces(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char character : text) {
    if (character == ' ' && (result.empty() || result.back() == ' ')) continue;
    result += character;
  }
  if (result.ends_with(' ')) result.pop_back();
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

std::string read_tokenizer_model(const ModelFolder& folder) {
  CHECK(!folder.tokenizer_model_path.empty(), folder.path, ": no tokenizer.model");
  return read_whole_file(folder.tokenizer_model_path, kMaxSentencePieceModelBytes);
}

}  // namespace

struct Tokenizer::Impl {
  Impl(SentencePieceModel model, const ModelFolder& folder);

  // Appends the tokens of a chunk.
  void encode_chunk(std::string_view chunk, std::vector<TokenId>& tokens) const;
  const VocabularyToken& token(TokenId id) const;
  // A token that the folder's files name, which must exist, else the model's own, if any.
  std::optional<TokenId> named_token(const char* key, const std::optional<std::string>& configured,
                                     const std::string& piece, const ModelFolder& folder) const;

  std::string path;
  sentencepiece::SentencePieceProcessor processor;
  Vocabulary vocabulary;
  TextChunker chunker;
  TokenId unknown_token = 0;
  bool adds_prefix = false;  // a space in front of the first text
  bool adds_prefix_to_every_text = false;
  bool removes_extra_spaces = false;
  bool adds_bos_token = false;
  std::optional<int64_t> max_token_bytes;
  std::optional<TokenId> bos_token;
  std::optional<TokenId> eos_token;
};

Tokenizer::Impl::Impl(SentencePieceModel model, const ModelFolder& folder)
    : path(folder.tokenizer_model_path),
      vocabulary(make_vocabulary(model, folder)),
      chunker(model) {
  const TokenizerConfig& config = folder.tokenizer;
  const std::string proto = serialize(model);
  call_library(folder.tokenizer_model_path,
               [&] { return processor.LoadFromSerializedProto(proto); });
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].type == PieceType::kUnknown) unknown_token = static_cast<TokenId>(i);
  }
  adds_prefix = config.add_prefix_space.value_or(model.adds_dummy_prefix);
  // Hugging Face's default: configurations older than the key mean the older convention.
  adds_prefix_to_every_text = adds_prefix && config.legacy.value_or(true);
  removes_extra_spaces = model.removes_extra_whitespace;
  bos_token = named_token("bos_token", config.bos_token, model.bos_piece, folder);
  eos_token = named_token("eos_token", config.eos_token, model.eos_piece, folder);
  max_token_bytes = longest_token_bytes(model);
  adds_bos_token = bos_token && config.add_bos_token.value_or(true);
}

void Tokenizer::Impl::encode_chunk(std::string_view chunk, std::vector<TokenId>& tokens) const {
  CHECK(chunk.size() <= kMaxChunkBytes, "cannot tokenise more than ", kMaxChunkBytes,
        " bytes in a row that cannot be divided, such as spaces or letters of one word");
  std::vector<TokenId> chunk_tokens;
  call_library("tokenising failed", [&] { return processor.Encode(chunk, &chunk_tokens); });
  auto begin = chunk_tokens.begin();
  // The library makes one token of neighbouring unknown characters.
  if (begin != chunk_tokens.end() && *begin == unknown_token && !tokens.empty() &&
      tokens.back() == unknown_token) {
    ++begin;
  }
  tokens.insert(tokens.end(), begin, chunk_tokens.end());
}

const VocabularyToken& Tokenizer::Impl::token(TokenId id) const {
  CHECK(id >= 0 && static_cast<size_t>(id) < vocabulary.tokens.size(), "token ", id,
        " is outside the tokenizer's ", counted(vocabulary.tokens.size(), "token"));
  return vocabulary.tokens[static_cast<size_t>(id)];
}

std::optional<TokenId> Tokenizer::Impl::named_token(const char* key,
                                                    const std::optional<std::string>& configured,
                                                    const std::string& piece,
                                                    const ModelFolder& folder) const {
  const auto token = vocabulary.special_token(configured.value_or(piece));
  CHECK(token || !configured, folder.path,
        ": tokenizer_config.json or special_tokens_map.json names '", printable(*configured),
        "' as ", key, ", but the vocabulary has no such token");
  return token;
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::load(const ModelFolder& folder) {
  const std::string& path = folder.tokenizer_model_path;
  SentencePieceModel model = parse_sentencepiece_model(read_tokenizer_model(folder), path);
  CHECK(static_cast<int64_t>(model.pieces.size()) <= folder.config.vocab_size, path, ": ",
        counted(model.pieces.size(), "piece"), ", but config.json has vocab_size ",
        folder.config.vocab_size);
  mark_special_pieces(model, folder);
  return std::unique_ptr<Tokenizer>(
      new Tokenizer(std::make_unique<Impl>(std::move(model), folder)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool at_start,
                                       const EncodeProgress& progress) const {
  const auto invalid = find_invalid_utf8(text);
  CHECK(!invalid, "the text is not UTF-8 at byte ", invalid.value_or(0));
  std::string normalized;
  if (impl_->removes_extra_spaces) text = normalized = without_extra_spaces(text);
  std::vector<TokenId> tokens;
  if (text.empty()) return tokens;
  tokens.reserve(text.size() / 3);
  const size_t total_bytes = text.size();
  const auto encode_next = [&](std::string_view prefix) {
    const std::string_view chunk = impl_->chunker.first_chunk(text, kChunkBytes, kMaxChunkBytes);
    impl_->encode_chunk(std::string(prefix) += chunk, tokens);
    text.remove_prefix(chunk.size());
    if (progress) progress(total_bytes - text.size(), total_bytes);
  };
  if (impl_->adds_prefix_to_every_text || (impl_->adds_prefix && at_start)) {
    encode_next(kPieceSpace);
  }
  while (!text.empty()) encode_next("");
  return tokens;
}

std::optional<int64_t> Tokenizer::max_token_bytes() const { return impl_->max_token_bytes; }

std::optional<TokenId> Tokenizer::special_token(std::string_view content) const {
  return impl_->vocabulary.special_token(content);
}

std::string Tokenizer::decode(const std::vector<TokenId>& tokens) const {
  std::string bytes;
  bool is_first = true;
  for (const TokenId token : tokens) {
    bytes += token_bytes(token, is_first);
    is_first = is_first && is_special(token);
  }
  return replace_invalid_utf8(bytes);
}

std::string Tokenizer::token_bytes(TokenId token, bool is_first) const {
  const VocabularyToken& entry = impl_->token(token);
  // Special and added tokens may begin with U+2581 without standing for a space.
  const bool has_prefix = is_first && impl_->adds_prefix && entry.bytes.starts_with(' ') &&
                          entry.piece.starts_with(kPieceSpace);
  return has_prefix ? entry.bytes.substr(1) : entry.bytes;
}

const std::string& Tokenizer::path() const { return impl_->path; }
bool Tokenizer::is_special(TokenId token) const { return impl_->token(token).is_special; }
bool Tokenizer::strips_left(TokenId token) const { return impl_->token(token).strips_left; }
bool Tokenizer::strips_right(TokenId token) const { return impl_->token(token).strips_right; }
std::string Tokenizer::piece(TokenId token) const { return impl_->token(token).piece; }
int64_t Tokenizer::size() const { return static_cast<int64_t>(impl_->vocabulary.tokens.size()); }
std::optional<TokenId> Tokenizer::bos_token() const { return impl_->bos_token; }
std::optional<TokenId> Tokenizer::eos_token() const { return impl_->eos_token; }
bool Tokenizer::adds_bos_token() const { return impl_->adds_bos_token; }

std::string TextStream::append(TokenId token) {
  pending_ += tokenizer_.token_bytes(token, is_first_);
  is_first_ = is_first_ && tokenizer_.is_special(token);
  const size_t complete = complete_utf8_prefix(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string TextStream::finish() {
  const std::string text = replace_invalid_utf8(pending_);
  pending_.clear();
  return text;
}

}  // namespace tessera
