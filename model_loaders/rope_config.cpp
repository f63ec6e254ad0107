#include "model_loaders/rope_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "kernels/tensor/check.h"
#include "model_loaders/layer_config.h"
#include "model_loaders/rope_scaling.h"

namespace tessera {
namespace {

constexpr double kMaxTheta = 1e15;

// What config.json says about the layers of one type.
struct Parameters {
  std::optional<JsonObject> object;  // none: it says nothing
  bool is_nested = false;            // given per layer type
};

// Of v5, those of the layer type when they are given per type; of v4, those of all layers, or of
// the full ones where the others have a table of their own.
Parameters select_parameters(const JsonObject& json, std::string_view layer_type,
                             const RopeRules& rules) {
  const std::optional<JsonObject> v4 = json.find_object("rope_scaling");
  const std::optional<JsonObject> v5 = json.find_object("rope_parameters");
  CHECK(!v4 || !v5, json.path(),
        ": both rope_scaling and rope_parameters are given; only one of them can be meant");
  if (!v5) {
    const bool is_other = rules.sliding_layers_differ && layer_type == kSlidingAttention;
    return {.object = is_other ? std::nullopt : v4, .is_nested = rules.sliding_layers_differ};
  }
  const std::vector<std::string> keys = v5->keys();
  const bool per_layer_type =
      !keys.empty() &&
      std::ranges::all_of(keys, [](const std::string& key) { return is_layer_type(key); });
  if (!per_layer_type) {
    CHECK(keys.empty() || !rules.sliding_layers_differ, json.path(), ": ",
          json.field("rope_parameters"),
          " must be given per layer type: full_attention, sliding_attention");
    return {.object = v5, .is_nested = false};
  }
  const std::optional<JsonObject> selected = v5->find_object(layer_type);
  CHECK(selected, v5->path(), ": ", v5->field(layer_type),
        " is missing; the layers of this model are of that type");
  return {.object = selected, .is_nested = true};
}

// A number that config.json may have beside the parameters, among them or both.
std::optional<double> find_in_both(const JsonObject& json, std::string_view outer_key,
                                   const std::optional<JsonObject>& rope, std::string_view key,
                                   double low, double high) {
  const std::optional<double> outer = json.find_number(outer_key, low, high);
  const std::optional<double> inner = rope ? rope->find_number(key, low, high) : std::nullopt;
  CHECK(!outer || !inner || *outer == *inner, json.path(), ": ", outer_key, " is ", *outer, " but ",
        rope->field(key), " is ", *inner);
  return inner ? inner : outer;
}

double read_theta(const JsonObject& json, const std::optional<JsonObject>& rope,
                  std::string_view layer_type, const RopeRules& rules) {
  if (rules.local_theta && layer_type == kSlidingAttention) {
    return find_in_both(json, "rope_local_base_freq", rope, "rope_theta", 1.0, kMaxTheta)
        .value_or(*rules.local_theta);
  }
  return find_in_both(json, "rope_theta", rope, "rope_theta", 1.0, kMaxTheta)
      .value_or(rules.table.theta);
}

// Elements of a head that turn.
int64_t read_rotary_dim(const JsonObject& json, const std::optional<JsonObject>& rope,
                        const RopeRules& rules, int64_t head_dim) {
  constexpr std::string_view kKey = "partial_rotary_factor";
  if (rope && is_proportional_rope(*rope)) return head_dim;
  const double otherwise = rules.partial_rotary_factor.value_or(1.0);
  // Versions of transformers take null for 1 or fail on it, never for the class default.
  const bool is_null = json.is_null(kKey) || (rope && rope->is_null(kKey));
  CHECK(otherwise == 1.0 || !is_null, json.path(), ": ", kKey, " must be a number, got null");
  const double factor = find_in_both(json, kKey, rope, kKey, 0.0, 1.0).value_or(otherwise);
  CHECK(factor == 1.0 || rules.partial_rotary_factor, json.path(), ": ",
        rope && rope->contains(kKey) ? rope->field(kKey) : json.field(kKey), ' ', factor,
        " is not supported; supported: 1.0");
  const auto dim = static_cast<int64_t>(static_cast<double>(head_dim) * factor);
  CHECK(dim >= 2 && dim % 2 == 0, json.path(), ": ", kKey, ' ', factor, " of head_dim ", head_dim,
        " is ", dim, ", which must be even and not 0");
  return dim;
}

// Ministral 3: given among the parameters of the rotary embedding, with the original length.
QueryScalingSpec read_query_scaling(const JsonObject& rope) {
  const auto beta = rope.find_number("llama_4_scaling_beta", 0.0, 1e3);
  rope.find_integer("max_position_embeddings", 1, kMaxContextTokens);  // the same as outside
  if (!beta || *beta == 0.0) return {};
  return {.beta = *beta,
          .original_max_position_embeddings =
              rope.get_integer("original_max_position_embeddings", 1, kMaxContextTokens)};
}

}  // namespace

RopeConfig read_rope_config(const JsonObject& json, std::string_view layer_type,
                            const ModelFamily& family, const ModelConfig& sizes) {
  const RopeRules& rules = family.rope;
  const auto [rope, is_nested] = select_parameters(json, layer_type, rules);
  const int64_t dim = read_rotary_dim(json, rope, rules, sizes.head_dim);
  RopeConfig config{
      .table = rules.table,
      .layout = {.dim = dim == sizes.head_dim ? 0 : dim, .is_interleaved = rules.is_interleaved},
      .query_scaling = family.block.query_scaling};
  config.table.theta = read_theta(json, rope, layer_type, rules);
  if (rules.original_max_position_embeddings > 0) {
    // Files name it where nothing is stretched, too.
    json.find_integer("original_max_position_embeddings", 1, kMaxContextTokens);
  }
  if (!rope) return config;

  if (rules.scales_queries) config.query_scaling = read_query_scaling(*rope);
  RopeScaling& scaling = config.table.scaling;
  scaling =
      read_rope_scaling(*rope, {.config = json,
                                .max_position_embeddings = sizes.max_position_embeddings,
                                .default_original_context = rules.original_max_position_embeddings,
                                .rotary_dim = dim,
                                .ignores_truncate = is_nested});
  CHECK(scaling.kind != RopeScaling::Kind::kYarn || config.table.theta > 1.0, json.path(),
        ": rope_theta must be more than 1 for yarn");
  CHECK(scaling.kind != RopeScaling::Kind::kDynamic || dim > 2, json.path(),
        ": dynamic RoPE needs more than one pair of elements that turns");
  return config;
}

}  // namespace tessera
