#include "model_loaders/rope_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
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
  bool is_v5 = false;
  bool is_nested = false;  // given per layer type
};

// Layers of several types may say the same.
void warn_once(std::string warning, std::vector<std::string>& warnings) {
  if (std::ranges::find(warnings, warning) == warnings.end()) {
    warnings.push_back(std::move(warning));
  }
}

void warn_of_difference(const JsonObject& json, std::vector<std::string>& warnings) {
  warn_once(
      concat(json.path(), ": rope_scaling and rope_parameters differ; rope_scaling is taken, ",
             "as in transformers 5"),
      warnings);
}

// The parameters themselves, or those of each layer type.
std::vector<JsonObject> parameters_of_types(const JsonObject& v5) {
  std::vector<JsonObject> types;
  for (const std::string& key : v5.keys()) {
    if (!is_layer_type(key)) continue;
    if (auto parameters = v5.find_object(key)) types.push_back(std::move(*parameters));
  }
  return types.empty() ? std::vector<JsonObject>{v5} : types;
}

// Of parameters that name none.
double default_theta(const RopeRules& rules) {
  return rules.theta_of_parameters.value_or(rules.table.theta);
}

// rope_scaling and rope_parameters are both there: in transformers 5 the first then takes the place
// of the second as a whole. So it does here, unless a theta would be lost that stands in
// rope_parameters alone: nobody means that who adds rope_scaling.
void replace_parameters(const JsonObject& json, const JsonObject& v4, const JsonObject& v5,
                        const RopeRules& rules, std::vector<std::string>& warnings) {
  constexpr std::string_view kTheta = "rope_theta";
  const auto theta_of = [&](const JsonObject& object) {
    return object.find_number(kTheta, 1.0, kMaxTheta);
  };
  const std::optional<double> own = theta_of(v4);
  const double taken = own ? *own : theta_of(json).value_or(default_theta(rules));
  for (const JsonObject& parameters : parameters_of_types(v5)) {
    const double replaced = theta_of(parameters).value_or(taken);
    if (replaced != taken) {
      throw Error(concat(json.path(), ": ", parameters.field(kTheta), " is ", replaced,
                         ", but rope_scaling takes the place of rope_parameters and rope_theta is ",
                         taken, " with it"),
                  "write all of them into rope_parameters");
    }
    const auto is_same = [&](const std::string& key) {
      return key == kTheta || v4.has_same(key, parameters);
    };
    if (!std::ranges::all_of(parameters.keys(), is_same)) warn_of_difference(json, warnings);
  }
}

// The same in families whose layers with a window have a table of their own, which rope_scaling
// does not stretch: it is put over the parameters of the others, key by key.
JsonObject scaled_parameters(const JsonObject& json, const JsonObject& v4,
                             const JsonObject& parameters, std::vector<std::string>& warnings) {
  const auto is_same = [&](const std::string& key) { return v4.has_same(key, parameters); };
  if (!std::ranges::all_of(v4.keys(), is_same)) warn_of_difference(json, warnings);
  return parameters.updated(v4);
}

// Of v5, those of the layer type when they are given per type; of v4, those of all layers, or of
// the full ones where the others have a table of their own.
Parameters select_parameters(const JsonObject& json, std::string_view layer_type,
                             const RopeRules& rules, std::vector<std::string>& warnings) {
  const std::optional<JsonObject> v4 = json.find_object("rope_scaling");
  const std::optional<JsonObject> v5 = json.find_object("rope_parameters");
  const bool is_v4 = v4 && !v4->keys().empty();
  const bool replaces = is_v4 && v5 && !rules.sliding_layers_differ;
  if (replaces) replace_parameters(json, *v4, *v5, rules, warnings);
  if (replaces || !v5) {
    const bool is_other = rules.sliding_layers_differ && layer_type == kSlidingAttention;
    return {.object = is_other || !is_v4 ? std::nullopt : v4,
            .is_nested = rules.sliding_layers_differ};
  }
  const std::vector<std::string> keys = v5->keys();
  const bool per_layer_type = !keys.empty() && std::ranges::all_of(keys, is_layer_type);
  if (!per_layer_type) {
    CHECK(keys.empty() || !rules.sliding_layers_differ, json.path(), ": ",
          json.field("rope_parameters"),
          " must be given per layer type: full_attention, sliding_attention");
    return {.object = v5, .is_v5 = true};
  }
  const std::optional<JsonObject> selected = v5->find_object(layer_type);
  CHECK(selected, v5->path(), ": ", v5->field(layer_type),
        " is missing; the layers of this model are of that type");
  const bool is_scaled = is_v4 && !replaces && layer_type == kFullAttention;
  return {.object = is_scaled ? scaled_parameters(json, *v4, *selected, warnings) : selected,
          .is_v5 = true,
          .is_nested = true};
}

