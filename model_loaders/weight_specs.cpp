#include "model_loaders/weight_specs.h"

#include <span>
#include <string_view>

#include "kernels/tensor/check.h"
#include "model_loaders/head_order.h"
#include "model_loaders/model_family.h"
#include "model_loaders/weight_names.h"

namespace tessera {
namespace {

// An extent of a shape, and the fields of config.json that give it.
struct Extent {
  int64_t size = 0;
  std::string fields;
  bool is_of_rotating_heads = false;  // of queries and keys
};

struct RoleShape {
  std::vector<Extent> rows;       // of each source
  std::optional<Extent> columns;  // none: a vector
  ShardAxis shard_axis = ShardAxis::kNone;
  bool is_flattened = false;  // a vector in memory, the rows of the checkpoint behind each other

  // How many rows so many of the checkpoint are in memory.
  int64_t rows_in_memory(int64_t size) const { return is_flattened ? size * columns->size : size; }
};

RoleShape role_shape(WeightRole role, const ModelConfig& config) {
  const Extent vocabulary{config.vocab_size, "vocab_size"};
  const Extent hidden{config.hidden_size, "hidden_size"};
  const Extent intermediate{config.intermediate_size, "intermediate_size"};
  const Extent head{config.head_dim, "head_dim", true};
  const Extent query{config.num_heads * config.head_dim, "num_attention_heads * head_dim", true};
  const Extent key{config.num_kv_heads * config.head_dim, "num_key_value_heads * head_dim", true};
  const Extent heads{config.num_heads, "num_attention_heads", true};
  const Extent kv_heads{config.num_kv_heads, "num_key_value_heads", true};
  const Extent value{key.size, key.fields, false};
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
      return {{query, key, value}, hidden, ShardAxis::kRows};
    case WeightRole::kQkvBias:
      return {{query, key, value}, {}, ShardAxis::kRows};
    case WeightRole::kQkNorm:
      if (config.block.qk_norm == QkNorm::kWholeProjection) {
        return {{query, key}, {}, ShardAxis::kRows};
      }
      if (config.block.qk_norm == QkNorm::kLayerNormPerHead) {
        return {{heads, kv_heads}, head, ShardAxis::kRows, true};
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

Shape shape_of(const Extent& rows, const std::optional<Extent>& columns) {
  return columns ? Shape{rows.size, columns->size} : Shape{rows.size};
}

std::string fields_of(const Extent& rows, const std::optional<Extent>& columns) {
  return columns ? concat('[', rows.fields, ", ", columns->fields, ']')
                 : concat('[', rows.fields, ']');
}

// Rows below each other.
Extent sum(std::span<const Extent> extents) {
  Extent all;
  for (const Extent& extent : extents) {
    all.size += extent.size;
    all.fields += concat(all.fields.empty() ? "" : " + ", extent.fields);
  }
  return all;
}

bool is_norm(WeightRole role) {
  switch (role) {
    case WeightRole::kInputLayernorm:
    case WeightRole::kQkNorm:
    case WeightRole::kPostAttentionLayernorm:
    case WeightRole::kPreFeedforwardLayernorm:
    case WeightRole::kPostFeedforwardLayernorm:
    case WeightRole::kNorm:
      return true;
    default:
      return false;
  }
}

// Of a source that holds these rows of a role.
WeightTransform transform_of(WeightRole role, const RoleShape& shape, std::span<const Extent> rows,
                             const ModelConfig& config) {
  WeightTransform transform;
  if (!head_order(config).empty()) {
    for (const Extent& extent : rows) {
      if (extent.is_of_rotating_heads) {
        transform.reordered_rows += shape.rows_in_memory(extent.size);
      }
    }
  }
  if (is_norm(role)) transform.addend = config.norm_offset;
  // Products with the output matrix are linear in its input.
  if (role == WeightRole::kNorm) transform.factor = config.logit_multiplier;
  return transform;
}

WeightSpec weight_spec(const ModelConfig& config, WeightRole role, std::optional<int64_t> layer) {
  const RoleShape shape = role_shape(role, config);
  const auto names = weight_sources(model_family(config.model_type), stored_role(role, config));
  // One name stands for a tensor that holds all rows.
  const bool is_fused = names.size() == 1;
  CHECK(is_fused || names.size() == shape.rows.size(), "weight role ", static_cast<int>(role),
        " has ", counted(names.size(), "name"), " for ", counted(shape.rows.size(), "source"));
  WeightSpec spec{.role = role,
                  .layer = layer,
                  .expert = {},
                  .sources = {},
                  .shape = shape.is_flattened ? Shape{shape.rows_in_memory(sum(shape.rows).size)}
                                              : shape_of(sum(shape.rows), shape.columns),
                  .shard_axis = shape.shard_axis};
  for (size_t i = 0; i < names.size(); ++i) {
    const auto rows =
        is_fused ? std::span<const Extent>(shape.rows) : std::span(shape.rows).subspan(i, 1);
    const Extent all = sum(rows);
    spec.sources.push_back(
        {.name = prefixed(weight_name(names[i], layer, spec.expert), config.name_prefix),
         .shape = shape_of(all, shape.columns),
         .shape_fields = fields_of(all, shape.columns),
         .transform = transform_of(role, shape, rows, config)});
  }
  return spec;
}

}  // namespace

WeightRole stored_role(WeightRole role, const ModelConfig& config) {
  const bool is_lm_head = role == WeightRole::kEmbedTokens && config.embedding_is_lm_head;
  return is_lm_head ? WeightRole::kLmHead : role;
}

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
