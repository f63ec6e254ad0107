#include "engine/model/model_weights.h"

#include "engine/model/host_tensor.h"
#include "model_loaders/weight_names.h"

namespace tessera {
namespace {

// Walks the model in the order of the forward pass, asking the arena for every tensor and the
// checkpoint for the pieces it is made of.
class Layout {
 public:
  Layout(const ModelConfig& config, const Checkpoint& checkpoint, const Backend& backend,
         Arena& arena)
      : config_(config), checkpoint_(checkpoint), backend_(backend), arena_(arena) {}

  Tensor vector(std::string_view name, int64_t size) {
    const TensorEntry& entry = checkpoint_.expect(name, {size});
    const Tensor tensor = arena_.take(name, DType::kFloat32, {size});
    pieces_.push_back({&entry, tensor});
    return tensor;
  }

  // Rows of several matrices, one below the other.
  struct Rows {
    std::string name;
    int64_t rows;
  };
  Tensor matrix(const std::vector<Rows>& parts, int64_t columns) {
    int64_t rows = 0;
    for (const Rows& part : parts) rows += part.rows;
    // Parts stored in different dtypes meet in the one that holds them all.
    DType stored = checkpoint_.expect(parts[0].name, {parts[0].rows, columns}).dtype;
    for (const Rows& part : parts) {
      if (checkpoint_.expect(part.name, {part.rows, columns}).dtype != stored) {
        stored = DType::kFloat32;
      }
    }
    const DType dtype = backend_.weight_dtype(stored);
    const Tensor tensor = arena_.take(parts[0].name, dtype, {rows, columns});
    int64_t begin = 0;
    for (const Rows& part : parts) {
      const TensorEntry& entry = checkpoint_.expect(part.name, {part.rows, columns});
      // While measuring there is no data, hence nothing to slice.
      const Tensor destination = tensor.empty() ? tensor : tensor.slice(begin, begin + part.rows);
      pieces_.push_back({&entry, destination});
      begin += part.rows;
    }
    return tensor;
  }

  LayerWeights layer(const WeightNames& names, int64_t index) {
    const auto name = [&](std::string_view pattern) { return layer_weight_name(pattern, index); };
    const int64_t hidden = config_.hidden_size;
    const int64_t query_size = config_.num_heads * config_.head_dim;
    const int64_t kv_size = config_.num_kv_heads * config_.head_dim;
    const int64_t intermediate = config_.intermediate_size;
    LayerWeights layer;
    layer.input_layernorm = vector(name(names.input_layernorm), hidden);
    layer.qkv_proj = matrix({{name(names.q_proj), query_size},
                             {name(names.k_proj), kv_size},
                             {name(names.v_proj), kv_size}},
                            hidden);
    layer.o_proj = matrix({{name(names.o_proj), hidden}}, query_size);
    layer.post_attention_layernorm = vector(name(names.post_attention_layernorm), hidden);
    layer.gate_up_proj = matrix(
        {{name(names.gate_proj), intermediate}, {name(names.up_proj), intermediate}}, hidden);
    layer.down_proj = matrix({{name(names.down_proj), hidden}}, intermediate);
    return layer;
  }

  std::vector<WeightPiece> take_pieces() { return std::move(pieces_); }

 private:
  const ModelConfig& config_;
  const Checkpoint& checkpoint_;
  const Backend& backend_;
  Arena& arena_;
  std::vector<WeightPiece> pieces_;
};

// Fills the tensors of `weights` from the layout.
void lay_out(ModelWeights& weights, Layout& layout, Arena& arena, const ModelConfig& config) {
  const WeightNames& names = weight_names_for(config.model_type);
  const auto embedding = [&](std::string_view name) {
    return layout.matrix({{std::string(name), config.vocab_size}}, config.hidden_size);
  };
  weights.embed_tokens = embedding(names.embed_tokens);
  for (int64_t i = 0; i < config.num_layers; ++i) weights.layers.push_back(layout.layer(names, i));
  weights.norm = layout.vector(names.final_norm, config.hidden_size);
  weights.lm_head = config.ties_embeddings ? weights.embed_tokens : embedding(names.lm_head);
  weights.inverse_frequencies =
      arena.take("inverse frequencies", DType::kFloat32, {config.head_dim / 2});
}

}  // namespace

ModelWeights::ModelWeights(const ModelConfig& config, const Checkpoint& checkpoint,
                           Backend& backend)
    : buffer_(backend.allocate(size_bytes(config, checkpoint, backend), "the weights")) {
  Arena arena(buffer_);
  Layout layout(config, checkpoint, backend, arena);
  lay_out(*this, layout, arena, config);
  pieces_ = layout.take_pieces();
  std::vector<float> frequencies;
  for (const double frequency : rope_inverse_frequencies(config)) {
    frequencies.push_back(static_cast<float>(frequency));
  }
  backend.upload(inverse_frequencies, host_tensor(frequencies));
  backend.synchronize();
}

uint64_t ModelWeights::read(const Checkpoint& checkpoint, Backend& backend, bool check_values,
                            const LoadProgress& progress) {
  const std::vector<WeightPiece> pieces = std::move(pieces_);
  read_weights(pieces, checkpoint, backend, check_values, progress);
  return file_bytes(pieces);
}

size_t ModelWeights::size_bytes(const ModelConfig& config, const Checkpoint& checkpoint,
                                const Backend& backend) {
  Arena measure;
  Layout layout(config, checkpoint, backend, measure);
  ModelWeights unused;
  lay_out(unused, layout, measure, config);
  return measure.used_bytes();
}

uint64_t ModelWeights::bytes_per_token() const {
  uint64_t bytes = lm_head.size_bytes() + norm.size_bytes();
  for (const LayerWeights& layer : layers) {
    bytes += layer.input_layernorm.size_bytes() + layer.qkv_proj.size_bytes() +
             layer.o_proj.size_bytes() + layer.post_attention_layernorm.size_bytes() +
             layer.gate_up_proj.size_bytes() + layer.down_proj.size_bytes();
  }
  return bytes;
}

}  // namespace tessera
