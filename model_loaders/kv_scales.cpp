#include "model_loaders/kv_scales.h"

#include <cmath>
#include <string_view>

#include "kernels/tensor/check.h"
#include "kernels/tensor/dtype.h"
#include "model_loaders/weight_names.h"

namespace tessera {
namespace {

constexpr std::string_view kPatterns[2][2] = {
    {"model.layers.{layer}.self_attn.k_scale", "model.layers.{layer}.self_attn.k_proj.k_scale"},
    {"model.layers.{layer}.self_attn.v_scale", "model.layers.{layer}.self_attn.v_proj.v_scale"}};

std::string name_of(std::string_view pattern, int64_t layer, const ModelConfig& config) {
  return prefixed(weight_name(pattern, layer, {}), config.name_prefix);
}

template <typename T>
std::vector<float> read_as(const Checkpoint& checkpoint, const TensorEntry& entry) {
  std::vector<T> stored(static_cast<size_t>(entry.shape.num_elements()));
  checkpoint.read(entry, stored.data(), 0, stored.size() * sizeof(T));
  std::vector<float> values;
  for (const T value : stored) values.push_back(to_float(value));
  return values;
}

std::vector<float> read_floats(const Checkpoint& checkpoint, const TensorEntry& entry) {
  switch (entry.dtype) {
    case DType::kFloat32:
      return read_as<float>(checkpoint, entry);
    case DType::kFloat16:
      return read_as<Float16>(checkpoint, entry);
    case DType::kBFloat16:
      return read_as<BFloat16>(checkpoint, entry);
    default:
      throw Error(concat("tensor '", entry.name, "' is ", to_string(entry.dtype), ", no scale"));
  }
}

// One for each KV head.
std::vector<float> read_scales(const Checkpoint& checkpoint, const TensorEntry& entry,
                               int64_t num_kv_heads) {
  const int64_t count = entry.shape.num_elements();
  CHECK(count == 1 || count == num_kv_heads, checkpoint.file_paths()[entry.file_index],
        ": tensor '", entry.name, "' has shape ", entry.shape,
        ", expected one scale or one for each of ", num_kv_heads, " KV heads");
  std::vector<float> scales = read_floats(checkpoint, entry);
  for (const float scale : scales) {
    CHECK(std::isfinite(scale) && scale > 0.0f, checkpoint.file_paths()[entry.file_index],
          ": tensor '", entry.name, "' has a scale of ", scale);
  }
  if (count == 1) scales.resize(static_cast<size_t>(num_kv_heads), scales.front());
  return scales;
}

}  // namespace

std::vector<std::string> kv_scale_names(const ModelConfig& config) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const auto& patterns : kPatterns) {
      for (const std::string_view pattern : patterns) {
        names.push_back(name_of(pattern, layer, config));
      }
    }
  }
  return names;
}

std::vector<float> read_kv_scales(const Checkpoint& checkpoint, const ModelConfig& config) {
  std::vector<float> scales;
  std::string missing;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const auto& patterns : kPatterns) {
      const TensorEntry* entry = nullptr;
      for (const std::string_view pattern : patterns) {
        if (entry == nullptr) entry = checkpoint.find(name_of(pattern, layer, config));
      }
      if (entry == nullptr) {
        missing = name_of(patterns[0], layer, config);
        continue;
      }
      const std::vector<float> of_heads = read_scales(checkpoint, *entry, config.num_kv_heads);
      scales.insert(scales.end(), of_heads.begin(), of_heads.end());
    }
  }
  CHECK(scales.empty() || missing.empty(), checkpoint.file_paths().front(), ": tensor '", missing,
        "' is missing, which other layers have");
  return scales;
}

}  // namespace tessera
