// A model in the sizes in which a backend computes it.
#pragma once

#include <string>

#include "engine/model/memory_plan.h"
#include "kernels/block_sizes.h"
#include "model_loaders/model_config.h"

namespace tessera {

class Backend;

BlockSizes block_sizes(const ModelConfig& config);

// `config`, its weights filled up with zeros where the backend computes larger sizes
// (Backend::computed_sizes, model_loaders/padded_config.h). Throws Error where that cannot be.
ModelConfig kernel_config(const ModelConfig& config, const WantedSizes& wanted,
                          const Backend& backend);

// For people: which sizes are larger, "hidden_size 896 as 1024"; empty when none is.
std::string padding_description(const ModelConfig& config);

}  // namespace tessera
