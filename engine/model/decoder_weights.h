// The weights of a model as the forward pass reads them.
#pragma once

#include <vector>

#include "kernels/layer_weights.h"

namespace tessera {

// Matrices are in Operations::weight_dtype of their stored dtype; norm weights are float32.
struct DecoderWeights {
  WeightMatrix embed_tokens;  // [vocab_size, hidden_size]
  std::vector<LayerWeights> layers;
  Tensor norm;                      // [hidden_size]
  WeightMatrix lm_head;             // [vocab_size, hidden_size]; embed_tokens when tied
  std::vector<Tensor> rope_tables;  // as RopeStoreKvParams::rope_table, of each RopeTable
};

}  // namespace tessera
