// Makes a tokenizer of a tokenizer.json or a tekken.json.
#include <algorithm>

#include "engine/text/tokenizer_json/pipeline_encoder.h"
#include "engine/text/tokenizer_json/token_decoder.h"
#include "engine/text/tokenizer_json/unicode_text.h"
#include "engine/text/tokenizer_parts.h"
#include "kernels/tensor/check.h"
#include "model_loaders/foreign_format.h"
#include "model_loaders/printable.h"
#include "model_loaders/tekken_json.h"

namespace tessera {
namespace {

bool is_white_space(std::string_view text) {
  return stripped(text, /*left=*/true, /*right=*/false).empty();
}

void add_entries(const TokenizerJson& json, const TokenDecoder& decoder, int64_t vocab_size,
                 Vocabulary& vocabulary) {
  std::vector<VocabularyToken>& tokens = vocabulary.tokens;
  tokens.resize(json.model.vocabulary.size());
  std::vector<bool> is_defined(tokens.size());
  for (const auto& [piece, id] : json.model.vocabulary) {
    CHECK(id < vocab_size, json.path, ": model.vocab: ", printable(piece), " has the id ", id,
          ", but config.json has vocab_size ", vocab_size);
    const auto index = static_cast<size_t>(id);
    if (index >= tokens.size()) {
      tokens.resize(index + 1);
      is_defined.resize(index + 1);
    }
    CHECK(!is_defined[index], json.path, ": model.vocab: ", printable(piece), " has the id ", id,
          ", as ", printable(tokens[index].piece), " has");
    is_defined[index] = true;
    tokens[index] = {.piece = std::string(piece), .bytes = decoder.bytes_of(piece)};
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!is_defined[i]) tokens[i] = {.piece = concat("<undefined ", i, ">"), .is_special = true};
  }
}

// Marks pieces of the vocabulary that are no more than text, and runs of white space, which some
// files list beside it. What else lies outside it or is special, such as "<think>", belongs to
// templates, and what takes the white space around it is meant to be.
void mark_added_text(const TokenizerJson& json, Vocabulary& vocabulary) {
  std::vector<bool> is_piece(vocabulary.tokens.size());
  for (const VocabularyEntry& entry : json.model.vocabulary) {
    is_piece[static_cast<size_t>(entry.id)] = true;
  }
  for (const AddedToken& added : json.added_tokens) {
    const auto id = static_cast<size_t>(added.id);
    if (id >= is_piece.size()) continue;
    VocabularyToken& token = vocabulary.tokens[id];
    token.is_text = !added.content.empty() && (is_piece[id] || is_white_space(added.content)) &&
                    token.piece == added.content && !token.is_special && !added.lstrip &&
                    !added.rstrip && !added.single_word;
  }
}

// Added tokens from the folder's vocab_size on are left out: the embedding table has no row for
// them.
Vocabulary make_vocabulary(const TokenizerJson& json, const TokenDecoder& decoder,
                           const ModelFolder& folder) {
  Vocabulary vocabulary;
  const int64_t vocab_size = folder.config.vocab_size;
  add_entries(json, decoder, vocab_size, vocabulary);
  const TokenizerConfig& config = folder.tokenizer;
  for (const auto* const list : {&json.added_tokens, &config.added_tokens}) {
    for (const AddedToken& token : *list) {
      if (token.id < vocab_size) vocabulary.add_token(token, decoder.bytes_of(token.content));
    }
  }
  // What ends a prompt or begins it is special though nothing else says so.
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const VocabularyToken& token = vocabulary.tokens[id];
    if (token.piece != config.bos_token && token.piece != config.eos_token) continue;
    vocabulary.add_token({.id = static_cast<int64_t>(id),
                          .content = token.piece,
                          .special = true,
                          .lstrip = token.strips_left,
                          .rstrip = token.strips_right},
                         "");
  }
  mark_added_text(json, vocabulary);
  return vocabulary;
}

// The special tokens that the post-processor puts `where` ("in front of", "behind") a text.
std::vector<TokenId> template_tokens(const std::vector<std::string>& contents,
                                     std::string_view where, const TokenizerJson& json,
                                     const Vocabulary& vocabulary) {
  std::vector<TokenId> tokens;
  for (const std::string& content : contents) {
    const auto token = vocabulary.special_token(content);
    CHECK(token, json.path, ": post_processor puts ", printable(content), ' ', where,
          " a text, which is not an added token");
    tokens.push_back(*token);
  }
  return tokens;
}

TokenizerJson read_json(const std::string& path) {
  if (is_tekken_file(path)) {
    return parse_tekken_json(read_json_file(path, kMaxTekkenJsonBytes), path);
  }
  return parse_tokenizer_json(read_json_file(path, kMaxTokenizerJsonBytes), path);
}

}  // namespace

TokenizerParts load_json_tokenizer(const ModelFolder& folder) {
  const std::string& path = folder.tokenizer_path;
  const TokenizerJson json = read_json(path);
  const TokenDecoder decoder(json);
  TokenizerParts parts = {.path = path,
                          .vocabulary = make_vocabulary(json, decoder, folder),
                          .leading_space = decoder.leading_space()};
  auto encoder = std::make_unique<PipelineEncoder>(json, parts.vocabulary);
  parts.max_token_bytes = encoder->max_token_bytes();
  parts.encoder = std::move(encoder);
  const TokenizerConfig& config = folder.tokenizer;
  const auto& [before, behind] = json.prompt_template;
  const std::string first = before.size() == 1 ? before[0] : "";
  parts.bos_token = named_token(parts.vocabulary, "bos_token", config.bos_token, first, folder);
  parts.eos_token =
      named_token(parts.vocabulary, "eos_token", config.eos_token, json.eos_token, folder);
  parts.prompt_prefix = template_tokens(before, "in front of", json, parts.vocabulary);
  parts.prompt_suffix = template_tokens(behind, "behind", json, parts.vocabulary);
  return parts;
}

}  // namespace tessera
