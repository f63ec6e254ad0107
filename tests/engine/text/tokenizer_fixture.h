// A tokenizer for tests: writes a model to a temporary folder and loads it.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "engine/text/tokenizer.h"
#include "kernels/tensor/check.h"
#include "tests/engine/text/sentencepiece_builder.h"

namespace tessera {

// Loads the model that `bytes` are, as if tokenizer_config.json were `config`.
inline std::unique_ptr<Tokenizer> load_tokenizer(const std::string& bytes,
                                                 const TokenizerConfig& config = {},
                                                 int64_t vocab_size = 1000) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / concat("tessera_tokenizer_", getpid(), ".model");
  std::ofstream(path, std::ios::binary) << bytes;
  struct Remover {
    const std::filesystem::path& path;
    ~Remover() { std::filesystem::remove(path); }
  } remover{path};
  ModelFolder folder;
  folder.path = "some/model";
  folder.tokenizer_model_path = path.string();
  folder.tokenizer = config;
  folder.config.vocab_size = vocab_size;
  return Tokenizer::load(folder);
}

// small_model() with its turn tokens called special, as tokenizer_config.json does.
inline TokenizerConfig small_config(bool legacy = false) {
  TokenizerConfig config;
  config.legacy = legacy;
  const char* const turns[] = {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"};
  for (int64_t i = 0; i < 4; ++i) {
    config.added_tokens.push_back({.id = 3 + i, .content = turns[i], .special = true});
  }
  return config;
}

}  // namespace tessera
