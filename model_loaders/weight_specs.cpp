#include "model_loaders/weight_specs.h"

#include <cmath>
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
  int64_t stored_size = 0;  // in the checkpoint
  std::string fields;
  int64_t size = stored_size;  // in memory
  AxisOrder order = AxisOrder::kAsStored;
};

struct RoleShape {
  std::vector<Extent> rows;       // of each source
  std::optional<Extent> columns;  // none: a vector
  ShardAxis shard_axis = ShardAxis::kNone;
  bool is_flattened = false;  // a vector in memory, the rows of the checkpoint behind each other

  // How many rows so many rows are where a vector has one element a row.
  int64_t flattened(int64_t num_rows) const {
    return is_flattened ? num_rows * columns->size : num_rows;
  }
};

// Of a size that zeros may stand behind.
Extent padded_extent(const char* field, int64_t stored_size, int64_t size, AxisOrder order) {
  return {stored_size, field, size, stored_size == size ? AxisOrder::kAsStored : order};
}

// The extents of heads. Elements of queries and keys change places where RoPE wants it; those of
// values, and of what is computed of them, only where there are zeros.
struct HeadExtents {
  Extent head, query, key, value, output;

  explicit HeadExtents(const ModelConfig& config) {
    const PaddableSizes stored = config.stored_sizes();
    const bool has_more_queries = stored.num_heads != config.num_heads;
    const bool has_zeros = has_more_queries || stored.head_dim != config.head_dim;
    const AxisOrder turning = head_order(config).empty() ? AxisOrder::kAsStored : AxisOrder::kHeads;
    const AxisOrder resting = has_zeros ? turning : AxisOrder::kAsStored;
    const auto keys = [&](AxisOrder order) {
      return Extent{config.num_kv_heads * stored.head_dim, "num_key_value_heads * head_dim",
                    config.num_kv_heads * config.head_dim, order};
    };
    const auto queries = [&](AxisOrder order) {
      return Extent{stored.num_heads * stored.head_dim, "num_attention_heads * head_dim",
                    config.num_heads * config.head_dim,
                    has_more_queries ? AxisOrder::kQueries : order};
    };
    head = {stored.head_dim, "head_dim", config.head_dim, turning};
    query = queries(turning);
    output = queries(resting);
    key = keys(turning);
    value = keys(resting);
  }
};

RoleShape role_shape(WeightRole role, const ModelConfig& config) {
  const Extent vocabulary{config.vocab_size, "vocab_size"};
  const PaddableSizes stored = config.stored_sizes();
  const Extent hidden =
      padded_extent("hidden_size", stored.hidden_size, config.hidden_size, AxisOrder::kHidden);
  const Extent intermediate = padded_extent("intermediate_size", stored.intermediate_size,
                                            config.intermediate_size, AxisOrder::kIntermediate);
  const auto [head, query, key, value, output] = HeadExtents(config);
  const Extent heads{config.num_heads, "num_attention_heads", config.num_heads, head.order};
  const Extent kv_heads{config.num_kv_heads, "num_key_value_heads", config.num_kv_heads,
                        head.order};
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
      return {{hidden}, output, ShardAxis::kColumns};
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

Shape shape_in_memory(const RoleShape& shape, const Extent& rows) {
  if (shape.is_flattened || !shape.columns) return {shape.flattened(rows.size)};
  return {rows.size, shape.columns->size};
}

Shape stored_shape(const Extent& rows, const std::optional<Extent>& columns) {
  return columns ? Shape{rows.stored_size, columns->stored_size} : Shape{rows.stored_size};
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
    all.stored_size += extent.stored_size;
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

// What makes up for zeros among the elements that RMSNorm takes a mean over (padded_config.h).
double norm_factor(const Extent& elements) {
  return std::sqrt(static_cast<double>(elements.stored_size) / static_cast<double>(elements.size));
}

// Of a source that holds these rows of a role.
WeightTransform transform_of(WeightRole role, const RoleShape& shape, std::span<const Extent> rows,
                             const ModelConfig& config) {
  WeightTransform transform;
  for (const Extent& extent : rows) {
    transform.rows.push_back({shape.flattened(extent.stored_size), extent.order});
  }
  if (shape.columns && !shape.is_flattened) transform.columns = shape.columns->order;
  if (is_norm(role)) {
    transform.addend = config.norm_offset;
    transform.factor = norm_factor(rows.front());
  }
  // Products with the output matrix are linear in its input.
  if (role == WeightRole::kNorm) transform.factor *= config.logit_multiplier;
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
                  .shape = shape_in_memory(shape, sum(shape.rows)),
                  .shard_axis = shape.shard_axis};
  for (size_t i = 0; i < names.size(); ++i) {
    const auto rows =
        is_fused ? std::span<const Extent>(shape.rows) : std::span(shape.rows).subspan(i, 1);
    const Extent all = sum(rows);
    spec.sources.push_back(
        {.name = prefixed(weight_name(names[i], layer, spec.expert), config.name_prefix),
         .shape = stored_shape(all, shape.columns),
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
