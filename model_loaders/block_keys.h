// Keys of config.json that say how the blocks of a model compute.
#pragma once

#include <string_view>

#include "kernels/block_spec.h"
#include "model_loaders/json.h"

namespace tessera {

// A key and who reads it: sets an option of the block, or throws Error when the value is none that
// is supported. A key that is absent or null leaves the option as it is.
struct BlockKey {
  std::string_view key;
  void (*read)(const JsonObject& config, std::string_view key, BlockSpec& block);
};

// A switch that is only supported when it is off.
void refuse_true(const JsonObject& config, std::string_view key, BlockSpec& block);

// BlockSpec::activation.
void read_activation(const JsonObject& config, std::string_view key, BlockSpec& block);

}  // namespace tessera
