// What can be said about a model without loading its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/memory_plan.h"
#include "engine/options.h"
#include "engine/text/text_limit.h"
#include "engine/text/token_id.h"
#include "kernels/tensor/check.h"
#include "model_loaders/model_folder.h"
#include "model_loaders/tensor_entry.h"

namespace tessera {

// What inspect shows.
struct ModelDescription {
  ModelFolder folder;
  std::vector<TensorEntry> tensors;
  bool lacks_weight_files = false;  // tensors are those of the files that are there
  uint64_t weights_bytes_on_disk = 0;
  int64_t num_parameters = 0;
  std::vector<std::string> skipped;  // tensors that text does not need, a line for each kind
  std::string device;                // description of the device that would be used
  std::optional<MemoryPlan> memory_plan;
  std::string memory_problem;  // why there is no plan
  std::string chat_template;   // ChatTemplate::name, "" when there is none
  std::string chat_template_problem;
  int64_t tokenizer_size = 0;
  std::optional<TokenId> bos_token;
  std::vector<TokenId> eos_tokens;
  std::vector<std::string> warnings;
  std::vector<Error> problems;  // why parts of it are missing
};

// What can be said of a folder whose config.json can be read; why the rest cannot is among the
// problems. Throws Error where not even that can be read, or there is no such device.
ModelDescription describe_what_is_there(const EngineOptions& options);

// Throws Error as Engine::load does, but for memory that is short and a chat template that is
// missing or wrong: the description tells of these.
ModelDescription describe_model(const EngineOptions& options);

// How long a text can be. The context is the largest possible one: memory may only allow less.
// Throws Error as Engine::load does.
TextLimit read_text_limit(const EngineOptions& options);

}  // namespace tessera
