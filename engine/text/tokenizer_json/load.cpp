// Makes a tokenizer of a tokenizer.json.
#include <algorithm>

#include "engine/text/tokenizer_json/pipeline_encoder.h"
#include "engine/text/tokenizer_json/token_decoder.h"
#include "engine/text/tokenizer_parts.h"
#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

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
  return vocabulary;
}

// A prompt begins with BOS or with nothing.
std::string prompt_prefix(const TokenizerJson& json) {
  if (json.prompt_prefix.empty()) return "";
  CHECK(json.prompt_prefix.size() == 1, json.path, ": post_processor puts ",
        json.prompt_prefix.size(), " tokens in front of a text; only one is supported");
  return json.prompt_prefix[0];
}

}  // namespace

TokenizerParts load_json_tokenizer(const ModelFolder& folder) {
  const std::string& path = folder.tokenizer_json_path;
  CHECK(!path.empty(), folder.path, ": no tokenizer.model and no tokenizer.json");
  const TokenizerJson json =
      parse_tokenizer_json(read_whole_file(path, kMaxTokenizerJsonBytes), path);
  const TokenDecoder decoder(json);
  TokenizerParts parts = {.path = path,
                          .vocabulary = make_vocabulary(json, decoder, folder),
                          .leading_space = decoder.leading_space()};
  auto encoder = std::make_unique<PipelineEncoder>(json, parts.vocabulary);
  parts.max_token_bytes = encoder->max_token_bytes();
  parts.encoder = std::move(encoder);
  const TokenizerConfig& config = folder.tokenizer;
  const std::string prefix = prompt_prefix(json);
  parts.bos_token = named_token(parts.vocabulary, "bos_token", config.bos_token, prefix, folder);
  parts.eos_token = named_token(parts.vocabulary, "eos_token", config.eos_token, "", folder);
  CHECK(prefix.empty() ||
            (parts.bos_token && parts.vocabulary.special_token(prefix) == parts.bos_token),
        path, ": post_processor puts ", printable(prefix), " in front of a text, which is not the ",
        "beginning-of-sequence token");
  parts.adds_bos_token = parts.bos_token && config.add_bos_token.value_or(!prefix.empty());
  return parts;
}

}  // namespace tessera
