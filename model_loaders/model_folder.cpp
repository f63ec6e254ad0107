#include "model_loaders/model_folder.h"

#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/hf_config.h"
#include "model_loaders/json.h"

namespace tessera {
namespace {

// The tokens of folders with both stay what they are in tokenizer.model.
void find_tokenizer(ModelFolder& folder) {
  const std::string model = join_path(folder.path, "tokenizer.model");
  const std::string json = join_path(folder.path, "tokenizer.json");
  if (file_exists(model)) {
    folder.tokenizer_model_path = model;
  } else if (file_exists(json)) {
    folder.tokenizer_json_path = json;
  } else {
    throw Error(folder.path + ": has no tokenizer: neither tokenizer.model nor tokenizer.json",
                "download the model again");
  }
}

}  // namespace

ModelConfig read_model_config(const std::string& folder, bool allow_unknown_config,
                              std::vector<std::string>& warnings) {
  const std::string config_path = join_path(folder, "config.json");
  if (!file_exists(config_path)) {
    throw Error(folder + ": is not a Hugging Face model folder: it has no config.json",
                "give the folder that holds config.json and model.safetensors");
  }
  return read_hf_config(JsonObject::read(config_path), allow_unknown_config, warnings);
}

ModelFolder read_model_folder(const std::string& folder, bool allow_unknown_config) {
  ModelFolder result;
  result.path = folder;
  result.config = read_model_config(folder, allow_unknown_config, result.warnings);
  result.generation =
      read_generation_config(join_path(folder, "generation_config.json"), result.config.vocab_size);
  result.tokenizer = read_tokenizer_config(folder);
  find_tokenizer(result);
  return result;
}

}  // namespace tessera
