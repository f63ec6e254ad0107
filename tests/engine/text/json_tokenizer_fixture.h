// Tokenizers of tokenizer.json for tests: those of data/, and small ones written in place.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "engine/text/tokenizer.h"
#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
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
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / concat("tessera_tokenizer_", getpid(), ".json");
  std::ofstream(path, std::ios::binary) << text;
  struct Remover {
    const std::filesystem::path& path;
    ~Remover() { std::filesystem::remove(path); }
  } remover{path};
  ModelFolder folder;
  folder.path = "some/model";
  folder.tokenizer_json_path = path.string();
  folder.tokenizer = config;
  folder.config.vocab_size = vocab_size;
  return Tokenizer::load(folder);
}

}  // namespace tessera
