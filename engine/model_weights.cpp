#include "engine/model_weights.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/host_tensor.h"
#include "model_loaders/weight_names.h"

namespace tessera {
namespace {

// Large enough that reads and copies run at full speed, small enough to be negligible.
constexpr uint64_t kReadChunkBytes = uint64_t{32} << 20;

// One tensor of the checkpoint and the part of a device tensor it fills.
struct Piece {
  const TensorEntry* entry = nullptr;
  Tensor destination;
};

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

  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  const ModelConfig& config_;
  const Checkpoint& checkpoint_;
  const Backend& backend_;
  Arena& arena_;
  std::vector<Piece> pieces_;
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

void check_finite(const TensorEntry& entry, const Tensor& values, int64_t begin_element) {
  const auto scan = [&]<typename T>(const T* data) {
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      CHECK(std::isfinite(to_float(data[i])), "tensor '", entry.name, "' holds ", to_float(data[i]),
            " at flat index ", begin_element + i);
    }
  };
  if (values.dtype == DType::kFloat32) scan(values.as<float>());
  if (values.dtype == DType::kFloat16) scan(values.as<Float16>());
  if (values.dtype == DType::kBFloat16) scan(values.as<BFloat16>());
}

// Copies one tensor of the checkpoint to its place through `staging`, chunk by chunk.
void load_piece(const Piece& piece, const Checkpoint& checkpoint, Backend& backend,
                bool check_values, std::vector<std::byte>& staging,
                const std::function<void(uint64_t)>& on_bytes) {
  const TensorEntry& entry = *piece.entry;
  const auto element_bytes = static_cast<uint64_t>(size_of(entry.dtype));
  const Tensor flat = piece.destination.reshape({entry.shape.num_elements()});
  for (uint64_t begin = 0; begin < entry.size_bytes; begin += kReadChunkBytes) {
    const uint64_t bytes = std::min(kReadChunkBytes, entry.size_bytes - begin);
    const auto first = static_cast<int64_t>(begin / element_bytes);
    const auto count = static_cast<int64_t>(bytes / element_bytes);
    const Tensor destination = flat.slice(first, first + count);
    // On the CPU, tensors that need no conversion are read straight into place.
    const bool in_place =
        destination.device == DeviceType::kCpu && destination.dtype == entry.dtype;
    void* const data = in_place ? destination.data : staging.data();
    checkpoint.read(entry, data, begin, bytes);
    const Tensor source{data, entry.dtype, DeviceType::kCpu, destination.shape};
    if (check_values) check_finite(entry, source, first);
    if (!in_place) backend.upload(destination, source);
    on_bytes(bytes);
  }
}

}  // namespace

ModelWeights::ModelWeights(const ModelConfig& config, const Checkpoint& checkpoint,
                           Backend& backend, bool check_values, const LoadProgress& progress)
    : buffer_(backend.allocate(size_bytes(config, checkpoint, backend), "the weights")) {
  Arena arena(buffer_);
  Layout layout(config, checkpoint, backend, arena);
  lay_out(*this, layout, arena, config);

  uint64_t total_bytes = 0;
  for (const Piece& piece : layout.pieces()) total_bytes += piece.entry->size_bytes;
  uint64_t done_bytes = 0;
  const auto on_bytes = [&](uint64_t bytes) {
    done_bytes += bytes;
    if (progress) progress(done_bytes, total_bytes);
  };
  std::vector<std::byte> staging(kReadChunkBytes);
  for (const Piece& piece : layout.pieces()) {
    load_piece(piece, checkpoint, backend, check_values, staging, on_bytes);
  }
  std::vector<float> frequencies;
  for (const double frequency : rope_inverse_frequencies(config)) {
    frequencies.push_back(static_cast<float>(frequency));
  }
  backend.upload(inverse_frequencies, host_tensor(frequencies));
  backend.synchronize();
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
