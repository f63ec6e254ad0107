#include "engine/model/activations.h"

#include "kernels/backend_limits.h"
#include "kernels/fused_operations.h"
#include "kernels/tensor/buffer.h"
#include "model_loaders/model_config.h"

namespace tessera {
namespace {

BlockSizes block_sizes(const ModelConfig& config) {
  return {.hidden_size = config.hidden_size,
          .intermediate_size = config.intermediate_size,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .rms_norm_eps = static_cast<float>(config.rms_norm_eps)};
}

}  // namespace

// Members take their tensors in the order in which they are declared.
Activations::Activations(Arena& arena, const ModelConfig& config, const BackendLimits& limits,
                         int64_t max_draws, FusedOperations& operations)
    : residual(arena.take("residual", DType::kFloat32, {limits.max_tokens, config.hidden_size})),
      layers(arena, config.block, block_sizes(config), limits, operations) {
  const int64_t rows = max_draws;
  const DType activation = operations.operations().activation_dtype();
  sampled_residual = arena.take("sampled residual", DType::kFloat32, {rows, config.hidden_size});
  sampled_normed = arena.take("sampled normed", activation, {rows, config.hidden_size});
  logits = arena.take("logits", DType::kFloat32, {rows, config.vocab_size});
}

}  // namespace tessera
