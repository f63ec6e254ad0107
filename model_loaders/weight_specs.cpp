#include "model_loaders/weight_specs.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "kernels/tensor/check.h"
#include "model_loaders/model_family.h"
#include "model_loaders/weight_names.h"

namespace tessera {
namespace {

// An extent of a shape, and the fields of config.json that give it.
struct Extent {
  int64_t size = 0;
  std::string_view fields;
};

struct RoleShape {
  std::vector<Extent> rows;       // of each source
  std::optional<Extent> columns;  // none: a vector
  ShardAxis shard_axis = ShardAxis::kNone;
};

RoleShape role_shape(WeightRole role, const ModelConfig& config) {
  const Extent vocabulary{config.vocab_size, "vocab_size"};
  const Extent hidden{config.hidden_size, "hidden_size"};
  const Extent intermediate{config.intermediate_size, "intermediate_size"};
  const Extent head{config.head_dim, "head_dim"};
  const Extent query{config.num_heads * config.head_dim, "num_attention_heads * head_dim"};
  const Extent key_value{config.num_kv_heads * config.head_dim, "num_key_value_heads * head_dim"};
  switch (role) {
    case WeightRole::kEmbedTokens:
    case WeightRole::kLmHead:
      return {{vocabulary}, hidden, ShardAxis::kRows};
    case WeightRole::kInputLayernorm:
    case WeightRole::kPostAttentionLayernorm:
    case WeightRole::kPreFeedforwardLayernorm:
    case WeightRole::kPostFeedforwardLayernorm:
    case WeightRole::kOBias:
    case WeightRole::kDownBias:
    case WeightRole::kNorm:
      return {{hidden}, {}, ShardAxis::kNone};
    case WeightRole::kQkvProj:
      return {{query, key_value, key_value}, hidden, ShardAxis::kRows};
    case WeightRole::kQkvBias:
      return {{query, key_value, key_value}, {}, ShardAxis::kRows};
    case WeightRole::kQkNorm:
      if (config.block.qk_norm == QkNorm::kWholeProjection) {
        return {{query, key_value}, {}, ShardAxis::kRows};
      }
      return {{head, head}, {}, ShardAxis::kNone};
    case WeightRole::kOProj:
      return {{hidden}, query, ShardAxis::kColumns};
    case WeightRole::kGateUpProj:
      return {{intermediate, intermediate}, hidden, ShardAxis::kRows};
    case WeightRole::kGateUpBias:
      return {{intermediate, intermediate}, {}, ShardAxis::kRows};
    case WeightRole::kDownProj:
      return {{hidden}, intermediate, ShardAxis::kColumns};
  }
  throw Error("a weight without a role");
}

// The roles of a layer. A role that only some blocks have depends on a field of BlockSpec.
std::vector<WeightRole> layer_roles(const BlockSpec& block) {
  const bool has_pre_norm = block.norm_placement != NormPlacement::kPost;
  const bool has_post_norm = block.norm_placement != NormPlacement::kPre;
  std::vector<WeightRole> roles;
  const auto add = [&](WeightRole role, bool is_present = true) {
    if (is_present) roles.push_back(role);
  };
  add(WeightRole::kInputLayernorm, has_pre_norm);
  add(WeightRole::kQkvProj);
  add(WeightRole::kQkvBias, block.biases.qkv);
  add(WeightRole::kQkNorm, block.qk_norm != QkNorm::kNone);
  add(WeightRole::kOProj);
  add(WeightRole::kOBias, block.biases.output);
  add(WeightRole::kPostAttentionLayernorm, has_post_norm);
  add(WeightRole::kPreFeedforwardLayernorm, has_pre_norm && !block.is_parallel);
  add(WeightRole::kGateUpProj);
  add(WeightRole::kGateUpBias, block.biases.gate_up);
  add(WeightRole::kDownProj);
  add(WeightRole::kDownBias, block.biases.down);
  add(WeightRole::kPostFeedforwardLayernorm, has_post_norm);
  return roles;
}

// What the family calls the sources of a role.
std::span<const std::string_view> names_for(WeightRole role, const ModelFamily& family) {
  const auto names = std::ranges::find(family.weights, role, &WeightNames::role);
  CHECK(names != family.weights.end(), "model type ", family.model_type,
        " has no names for weight role ", static_cast<int>(role));
  const auto* const end = std::ranges::find(names->sources, "");
  return {names->sources.begin(), end};
}

Shape shape_of(const Extent& rows, const std::optional<Extent>& columns) {
  return columns ? Shape{rows.size, columns->size} : Shape{rows.size};
}

std::string fields_of(const Extent& rows, const std::optional<Extent>& columns) {
  return columns ? concat('[', rows.fields, ", ", columns->fields, ']')
                 : concat('[', rows.fields, ']');
}

WeightSpec weight_spec(const ModelConfig& config, WeightRole role, std::optional<int64_t> layer) {
  const RoleShape shape = role_shape(role, config);
  const auto names = names_for(role, model_family(config.model_type));
  CHECK(names.size() == shape.rows.size(), "weight role ", static_cast<int>(role), " has ",
        counted(names.size(), "name"), " for ", counted(shape.rows.size(), "source"));
  WeightSpec spec{.role = role,
                  .layer = layer,
                  .expert = {},
                  .sources = {},
                  .shape = {},
                  .shard_axis = shape.shard_axis};
  Extent all_rows;  // of all sources together
  for (size_t i = 0; i < shape.rows.size(); ++i) {
    spec.sources.push_back({.name = weight_name(names[i], layer, spec.expert),
                            .shape = shape_of(shape.rows[i], shape.columns),
                            .shape_fields = fields_of(shape.rows[i], shape.columns)});
    all_rows.size += shape.rows[i].size;
  }
  spec.shape = shape_of(all_rows, shape.columns);
  return spec;
}

}  // namespace

std::vector<WeightSpec> weight_specs(const ModelConfig& config) {
  std::vector<WeightSpec> specs;
  const auto add = [&](WeightRole role, std::optional<int64_t> layer = {}) {
    specs.push_back(weight_spec(config, role, layer));
  };
  const std::vector<WeightRole> of_layer = layer_roles(config.block);
  add(WeightRole::kEmbedTokens);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const WeightRole role : of_layer) add(role, layer);
  }
  add(WeightRole::kNorm);
  if (!config.ties_embeddings) add(WeightRole::kLmHead);
  return specs;
}

}  // namespace tessera
