#include "engine/model/activations.h"

#include "engine/model/kernel_config.h"
#include "kernels/backend_limits.h"
#include "kernels/fused_operations.h"
#include "kernels/tensor/buffer.h"

namespace tessera {

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