// A number that config.json may have beside the parameters, among them or both. Where transformers
// 4 saves again what 5 has saved, it writes the default of the class beside the parameters, which
// it does not know, and keeps them: they are what the model was trained with, and what 5 takes.
std::optional<double> find_in_both(const JsonObject& json, std::string_view outer_key,
                                   const Parameters& parameters, std::string_view key,
                                   NumberLimits<double> limits,
                                   std::vector<std::string>& warnings) {
  const std::optional<JsonObject>& rope = parameters.object;
  const std::optional<double> outer = json.find_number(outer_key, limits);
  const std::optional<double> inner = rope ? rope->find_number(key, limits) : std::nullopt;
  if (outer && inner && *outer != *inner) {
    const std::string problem = concat(json.path(), ": ", json.field(outer_key), " is ", *outer,
                                       " but ", rope->field(key), " is ", *inner);
    if (!parameters.is_v5) throw Error(problem);
    warn_once(problem + "; the latter is taken, as in transformers 5", warnings);
  }
  return inner ? inner : outer;
}

double read_theta(const JsonObject& json, const Parameters& parameters, std::string_view layer_type,
                  const RopeRules& rules, std::vector<std::string>& warnings) {
  const bool is_local = rules.local_theta && layer_type == kSlidingAttention;
  const std::optional<double> given =
      find_in_both(json, is_local ? "rope_local_base_freq" : "rope_theta", parameters, "rope_theta",
                   {1.0, kMaxTheta}, warnings);
  if (rules.theta_of_parameters && !parameters.object) {
    const double theta = rules.table.theta;
    if (given && *given != theta) {
      warn_once(concat(json.path(), ": ", json.field("rope_theta"), " is ", *given, " but without ",
                       "rope_parameters it is ", theta, ", as in transformers 5"),
                warnings);
    }
    return theta;
  }
  return given.value_or(is_local ? *rules.local_theta : default_theta(rules));
}

// Elements of a head that turn.
int64_t read_rotary_dim(const JsonObject& json, const Parameters& parameters,
                        const RopeRules& rules, int64_t head_dim,
                        std::vector<std::string>& warnings) {
  constexpr std::string_view kKey = "partial_rotary_factor";
  const std::optional<JsonObject>& rope = parameters.object;
  if (rope && is_proportional_rope(*rope)) return head_dim;
  const double otherwise = rules.partial_rotary_factor.value_or(1.0);
  // Versions of transformers take null for 1 or fail on it, never for the class default.
  const bool is_null = json.is_null(kKey) || (rope && rope->is_null(kKey));
  CHECK(otherwise == 1.0 || !is_null, json.path(), ": ", kKey, " must be a number, got null");
  const double factor =
      find_in_both(json, kKey, parameters, kKey, {0.0, 1.0}, warnings).value_or(otherwise);
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
                            const ModelFamily& family, const ModelConfig& sizes,
                            std::vector<std::string>& warnings) {
  const RopeRules& rules = family.rope;
  const Parameters parameters = select_parameters(json, layer_type, rules, warnings);
  const std::optional<JsonObject>& rope = parameters.object;
  const int64_t dim = read_rotary_dim(json, parameters, rules, sizes.head_dim, warnings);
  RopeConfig config{
      .table = rules.table,
      .layout = {.dim = dim == sizes.head_dim ? 0 : dim, .is_interleaved = rules.is_interleaved},
      .query_scaling = family.block.query_scaling};
  config.table.theta = read_theta(json, parameters, layer_type, rules, warnings);
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
                                .ignores_truncate = parameters.is_nested});
  CHECK(scaling.kind != RopeScaling::Kind::kYarn || config.table.theta > 1.0, json.path(),
        ": rope_theta must be more than 1 for yarn");
  CHECK(scaling.kind != RopeScaling::Kind::kDynamic || dim > 2, json.path(),
        ": dynamic RoPE needs more than one pair of elements that turns");
  return config;
}

}  // namespace tessera
