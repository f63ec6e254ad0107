#include "engine/model_description.h"

#include <algorithm>

#include "engine/longer_context.h"
#include "engine/make_backend.h"
#include "engine/model/model_weights.h"
#include "engine/model/plan_memory.h"
#include "engine/text/stop_tokens.h"
#include "model_loaders/checkpoint.h"
#include "model_loaders/weight_inventory.h"

namespace tessera {

ModelDescription describe_model(const EngineOptions& options) {
  ModelDescription description;
  description.folder = read_model_folder(options);
  const ModelFolder& folder = description.folder;
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  WeightInventory inventory =
      take_weight_inventory(checkpoint, description.folder.config, options.allow_unknown_weights);
  description.skipped = std::move(inventory.skipped);
  description.warnings = folder.warnings;
  std::ranges::move(inventory.warnings, std::back_inserter(description.warnings));
  for (const auto& [name, entry] : checkpoint.tensors()) {
    description.tensors.push_back(entry);
    description.num_parameters += entry.shape.num_elements();
  }
  description.weights_bytes_on_disk = checkpoint.total_bytes();

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

  const auto backend = make_backend(options);
  description.device = backend->device().description();
  try {
    description.memory_plan = plan_memory(
        folder.config, wanted_sizes(options), backend->fused_operations(folder.config.block),
        ModelWeights::size_bytes(folder.config, checkpoint, backend->operations()));
  } catch (const Error& problem) {
    description.memory_problem = problem.what();
  }
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
