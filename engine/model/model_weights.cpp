#include "engine/model/model_weights.h"

#include <algorithm>

#include "engine/model/host_tensor.h"
#include "model_loaders/head_order.h"
#include "model_loaders/weight_specs.h"

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

// Rows of a source as its weight has them: of a vector, elements.
int64_t num_rows(const WeightSource& source, const WeightSpec& spec) {
  return spec.shape.rank() == 1 ? source.shape.num_elements() : source.shape[0];
}

// The sources of a weight and their rows of its tensor; those whose rows change places, and those
// that stay as they are, are pieces of their own.
void add_pieces(const WeightSpec& spec, const Checkpoint& checkpoint, const Tensor& tensor,
                std::span<const int64_t> order, std::vector<WeightPiece>& pieces) {
  int64_t begin = 0;
  for (const WeightSource& source : spec.sources) {
    const TensorEntry& entry = checkpoint.expect(source.name, source.shape);
    const int64_t num_reordered = source.transform.reordered_rows;
    const auto add = [&](int64_t first, int64_t end, std::span<const int64_t> order_of_rows) {
      if (first == end) return;
      pieces.push_back({.entry = &entry,
                        .destination = rows_of(tensor, begin + first, begin + end),
                        .first_row = first,
                        .order = order_of_rows,
                        .addend = source.transform.addend,
                        .factor = source.transform.factor});
    };
    add(0, num_reordered, order);
    add(num_reordered, num_rows(source, spec), {});
    begin += num_rows(source, spec);
  }
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
  head_order_ = head_order(config);
  for (const WeightSpec& spec : weight_specs(config)) {
    const DType dtype = kept_dtype(spec, checkpoint, operations);
    const Tensor tensor = arena.take(spec.sources.front().name, dtype, spec.shape);
    place(spec, tensor);
    add_pieces(spec, checkpoint, tensor, head_order_, pieces_);
    const bool is_looked_up = spec.role == WeightRole::kEmbedTokens && !config.ties_embeddings;
    if (!is_looked_up) bytes_per_token_ += tensor.size_bytes();
  }
  if (config.ties_embeddings) lm_head = embed_tokens;
  for (size_t i = 0; i < config.rope_tables.size(); ++i) {
    rope_tables.push_back(arena.take("RoPE table", DType::kFloat32, {2, config.head_dim / 2}));
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
