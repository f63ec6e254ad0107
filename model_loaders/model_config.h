// What config.json says about a decoder-only model, in checked numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/block_spec.h"
#include "kernels/tensor/dtype.h"

namespace tessera {

// How the rotary frequencies are stretched for contexts longer than the pre-training length.
struct RopeScaling {
  enum class Kind : uint8_t {
    kNone,
    kLinear,  // f / factor
    kLlama3,  // three wavelength bands; Llama 3.1 model card
  };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position_embeddings = 0;  // tokens
};

// What gives the rotary frequencies of a layer.
struct RopeTable {
  double theta = 10000.0;
  RopeScaling scaling;
};

// Field names are those of config.json. All sizes are positive and checked against each other.
struct ModelConfig {
  std::string model_type;    // "llama", "mistral"
  std::string architecture;  // "LlamaForCausalLM"
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;      // even
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;  // tokens
  double rms_norm_eps = 1e-6;
  BlockSpec block;                     // how layers compute
  std::vector<RopeTable> rope_tables;  // of which LayerSpec::rope_table is an index
  bool ties_embeddings = false;
  std::optional<DType> dtype;           // as declared; the checkpoint's tensors decide
  std::vector<int64_t> eos_token_ids;   // from config.json; may be empty
  std::optional<int64_t> bos_token_id;  // from config.json
};

// Inverse frequencies of rotary embedding, float64, [head_dim / 2]: angle = position * value.
// Base: theta^(-2j / head_dim). Scaling as in the RopeScaling kinds.
std::vector<double> rope_inverse_frequencies(const RopeTable& table, int64_t head_dim);

}  // namespace tessera
