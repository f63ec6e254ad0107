// Scales of keys and values that a checkpoint brings for a KV cache in 8 bits.
#pragma once

#include <string>
#include <vector>

#include "model_loaders/checkpoint.h"
#include "model_loaders/model_config.h"

namespace tessera {

// The names that a layer's scales may have, "model.layers.0.self_attn.k_scale" or with k_proj or
// v_proj in front of the last part; of all layers.
std::vector<std::string> kv_scale_names(const ModelConfig& config);

// [num_layers, 2, num_kv_heads]: of keys, then of values, positive: a key is scale * element. A
// scale of a whole tensor is that of each head. Empty when the checkpoint has none. Throws Error
// when it has some but not all, or one that is no positive number or of another shape.
std::vector<float> read_kv_scales(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace tessera
