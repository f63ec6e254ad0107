#include "engine/text/tokenizer.h"

#include <algorithm>

#include "engine/text/sentencepiece_model.h"
#include "engine/text/tokenizer_parts.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/printable.h"

namespace tessera {

std::optional<TokenId> named_token(const Vocabulary& vocabulary, const char* key,
                                   const std::optional<std::string>& configured,
                                   const std::string& otherwise, const ModelFolder& folder) {
  const auto token = vocabulary.special_token(configured.value_or(otherwise));
  CHECK(token || !configured, folder.path,
        ": tokenizer_config.json or special_tokens_map.json names '", printable(*configured),
        "' as ", key, ", but the vocabulary has no such token");
  return token;
}

struct Tokenizer::Impl : TokenizerParts {
  const VocabularyToken& token(TokenId id) const;
};

const VocabularyToken& Tokenizer::Impl::token(TokenId id) const {
  CHECK(id >= 0 && static_cast<size_t>(id) < vocabulary.tokens.size(), "token ", id,
        " is outside the tokenizer's ", counted(vocabulary.tokens.size(), "token"));
  return vocabulary.tokens[static_cast<size_t>(id)];
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

namespace {

// The same vocabulary may be there in a form that can be read.
TokenizerParts load_json_or_name_other(const ModelFolder& folder) {
  try {
    return load_json_tokenizer(folder);
  } catch (const Error& error) {
    if (!file_exists(join_path(folder.path, "tokenizer.model"))) throw;
    throw Error(error.what(),
                concat(error.hint(), error.hint().empty() ? "" : "; ",
                       "--tokenizer tokenizer.model takes the folder's other tokenizer"),
                error.where());
  }
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const ModelFolder& folder) {
  CHECK(!folder.tokenizer_path.empty(), folder.path, ": no tokenizer");
  TokenizerParts parts = folder.tokenizer_path.ends_with(".json")
                             ? load_json_or_name_other(folder)
                             : load_sentencepiece_tokenizer(folder);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::make_unique<Impl>(std::move(parts))));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool at_start,
                                       const EncodeProgress& progress) const {
  const auto invalid = find_invalid_utf8(text, [&] {
    if (progress) progress(0, text.size());
  });
  CHECK(!invalid, "the text is not UTF-8 at byte ", invalid.value_or(0));
  std::vector<TokenId> tokens;
  if (!text.empty()) impl_->encoder->encode(text, at_start, progress, tokens);
  return tokens;
}

std::vector<TokenId> Tokenizer::encode_prompt(std::string_view text,
                                              const EncodeProgress& progress) const {
  std::vector<TokenId> tokens = encode(text, /*at_start=*/true, progress);
  tokens.insert(tokens.begin(), prompt_prefix().begin(), prompt_prefix().end());
  tokens.insert(tokens.end(), prompt_suffix().begin(), prompt_suffix().end());
  return tokens;
}

std::optional<int64_t> Tokenizer::max_token_bytes() const { return impl_->max_token_bytes; }

std::optional<TokenId> Tokenizer::special_token(std::string_view content) const {
  return impl_->vocabulary.special_token(content);
}

std::vector<std::string> Tokenizer::special_tokens() const {
  std::vector<std::string> contents;
  for (const auto& [content, token] : impl_->vocabulary.special_tokens) {
    if (!content.empty() && !impl_->token(token).is_text) contents.push_back(content);
  }
  std::ranges::sort(contents);
  return contents;
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
  std::string bytes = entry.bytes;
  if (!is_first || impl_->leading_space == LeadingSpace::kStays) return bytes;
  if (impl_->leading_space == LeadingSpace::kAllGo) {
    if (bytes.empty() || entry.piece.find(kPieceSpace) == std::string::npos) return bytes;
    bytes = entry.piece;  // whose other spaces stay
    for (size_t at; (at = bytes.find(kPieceSpace)) != std::string::npos;) {
      bytes.erase(at, kPieceSpace.size());
    }
    return bytes;
  }
  // Special and added tokens may begin with U+2581 without standing for a space.
  const bool goes = bytes.starts_with(' ') && (impl_->leading_space == LeadingSpace::kOneGoes ||
                                               entry.piece.starts_with(kPieceSpace));
  return goes ? bytes.substr(1) : bytes;
}

const std::string& Tokenizer::path() const { return impl_->path; }
bool Tokenizer::is_special(TokenId token) const { return impl_->token(token).is_special; }
bool Tokenizer::strips_left(TokenId token) const { return impl_->token(token).strips_left; }
bool Tokenizer::strips_right(TokenId token) const { return impl_->token(token).strips_right; }
std::string Tokenizer::piece(TokenId token) const { return impl_->token(token).piece; }
int64_t Tokenizer::size() const { return static_cast<int64_t>(impl_->vocabulary.tokens.size()); }
std::optional<TokenId> Tokenizer::bos_token() const { return impl_->bos_token; }
std::optional<TokenId> Tokenizer::eos_token() const { return impl_->eos_token; }
const std::vector<TokenId>& Tokenizer::prompt_prefix() const { return impl_->prompt_prefix; }
const std::vector<TokenId>& Tokenizer::prompt_suffix() const { return impl_->prompt_suffix; }

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
