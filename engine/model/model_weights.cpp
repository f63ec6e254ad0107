#include "engine/model/model_weights.h"

#include <algorithm>

#include "engine/model/host_tensor.h"
#include "model_loaders/head_order.h"

namespace tessera {
namespace {

// What a weight is kept as. Vectors are float32; sources of a matrix that are stored in different
// dtypes meet in the one that holds them all.
DType kept_dtype(const WeightSpec& spec, const Checkpoint& checkpoint,
                 const Operations& operations) {
  if (spec.shape.rank() == 1) return DType::kFloat32;
  const auto stored = [&](const WeightSource& source) {
    return checkpoint.expect(source.name, source.shape).dtype;
  };
  const DType first = stored(spec.sources.front());
  const bool is_same = std::ranges::all_of(
      spec.sources, [&](const WeightSource& source) { return stored(source) == first; });
  return operations.weight_dtype(is_same ? first : DType::kFloat32);
}

// Rows [begin, end) of a weight's tensor. While measuring there is no data, hence nothing to slice.
Tensor rows_of(const Tensor& tensor, int64_t begin, int64_t end) {
  return tensor.empty() ? tensor : tensor.slice(begin, end);
}

// How many rows in memory so many rows of the checkpoint become in this order.
int64_t rows_in_memory(int64_t num_rows, std::span<const int64_t> order) {
  if (order.empty()) return num_rows;
  const auto group = static_cast<int64_t>(order.size());
  return num_rows / (group - std::ranges::count(order, kZeroElement)) * group;
}

}  // namespace

ModelWeights::ModelWeights(const ModelConfig& config, const Checkpoint& checkpoint,
                           Operations& operations, int64_t context_length)
    : buffer_(
          operations.device().allocate(size_bytes(config, checkpoint, operations), "the weights")) {
  Arena arena(buffer_);
  lay_out(config, checkpoint, operations, arena);
  for (size_t i = 0; i < config.rope_tables.size(); ++i) {
    const RopeValues values =
        rope_values(config.rope_tables[i], config.head_dim, config.rotary_dim(), context_length);
    std::vector<float> table(values.inverse_frequencies.begin(), values.inverse_frequencies.end());
    table.insert(table.end(), values.amplitudes.begin(), values.amplitudes.end());
    operations.device().upload(rope_tables[i], host_tensor(table, rope_tables[i].shape));
    operations.device().synchronize();
  }
}

void ModelWeights::lay_out(const ModelConfig& config, const Checkpoint& checkpoint,
                           const Operations& operations, Arena& arena) {
  layers.resize(static_cast<size_t>(config.num_layers));
  const PaddableSizes stored = config.stored_sizes();
  orders_ = {
      {AxisOrder::kAsStored, {}},
      {AxisOrder::kHeads, head_order(config)},
      {AxisOrder::kQueries, query_order(config)},
      {AxisOrder::kHidden, zeros_behind(stored.hidden_size, config.hidden_size)},
      {AxisOrder::kIntermediate, zeros_behind(stored.intermediate_size, config.intermediate_size)}};
  for (const WeightSpec& spec : weight_specs(config)) {
    const DType dtype = kept_dtype(spec, checkpoint, operations);
    const Tensor tensor = arena.take(spec.sources.front().name, dtype, spec.shape);
    place(spec, tensor);
    add_pieces(spec, checkpoint, tensor);
    const bool is_looked_up = spec.role == WeightRole::kEmbedTokens && !config.ties_embeddings;
    if (!is_looked_up) bytes_per_token_ += tensor.size_bytes();
  }
  if (config.ties_embeddings) lm_head = embed_tokens;
  for (size_t i = 0; i < config.rope_tables.size(); ++i) {
    rope_tables.push_back(arena.take("RoPE table", DType::kFloat32, {2, config.head_dim / 2}));
  }
}

void ModelWeights::add_pieces(const WeightSpec& spec, const Checkpoint& checkpoint,
                              const Tensor& tensor) {
  int64_t begin = 0;  // in memory
  for (const WeightSource& source : spec.sources) {
    const WeightTransform& transform = source.transform;
    const TensorEntry& entry = checkpoint.expect(source.name, source.shape);
    int64_t first_row = 0;  // in the checkpoint
    for (const auto& [count, order] : transform.rows) {
      const std::vector<int64_t>& row_order = orders_.at(order);
      const int64_t size = rows_in_memory(count, row_order);
      pieces_.push_back({.entry = &entry,
                         .destination = rows_of(tensor, begin, begin + size),
                         .first_row = first_row,
                         .row_order = row_order,
                         .column_order = orders_.at(transform.columns),
                         .addend = transform.addend,
                         .factor = transform.factor});
      begin += size;
      first_row += count;
    }
  }
}

void ModelWeights::place(const WeightSpec& spec, const Tensor& tensor) {
  const auto layer = [&]() -> LayerWeights& {
    return layers.at(static_cast<size_t>(spec.layer.value()));
  };
  switch (spec.role) {
    case WeightRole::kEmbedTokens:
      embed_tokens = tensor;
      return;
    case WeightRole::kInputLayernorm:
      layer().input_layernorm = tensor;
      return;
    case WeightRole::kQkvProj:
      layer().qkv_proj = tensor;
      return;
    case WeightRole::kQkvBias:
      layer().qkv_proj.bias = tensor;
      return;
    case WeightRole::kQkNorm:
      layer().qk_norm = tensor;
      return;
    case WeightRole::kOProj:
      layer().o_proj = tensor;
      return;
    case WeightRole::kOBias:
      layer().o_proj.bias = tensor;
      return;
    case WeightRole::kPostAttentionLayernorm:
      layer().post_attention_layernorm = tensor;
      return;
    case WeightRole::kPreFeedforwardLayernorm:
      layer().pre_feedforward_layernorm = tensor;
      return;
    case WeightRole::kGateUpProj:
      layer().gate_up_proj = tensor;
      return;
    case WeightRole::kGateUpBias:
      layer().gate_up_proj.bias = tensor;
      return;
    case WeightRole::kDownProj:
      layer().down_proj = tensor;
      return;
    case WeightRole::kDownBias:
      layer().down_proj.bias = tensor;
      return;
    case WeightRole::kPostFeedforwardLayernorm:
      layer().post_feedforward_layernorm = tensor;
      return;
    case WeightRole::kNorm:
      norm = tensor;
      return;
    case WeightRole::kLmHead:
      lm_head = tensor;
      return;
  }
  throw Error("a weight without a role");
}

uint64_t ModelWeights::read(const Checkpoint& checkpoint, Device& device, bool check_values,
                            const LoadProgress& progress) {
  const std::vector<WeightPiece> pieces = std::move(pieces_);
  read_weights(pieces, checkpoint, device, check_values, progress);
  return file_bytes(pieces);
}

size_t ModelWeights::size_bytes(const ModelConfig& config, const Checkpoint& checkpoint,
                                const Operations& operations) {
  Arena measure;
  ModelWeights().lay_out(config, checkpoint, operations, measure);
  return measure.used_bytes();
}

}  // namespace tessera
