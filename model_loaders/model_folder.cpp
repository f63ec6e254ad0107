#include "model_loaders/model_folder.h"

#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/hf_config.h"
#include "model_loaders/json.h"

namespace tessera {
namespace {

std::string find_tokenizer_model(const std::string& folder) {
  const std::string path = join_path(folder, "tokenizer.model");
  if (file_exists(path)) return path;
  if (file_exists(join_path(folder, "tokenizer.json"))) {
    throw Error(folder + ": has tokenizer.json only, which is not supported",
                "models with a SentencePiece tokenizer.model work: Llama 2, Mistral up to 0.3, "
                "TinyLlama");
  }
  throw Error(folder + ": has no tokenizer: neither tokenizer.model nor tokenizer.json",
              "download the model again");
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
  result.tokenizer_model_path = find_tokenizer_model(folder);
  return result;
}

}  // namespace tessera
