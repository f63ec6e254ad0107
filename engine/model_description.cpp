#include "engine/model_description.h"

#include <algorithm>

#include "engine/longer_context.h"
#include "engine/make_backend.h"
#include "engine/model/kernel_config.h"
#include "engine/model/model_weights.h"
#include "engine/model/plan_memory.h"
#include "engine/text/stop_tokens.h"
#include "model_loaders/checkpoint.h"
#include "model_loaders/weight_inventory.h"

namespace tessera {
namespace {

// Does a part of the description; where that fails, notes why and returns false.
template <typename Function>
bool attempt(const Function& describe, ModelDescription& description) {
  try {
    describe();
    return true;
  } catch (const ContextSizeError&) {
    throw;  // of the command line, not of the folder
  } catch (const Error& problem) {
    description.problems.push_back(problem);
    return false;
  }
}

ModelFolder read_config_alone(const EngineOptions& options) {
  ModelFolder folder;
  folder.path = resolve_model_folder(options.model, options.cache_folder, folder.warnings);
  folder.config = read_model_config(folder.path, options.allow_unknown_config, folder.warnings);
  return folder;
}

void describe_tensors(const Checkpoint& checkpoint, ModelDescription& description) {
  for (const auto& [name, entry] : checkpoint.tensors()) {
    description.tensors.push_back(entry);
    description.num_parameters += entry.shape.num_elements();
  }
  description.weights_bytes_on_disk = checkpoint.total_bytes();
}

void compare_with_config(const EngineOptions& options, const Checkpoint& checkpoint,
                         ModelDescription& description) {
  WeightInventory inventory =
      take_weight_inventory(checkpoint, description.folder.config, options.allow_unknown_weights);
  description.skipped = std::move(inventory.skipped);
  std::ranges::move(inventory.warnings, std::back_inserter(description.warnings));
}

void describe_tokenizer(const EngineOptions& options, ModelDescription& description) {
  const ModelFolder& folder = description.folder;
  const auto tokenizer = Tokenizer::load(folder);
  description.tokenizer_size = tokenizer->size();
  description.bos_token = tokenizer->bos_token();
  std::optional<ChatTemplate> chat_template;
  try {
    chat_template =
        ChatTemplate::choose(options.chat_template, folder, *tokenizer, options.template_arguments);
    description.chat_template = chat_template->name();
  } catch (const Error& problem) {
    description.chat_template_problem = problem.what();
  }
  description.eos_tokens =
      collect_stop_tokens(folder, *tokenizer, chat_template ? &*chat_template : nullptr);
}

void plan_memory_of(const EngineOptions& options, const Checkpoint& checkpoint, Backend& backend,
                    ModelDescription& description) {
  try {
    const ModelConfig config =
        kernel_config(description.folder.config, wanted_sizes(options), backend);
    description.memory_plan =
        plan_memory(config, wanted_sizes(options), backend.fused_operations(config.block),
                    ModelWeights::size_bytes(config, checkpoint, backend.operations()));
  } catch (const Error& problem) {
    description.memory_problem = problem.what();
  }
}

}  // namespace

ModelDescription describe_what_is_there(const EngineOptions& options) {
  ModelDescription description;
  const bool has_text_files =
      attempt([&] { description.folder = read_model_folder(options); }, description);
  if (!has_text_files) description.folder = read_config_alone(options);
  description.warnings = description.folder.warnings;
  std::optional<Checkpoint> checkpoint;
  const auto open_weights = [&] {
    std::optional<Error> missing;
    checkpoint = Checkpoint::open_what_is_there(description.folder.path, missing);
    description.lacks_weight_files = missing.has_value();
    describe_tensors(*checkpoint, description);
    if (missing) throw *missing;
    compare_with_config(options, *checkpoint, description);
  };
  const bool has_weights = attempt(open_weights, description);
  if (has_text_files) attempt([&] { describe_tokenizer(options, description); }, description);

  const auto backend = make_backend(options);
  description.device = backend->device().description();
  if (has_weights) {
    plan_memory_of(options, *checkpoint, *backend, description);
  } else {
    description.memory_problem = "unknown without all weights";
  }
  return description;
}

ModelDescription describe_model(const EngineOptions& options) {
  ModelDescription description = describe_what_is_there(options);
  if (!description.problems.empty()) throw description.problems.front();
  return description;
}

TextLimit read_text_limit(const EngineOptions& options) {
  const ModelFolder folder = read_model_folder(options);
  const int64_t context_size =
      options.context_size > 0 ? options.context_size : folder.config.max_position_embeddings;
  return {.context_size = context_size,
          .max_token_bytes = Tokenizer::load(folder)->max_token_bytes(),
          .longer_context = longer_context(options, folder, context_size)};
}

}  // namespace tessera
