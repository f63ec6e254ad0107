#include "model_loaders/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/foreign_format.h"
#include "model_loaders/hf_config.h"
#include "model_loaders/json.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

std::string find_chosen_tokenizer(const std::string& folder, const std::string& choice) {
  const std::string path = join_path(folder, choice);
  if (file_exists(path)) return path;
  if (file_exists(choice)) return choice;
  throw Error(
      concat("there is no tokenizer ", printable(choice), ", neither in ", folder, " nor here"));
}

// Models are published with tokenizer.json; what lies beside it was converted to it.
std::string find_tokenizer(const std::string& folder) {
  for (const char* const name : {"tokenizer.json", "tokenizer.model", "tekken.json"}) {
    if (std::string path = join_path(folder, name); file_exists(path)) return path;
  }
  throw Error(folder +
                  ": has no tokenizer: neither tokenizer.json nor tokenizer.model nor "
                  "tekken.json",
              "download the model again");
}

// Folders in `folder` that hold a model, in the order of their names. A model in the cache keeps
// its own in "snapshots".
std::vector<std::string> models_within(const std::string& folder) {
  std::vector<std::string> models;
  for (const std::string& place : {folder, join_path(folder, "snapshots")}) {
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(place, problem)) {
      std::string path = entry.path().string();
      if (file_exists(join_path(path, "config.json"))) models.push_back(std::move(path));
    }
  }
  std::ranges::sort(models);
  return models;
}

Error no_model_folder(const std::string& folder) {
  const std::vector<std::string> models = models_within(folder);
  std::string hint = "give the folder that holds config.json and model.safetensors";
  if (!models.empty()) hint += concat(models.size() > 1 ? ", such as " : ": ", models.front());
  return Error(folder + ": is not a Hugging Face model folder: it has no config.json", hint);
}

}  // namespace

ModelConfig read_model_config(const std::string& folder, bool allow_unknown_config,
                              std::vector<std::string>& warnings) {
  const std::string config_path = join_path(folder, "config.json");
  if (!file_exists(config_path)) {
    if (const auto error = recognise_foreign_folder(folder)) throw *error;
    throw no_model_folder(folder);
  }
  return read_hf_config(JsonObject::read(config_path), allow_unknown_config, warnings);
}

ModelFolder read_model_folder(const std::string& folder, bool allow_unknown_config,
                              const std::string& tokenizer) {
  ModelFolder result;
  result.path = folder;
  result.config = read_model_config(folder, allow_unknown_config, result.warnings);
  result.generation = read_generation_config(join_path(folder, "generation_config.json"),
                                             result.config.vocab_size, result.warnings);
  result.tokenizer = read_tokenizer_config(folder);
  result.tokenizer_path =
      tokenizer.empty() ? find_tokenizer(folder) : find_chosen_tokenizer(folder, tokenizer);
  result.text_files = {join_path(folder, "config.json")};
  if (std::string path = join_path(folder, "generation_config.json"); file_exists(path)) {
    result.text_files.push_back(std::move(path));
  }
  std::ranges::copy(result.tokenizer.files, std::back_inserter(result.text_files));
  if (tokenizer.empty()) result.text_files.push_back(result.tokenizer_path);
  return result;
}

}  // namespace tessera
