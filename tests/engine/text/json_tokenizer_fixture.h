// Tokenizers of tokenizer.json for tests: those of data/, and small ones written in place.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "model_loaders/file_reader.h"
#include "tests/engine/text/tokenizer_file.h"
#include "tests/source_folder.h"

namespace tessera {

inline std::filesystem::path tokenizer_data(const std::string& file) {
  return source_folder() / "tests" / "engine" / "text" / "data" / file;
}

inline std::string tokenizer_data_text(const std::string& file) {
  return read_whole_file(tokenizer_data(file).string(), uint64_t{1} << 20);
}

// Loads `text` as a tokenizer.json beside a tokenizer_config.json that is `config`.
inline std::unique_ptr<Tokenizer> load_tokenizer_json(const std::string& text,
                                                      const TokenizerConfig& config = {},
                                                      int64_t vocab_size = 2000) {
  return load_tokenizer_file("tokenizer.json", text, config, vocab_size);
}

}  // namespace tessera
