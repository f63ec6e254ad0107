#include "model_loaders/rope_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/tensor/check.h"
#include "model_loaders/layer_types.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;

constexpr std::pair<std::string_view, RopeScaling::Kind> kKinds[] = {
    {"default", RopeScaling::Kind::kNone},
    {"linear", RopeScaling::Kind::kLinear},
    {"llama3", RopeScaling::Kind::kLlama3},
};

void check_whole_head_rotates(const JsonObject& json) {
  constexpr std::string_view kKey = "partial_rotary_factor";
  const double rotated = json.find_number(kKey, 0.0, 1.0).value_or(1.0);
  CHECK(rotated == 1.0, json.path(), ": ", json.field(kKey), " ", rotated,
        " is not supported; supported: 1.0");
}

RopeScaling::Kind read_kind(const JsonObject& rope) {
  // "type" is the older name; some files have both.
  const std::optional<std::string> rope_type = rope.find_string("rope_type");
  const std::optional<std::string> type = rope.find_string("type");
  CHECK(!rope_type || !type || *rope_type == *type, rope.path(), ": ", rope.field("rope_type"),
        " is '", printable(*rope_type), "' but ", rope.field("type"), " is '", printable(*type),
        "'");
  const std::string name = rope_type ? *rope_type : type.value_or("default");
  std::string known;
  for (const auto& [known_name, kind] : kKinds) {
    if (name == known_name) return kind;
    known += concat(" ", known_name);
  }
  throw Error(concat(rope.path(), ": ", rope.field(rope_type ? "rope_type" : "type"), " '",
                     printable(name), "' is not supported; supported:", known));
}

int64_t read_original_context(const JsonObject& rope, const JsonObject& config) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  const auto outer = config.find_integer(kKey, 1, kMaxContextTokens);
  const auto inner = rope.find_integer(kKey, 1, kMaxContextTokens);
  CHECK(!outer || !inner || *outer == *inner, config.path(), ": ", kKey, " is ", *outer, " but ",
        rope.field(kKey), " is ", *inner);
  return outer ? *outer : rope.get_integer(kKey, 1, kMaxContextTokens);
}

RopeScaling read_scaling(const JsonObject& rope, const JsonObject& config) {
  RopeScaling scaling;
  scaling.kind = read_kind(rope);
  if (scaling.kind != RopeScaling::Kind::kNone) {
    scaling.factor = rope.get_number("factor", 1.0, kMaxFactor);
  }
  if (scaling.kind == RopeScaling::Kind::kLlama3) {
    scaling.low_freq_factor = rope.get_number("low_freq_factor", 1e-3, kMaxFactor);
    scaling.high_freq_factor = rope.get_number("high_freq_factor", 1e-3, kMaxFactor);
    CHECK(scaling.low_freq_factor < scaling.high_freq_factor, rope.path(), ": ",
          rope.field("low_freq_factor"), " must be less than high_freq_factor, got ",
          scaling.low_freq_factor, " and ", scaling.high_freq_factor);
    scaling.original_max_position_embeddings = read_original_context(rope, config);
  }
  check_whole_head_rotates(rope);
  const std::vector<std::string> unread = rope.unread_fields();
  CHECK(unread.empty(), rope.path(), ": ", unread.front(), " is not understood");
  return scaling;
}

// The parameters themselves: of v5, those of the layer type when they are given per type.
JsonObject select_parameters(const JsonObject& parameters, std::string_view layer_type) {
  const std::vector<std::string> keys = parameters.keys();
  const bool per_layer_type =
      !keys.empty() &&
      std::ranges::all_of(keys, [](const std::string& key) { return is_layer_type(key); });
  if (!per_layer_type) return parameters;
  const std::optional<JsonObject> selected = parameters.find_object(layer_type);
  CHECK(selected, parameters.path(), ": ", parameters.field(layer_type),
        " is missing; the layers of this model are of that type");
  return *selected;
}

}  // namespace

RopeTable read_rope_table(const JsonObject& config, std::string_view layer_type,
                          double default_theta) {
  check_whole_head_rotates(config);
  const std::optional<double> outer_theta = config.find_number("rope_theta", 1.0, kMaxTheta);
  const std::optional<JsonObject> v4 = config.find_object("rope_scaling");
  const std::optional<JsonObject> v5 = config.find_object("rope_parameters");
  CHECK(!v4 || !v5, config.path(),
        ": both rope_scaling and rope_parameters are given; only one of them can be meant");

  RopeTable rope;
  rope.theta = outer_theta.value_or(default_theta);
  if (!v4 && !v5) return rope;

  const JsonObject parameters = v5 ? select_parameters(*v5, layer_type) : *v4;
  if (const auto inner_theta = parameters.find_number("rope_theta", 1.0, kMaxTheta)) {
    CHECK(!outer_theta || *outer_theta == *inner_theta, config.path(), ": rope_theta is ",
          *outer_theta, " but ", parameters.field("rope_theta"), " is ", *inner_theta);
    rope.theta = *inner_theta;
  }
  rope.scaling = read_scaling(parameters, config);
  return rope;
}

}  // namespace tessera
