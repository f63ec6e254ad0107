// Tokenizers of files that tests make up.
#pragma once

#include <memory>
#include <string>

#include "engine/text/tokenizer.h"
#include "tests/model_loaders/temporary_folder.h"

namespace tessera {

// Loads a file of this name and content, as if tokenizer_config.json were `config`.
inline std::unique_ptr<Tokenizer> load_tokenizer_file(const std::string& name,
                                                      const std::string& content,
                                                      const TokenizerConfig& config,
                                                      int64_t vocab_size) {
  const TemporaryFolder temporary;
  ModelFolder folder;
  folder.path = "some/model";
  folder.tokenizer_path = temporary.write(name, content);
  folder.tokenizer = config;
  folder.config.vocab_size = vocab_size;
  return Tokenizer::load(folder);
}

}  // namespace tessera
