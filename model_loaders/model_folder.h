// A Hugging Face model folder: finding it and reading its JSON files.
#pragma once

#include <string>
#include <vector>

#include "model_loaders/generation_config.h"
#include "model_loaders/model_config.h"
#include "model_loaders/tokenizer_config.h"

namespace tessera {

struct ModelFolder {
  std::string path;             // the folder itself
  ModelConfig config;           // config.json
  GenerationConfig generation;  // generation_config.json, defaults when absent
  TokenizerConfig tokenizer;    // tokenizer_config.json and its neighbours
  std::string tokenizer_path;  // what ends in .json is a tokenizer.json, all else a tokenizer.model
  // Paths of all files of the folder that decide what the model says besides its weights, in a
  // fixed order; without a tokenizer file that was chosen.
  std::vector<std::string> text_files;
  std::vector<std::string> warnings;
};

// The folder for `model`: an existing directory, else `org/name[@revision]` looked up in the
// Hugging Face cache, `cache_folder`. Never touches the network. Adds a warning where the cache
// does not say which snapshot is the newest and has but one. Throws Error listing what was tried,
// with the `hf download` command as hint.
std::string resolve_model_folder(const std::string& model, const std::string& cache_folder,
                                 std::vector<std::string>& warnings);

// Reads and checks config.json alone. Keys that are neither understood nor known to be harmless are
// an Error unless `allow_unknown_config`, then a warning.
ModelConfig read_model_config(const std::string& folder, bool allow_unknown_config,
                              std::vector<std::string>& warnings);

// Reads and checks every JSON file of the folder but tokenizer.json; no weights. config.json as
// above. `tokenizer` is the file to take for the tokenizer, by its name in the folder or its path;
// unless it is given, tokenizer.json, and tokenizer.model where there is none.
ModelFolder read_model_folder(const std::string& folder, bool allow_unknown_config,
                              const std::string& tokenizer = {});

}  // namespace tessera
