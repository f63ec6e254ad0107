#include "engine/model/activations.h"

#include "kernels/backend_limits.h"
#include "kernels/fused_operations.h"
#include "kernels/tensor/buffer.h"

namespace tessera {

Activations::Activations(Arena& arena, const ModelConfig& config, const BackendLimits& limits,
                         const Operations& operations) {
  const DType activation = operations.activation_dtype();
  const int64_t tokens = limits.max_tokens;
  const int64_t rows = limits.max_sequences;
  const int64_t heads = config.num_heads;
  const int64_t qkv_size = (heads + 2 * config.num_kv_heads) * config.head_dim;
  residual = arena.take("residual", DType::kFloat32, {tokens, config.hidden_size});
  normed = arena.take("normed", activation, {tokens, config.hidden_size});
  squares = arena.take("squares", DType::kFloat32,
                       {tokens, ceil_divide(config.hidden_size, PendingNorm::kSquaresFeatures)});
  qkv = arena.take("qkv", activation, {tokens, qkv_size});
  query = arena.take("query", activation, {tokens, heads, config.head_dim});
  attention_out = arena.take("attention out", activation, {tokens, heads, config.head_dim});
  gate_up = arena.take("gate and up", activation, {tokens, 2 * config.intermediate_size});
  feed_forward = arena.take("feed forward", activation, {tokens, config.intermediate_size});
  const size_t workspace_bytes = operations.attention_workspace_bytes(limits);
  attention_workspace =
      arena.take("attention workspace", DType::kFloat32,
                 {static_cast<int64_t>(ceil_divide(workspace_bytes, sizeof(float)))});
  sampled_residual = arena.take("sampled residual", DType::kFloat32, {rows, config.hidden_size});
  sampled_normed = arena.take("sampled normed", activation, {rows, config.hidden_size});
  logits = arena.take("logits", DType::kFloat32, {rows, config.vocab_size});
}

}  // namespace tessera
