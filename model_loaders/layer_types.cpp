#include "model_loaders/layer_types.h"

#include <string>
#include <vector>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {

bool is_layer_type(std::string_view name) {
  return name == kFullAttention || name == kSlidingAttention;
}

std::optional<std::string_view> read_layer_type(const JsonObject& config, int64_t num_layers) {
  const std::optional<std::vector<std::string>> types = config.find_strings("layer_types");
  if (!types) return std::nullopt;
  CHECK(static_cast<int64_t>(types->size()) == num_layers, config.path(), ": layer_types has ",
        counted(types->size(), "entry", "entries"), ", num_hidden_layers is ", num_layers);
  for (const std::string& type : *types) {
    CHECK(is_layer_type(type), config.path(), ": layer type '", printable(type),
          "' is not supported; supported: ", kFullAttention, " ", kSlidingAttention);
    CHECK(type == types->front(), config.path(),
          ": layer_types mixes full_attention and sliding_attention, which is not supported");
  }
  return types->front() == kFullAttention ? kFullAttention : kSlidingAttention;
}

}  // namespace tessera
