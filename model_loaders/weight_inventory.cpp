#include "model_loaders/weight_inventory.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"
#include "model_loaders/weight_names.h"
#include "model_loaders/weight_specs.h"

namespace tessera {
namespace {

// ": " and the first of `names`.
std::string first_names(const std::vector<std::string>& names) {
  constexpr size_t kMaxNamed = 5;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i) {
    list += concat(i == 0 ? ": " : ", ", names[i]);
  }
  return list + (names.size() > kMaxNamed ? ", ..." : "");
}

// "FILE: 2 tensors are", the beginning of messages about so many of them.
std::string tensors_of(const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  return concat(checkpoint.file_paths().front(), ": ",
                counted(names.size(), "tensor is", "tensors are"));
}

}  // namespace

std::vector<std::string> check_weight_inventory(const Checkpoint& checkpoint,
                                                const ModelConfig& config, bool allow_unknown) {
  const std::vector<std::string> missing = missing_weights(checkpoint, config);
  CHECK(missing.empty(), tensors_of(checkpoint, missing), " missing", first_names(missing));
  check_weight_shapes(checkpoint, config);
  std::vector<std::string> warnings = checkpoint.warnings();
  const std::vector<std::string> unknown = unknown_weights(checkpoint, config);
  if (unknown.empty()) return warnings;
  const std::string message =
      concat(tensors_of(checkpoint, unknown), " not used by this model, results may be wrong",
             first_names(unknown));
  if (!allow_unknown) throw Error(message, "--allow-unknown-weights loads the model anyway");
  warnings.push_back(message);
  return warnings;
}

std::vector<std::string> missing_weights(const Checkpoint& checkpoint, const ModelConfig& config) {
  std::vector<std::string> missing;
  for (const WeightSpec& spec : weight_specs(config)) {
    for (const WeightSource& source : spec.sources) {
      if (checkpoint.find(source.name) != nullptr) continue;
      missing.push_back(source.name);
      if (spec.role == WeightRole::kLmHead) missing.back() += " (tie_word_embeddings is false)";
    }
  }
  return missing;
}

std::vector<std::string> unknown_weights(const Checkpoint& checkpoint, const ModelConfig& config) {
  ModelConfig untied = config;
  untied.ties_embeddings = false;
  std::set<std::string, std::less<>> known;
  for (const WeightSpec& spec : weight_specs(untied)) {
    for (const WeightSource& source : spec.sources) known.insert(source.name);
  }
  std::vector<std::string> unknown;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (!known.contains(name) && !is_ignorable_weight(name)) unknown.push_back(printable(name));
  }
  return unknown;
}

void check_weight_shapes(const Checkpoint& checkpoint, const ModelConfig& config) {
  for (const WeightSpec& spec : weight_specs(config)) {
    for (const WeightSource& source : spec.sources) {
      const TensorEntry* const entry = checkpoint.find(source.name);
      if (entry == nullptr || entry->shape == source.shape) continue;
      throw Error(concat(checkpoint.file_paths()[entry->file_index], ": tensor '", source.name,
                         "' has shape ", entry->shape, ", expected ", source.shape, " = ",
                         source.shape_fields, " of config.json"));
    }
  }
}

}  // namespace tessera
