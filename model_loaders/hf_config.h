// config.json of a Hugging Face folder, to checked numbers.
#pragma once

#include <string>
#include <vector>

#include "model_loaders/json.h"
#include "model_loaders/model_config.h"

namespace tessera {

// Fills in what the family's config class does when a key is absent. Every key is understood,
// known to be harmless, or an Error; with `allow_unknown` a warning instead. What contradicts
// itself and is taken as transformers takes it is a warning too. Throws Error naming the field, its
// value and what is allowed.
ModelConfig read_hf_config(const JsonObject& json, bool allow_unknown,
                           std::vector<std::string>& warnings);

// Fills in block.embedding_multiplier of the families that multiply by the root of hidden_size in
// the dtype of the model.
void scale_embeddings(ModelConfig& config);

}  // namespace tessera
