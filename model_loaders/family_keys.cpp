#include "model_loaders/family_keys.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

// What multiplies may be, so that products of them stay numbers in float32.
constexpr NumberLimits<double> kMultiplierLimits = {1e-6, 1e6};

constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_new", Activation::kGeluTanh},
};

void read_number(const JsonObject& json, std::string_view key, double& value) {
  if (const auto number = json.find_number(key, kMultiplierLimits)) value = *number;
}

void read_softcap(const JsonObject& json, std::string_view key, double& cap) {
  if (json.is_null(key)) cap = 0.0;
  read_number(json, key, cap);
}

}  // namespace

void refuse_true(const JsonObject& json, std::string_view key, ModelConfig&) {
  CHECK(!json.find_bool(key).value_or(false), json.path(), ": ", json.field(key),
        " true is not supported");
}

void require_true(const JsonObject& json, std::string_view key, ModelConfig&) {
  CHECK(json.find_bool(key).value_or(true), json.path(), ": ", json.field(key),
        " false is not supported");
}

void require_one(const JsonObject& json, std::string_view key, ModelConfig&) {
  const double value = json.find_number(key, 0.0, 1e6).value_or(1.0);
  CHECK(value == 1.0, json.path(), ": ", json.field(key), ' ', value,
        " is not supported; supported: 1");
}

void refuse_number(const JsonObject& json, std::string_view key, ModelConfig&) {
  const auto number = json.find_number(key, kMultiplierLimits);
  CHECK(!number, json.path(), ": ", json.field(key), ' ', *number,
        " is not supported; supported: null");
}

void ignore_bool(const JsonObject& json, std::string_view key, ModelConfig&) {
  json.find_bool(key);
}

void ignore_integer(const JsonObject& json, std::string_view key, ModelConfig&) {
  json.find_integer(key, 0, std::numeric_limits<int64_t>::max());
}

void ignore_string(const JsonObject& json, std::string_view key, ModelConfig&) {
  json.find_string(key);
}

void read_activation(const JsonObject& json, std::string_view key, ModelConfig& config) {
  const std::optional<std::string> name = json.find_string(key);
  if (!name) return;
  std::string known;
  for (const auto& [known_name, activation] : kActivations) {
    if (*name == known_name) {
      config.block.activation = activation;
      return;
    }
    known += concat(" ", known_name);
  }
  throw Error(concat(json.path(), ": ", json.field(key), " '", printable(*name),
                     "' is not supported; supported:", known));
}

void read_qkv_bias(const JsonObject& json, std::string_view key, ModelConfig& config) {
  if (const auto has_bias = json.find_bool(key)) config.block.biases.qkv = *has_bias;
}

void read_output_bias(const JsonObject& json, std::string_view key, ModelConfig& config) {
  if (const auto has_bias = json.find_bool(key)) config.block.biases.output = *has_bias;
}

void read_attention_bias(const JsonObject& json, std::string_view key, ModelConfig& config) {
  read_qkv_bias(json, key, config);
  read_output_bias(json, key, config);
}

void read_mlp_bias(const JsonObject& json, std::string_view key, ModelConfig& config) {
  const auto has_bias = json.find_bool(key);
  if (!has_bias) return;
  config.block.biases.gate_up = *has_bias;
  config.block.biases.down = *has_bias;
}

void read_attention_scale(const JsonObject& json, std::string_view key, ModelConfig& config) {
  read_number(json, key, config.block.attention_scale);
}

void read_query_pre_attn_scalar(const JsonObject& json, std::string_view key, ModelConfig& config) {
  const auto scalar = json.find_number(key, kMultiplierLimits);
  if (scalar) config.block.attention_scale = 1.0 / std::sqrt(*scalar);
}

void read_attention_softcap(const JsonObject& json, std::string_view key, ModelConfig& config) {
  read_softcap(json, key, config.block.attention_softcap);
}

void read_logit_softcap(const JsonObject& json, std::string_view key, ModelConfig& config) {
  read_softcap(json, key, config.block.logit_softcap);
}

void read_embedding_multiplier(const JsonObject& json, std::string_view key, ModelConfig& config) {
  read_number(json, key, config.block.embedding_multiplier);
}

void read_residual_multiplier(const JsonObject& json, std::string_view key, ModelConfig& config) {
  read_number(json, key, config.block.residual_multiplier);
}

void read_logit_multiplier(const JsonObject& json, std::string_view key, ModelConfig& config) {
  read_number(json, key, config.logit_multiplier);
}

void read_logits_scaling(const JsonObject& json, std::string_view key, ModelConfig& config) {
  double scaling = 1.0;
  read_number(json, key, scaling);
  config.logit_multiplier = 1.0 / scaling;
}

}  // namespace tessera
