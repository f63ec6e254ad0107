// The model families: a family is one row, which says how its config.json fills a ModelConfig and
// what its checkpoints call each weight.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/block_spec.h"
#include "model_loaders/block_keys.h"
#include "model_loaders/weight_role.h"

namespace tessera {

// The tensors of a checkpoint that a weight is made of, the rows of one below those of the other.
struct WeightNames {
  WeightRole role;
  // "{layer}" and "{expert}" stand for an index. Those after the last are empty.
  std::array<std::string_view, 3> sources;
};

struct ModelFamily {
  std::string_view model_type;
  std::string_view architecture;

  // The defaults of the family's config class in transformers: files leave out what equals them.
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t num_layers;
  int64_t num_heads;
  int64_t num_kv_heads;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden_size / num_heads
  int64_t max_position_embeddings;
  double rms_norm_eps;
  double rope_theta;
  std::optional<int64_t> sliding_window;  // none: the class has no such field

  BlockSpec block;                       // what all models of the family have, without `layers`
  std::span<const BlockKey> keys;        // what config.json says about the block besides
  std::span<const WeightNames> weights;  // a row for each role that the block has
};

std::span<const ModelFamily> model_families();

// The row of `model_type`. Throws Error with the list of known ones when there is none.
const ModelFamily& model_family(std::string_view model_type);

}  // namespace tessera
