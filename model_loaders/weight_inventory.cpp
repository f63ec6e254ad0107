#include "model_loaders/weight_inventory.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "kernels/tensor/check.h"
#include "model_loaders/hf_config.h"
#include "model_loaders/kv_scales.h"
#include "model_loaders/model_family.h"
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

// "FILE: 2 tensors are", the beginning of messages about so many of them; the folder's name where
// weights are in several files, since any of those could hold a missing one.
std::string tensors_of(const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  const std::filesystem::path first = checkpoint.file_paths().front();
  const std::filesystem::path place =
      checkpoint.file_paths().size() == 1 ? first : first.parent_path();
  return concat(place.string(), ": ", counted(names.size(), "tensor is", "tensors are"));
}

// Tensors of a part of the model around the language model.
struct SkippedPart {
  std::string_view name;  // "the vision tower"
  int64_t count = 0;
  uint64_t size_bytes = 0;
};

std::string line_of(const SkippedPart& part) {
  char gigabytes[32];
  std::snprintf(gigabytes, sizeof(gigabytes), "%.2f GB",
                static_cast<double>(part.size_bytes) / 1e9);
  return concat(counted(part.count, "tensor"), " of ", part.name, ", ", gigabytes);
}

// The tensor that a weight of the whole model is made of.
std::string name_of(WeightRole role, const ModelConfig& config) {
  const ModelFamily& family = model_family(config.model_type);
  const std::string name(weight_sources(family, stored_role(role, config)).front());
  return prefixed(name, config.name_prefix);
}

// Whether bytes of both tensors are the same.
bool is_equal(const Checkpoint& checkpoint, const TensorEntry& a, const TensorEntry& b,
              uint64_t begin_bytes, uint64_t size_bytes) {
  std::string a_bytes(size_bytes, '\0');
  std::string b_bytes(size_bytes, '\0');
  checkpoint.read(a, a_bytes.data(), begin_bytes, size_bytes);
  checkpoint.read(b, b_bytes.data(), begin_bytes, size_bytes);
  return a_bytes == b_bytes;
}

// Whether both matrices are the same. A megabyte at the beginning, in the middle and at the end is
// compared: matrices that were trained apart differ everywhere.
bool is_same_matrix(const Checkpoint& checkpoint, const TensorEntry& a, const TensorEntry& b) {
  constexpr uint64_t kComparedBytes = uint64_t{1} << 20;
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const uint64_t size = std::min(kComparedBytes, a.size_bytes);
  const uint64_t last = a.size_bytes - size;
  return std::ranges::all_of(
      std::initializer_list<uint64_t>{0, last / 2, last},
      [&](uint64_t begin) { return is_equal(checkpoint, a, b, begin, size); });
}

// Where config.json says no dtype, transformers takes that of the checkpoint's tensors.
void adopt_dtype(const Checkpoint& checkpoint, ModelConfig& config) {
  if (config.dtype) return;
  const auto* const embedding = checkpoint.find(name_of(WeightRole::kEmbedTokens, config));
  if (embedding != nullptr) config.dtype = embedding->dtype;
  scale_embeddings(config);
}

}  // namespace

void adopt_layout(const Checkpoint& checkpoint, ModelConfig& config) {
  if (config.name_prefix == NamePrefix::kNone) return;
  const auto has = [&](WeightRole role) {
    return checkpoint.find(name_of(role, config)) != nullptr;
  };
  for (const NamePrefix prefix : {NamePrefix::kLanguageModel, NamePrefix::kModelLanguageModel}) {
    config.name_prefix = prefix;
    if (has(WeightRole::kNorm)) break;
  }
  const bool has_both = has(WeightRole::kEmbedTokens) && has(WeightRole::kLmHead);
  config.ties_embeddings = !config.is_untied && !has_both;
}

std::vector<std::string> adopt_output_matrix(const Checkpoint& checkpoint, ModelConfig& config) {
  if (!config.ties_embeddings) return {};
  const TensorEntry* const embedding = checkpoint.find(name_of(WeightRole::kEmbedTokens, config));
  const TensorEntry* const output = checkpoint.find(name_of(WeightRole::kLmHead, config));
  config.embedding_is_lm_head = embedding == nullptr && output != nullptr;
  if (embedding == nullptr || output == nullptr) return {};
  if (is_same_matrix(checkpoint, *embedding, *output)) return {};
  config.ties_embeddings = false;
  return {concat(checkpoint.file_paths()[output->file_index],
                 ": tie_word_embeddings is true, but tensor '", output->name, "' is not equal to '",
                 embedding->name, "'; both are used, as in transformers 5")};
}

std::vector<std::string> skipped_tensors(const Checkpoint& checkpoint) {
  std::vector<SkippedPart> parts;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    const std::string_view part = skipped_part(name);
    if (part.empty()) continue;
    auto found = std::ranges::find(parts, part, &SkippedPart::name);
    if (found == parts.end()) found = parts.insert(found, {.name = part});
    ++found->count;
    found->size_bytes += entry.size_bytes;
  }
  std::vector<std::string> lines;
  for (const SkippedPart& part : parts) lines.push_back(line_of(part));
  return lines;
}

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

WeightInventory take_weight_inventory(const Checkpoint& checkpoint, ModelConfig& config,
                                      bool allow_unknown) {
  adopt_layout(checkpoint, config);
  WeightInventory inventory{.skipped = skipped_tensors(checkpoint),
                            .warnings = adopt_output_matrix(checkpoint, config)};
  adopt_dtype(checkpoint, config);
  std::ranges::move(check_weight_inventory(checkpoint, config, allow_unknown),
                    std::back_inserter(inventory.warnings));
  return inventory;
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
  for (std::string& name : kv_scale_names(config)) known.insert(std::move(name));
  std::vector<std::string> unknown;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (known.contains(name) || is_ignorable_weight(name) || !skipped_part(name).empty()) continue;
    unknown.push_back(printable(name));
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
