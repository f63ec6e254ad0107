#include "model_loaders/block_keys.h"

#include <optional>
#include <string>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {

void refuse_true(const JsonObject& config, std::string_view key, BlockSpec&) {
  CHECK(!config.find_bool(key).value_or(false), config.path(), ": ", key, " true is not supported");
}

void read_activation(const JsonObject& config, std::string_view key, BlockSpec& block) {
  const std::optional<std::string> name = config.find_string(key);
  if (!name) return;
  CHECK(name == "silu" || name == "swish", config.path(), ": ", key, " '", printable(*name),
        "' is not supported; supported: silu swish");
  block.activation = Activation::kSilu;
}

}  // namespace tessera
