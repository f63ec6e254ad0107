// What the instances of the fused decode kernel compute of a model's block. Plain arithmetic.
#pragma once

#include <cstdint>

namespace tessera {

// A model whose layers are all of one kind may have more layers than there are bits for.
inline constexpr int kMaxKindWords = 4;

// What a block of the model computes besides what Llama's block does.
struct FusedBlock {
  int is_llama;
  int has_qkv_bias;
  int has_qk_norm;     // a norm of each query and key head, or of all of them
  int has_whole_norm;  // of all queries at once, and of all keys
  int has_pre_norms;   // norms of the residual stream into each half
  int has_post_norms;  // norms of what each half adds to the residual stream
  int has_gelu;
  int groups_per_kv_head;  // of query heads (plan.h)
  int num_kv_heads;
  float embedding_multiplier;
  float residual_multiplier;
  float logit_softcap;  // 0: none
  // Layers may be of two kinds, each with its window and its RoPE table. Bit l % 32 of word l / 32:
  // layer l is of the second kind.
  uint32_t second_kind[kMaxKindWords];

  constexpr int kind(int layer) const {
    return static_cast<int>(second_kind[layer / 32] >> layer % 32 & 1);
  }
};

// The instances of the kernel, which differ in what of a block they compute. Code that is left out
// takes no registers, which then hold weights.
enum class FusedInstance : uint8_t {
  kLlama,     // Llama's block alone: does not read FusedBlock
  kPreNorm,   // all but norms of what the halves add and of whole projections, one group of query
              // heads for each KV head
  kAnyBlock,  // everything
  // The same over keys and values in float8_e4m3.
  kLlamaFp8,
  kPreNormFp8,
  kAnyBlockFp8,
};
constexpr bool is_llama(FusedInstance instance) {
  return instance == FusedInstance::kLlama || instance == FusedInstance::kLlamaFp8;
}
constexpr bool computes_any_block(FusedInstance instance) {
  return instance == FusedInstance::kAnyBlock || instance == FusedInstance::kAnyBlockFp8;
}
constexpr bool reads_fp8(FusedInstance instance) { return instance >= FusedInstance::kLlamaFp8; }
constexpr int kv_element_bytes(FusedInstance instance) { return reads_fp8(instance) ? 1 : 2; }

// Not every instance is built for every head_dim: models with wide heads have norms of what the
// halves add, those with heads of 96 (Phi-3 mini) have Llama's block.
constexpr bool fused_instance_is_built(FusedInstance instance, int64_t head_dim) {
  switch (head_dim) {
    case 64:
    case 128:
      return true;
    case 96:
      return is_llama(instance);
    case 256:
      return computes_any_block(instance);
    default:
      return false;
  }
}

// In how many parts the residual stream goes to a product: the stream, and what a half of a layer
// adds to it, whose factor comes later (stream_parts.cuh).
constexpr int stream_parts(FusedInstance instance) { return computes_any_block(instance) ? 2 : 1; }
// How many of `parts` parts the product multiplies. A single token's are added up when their sums
// are complete; those of several tokens, for which a tensor-core tile has no columns left, before
// they are multiplied.
constexpr int multiplied_parts(int tokens, int parts) { return tokens == 1 ? parts : 1; }
constexpr bool joins_parts(int tokens, FusedInstance instance) {
  return multiplied_parts(tokens, stream_parts(instance)) < stream_parts(instance);
}

// The first instance that computes the block, over keys and values in float8_e4m3 or in bfloat16.
constexpr FusedInstance fused_instance(const FusedBlock& block, bool has_fp8_pages,
                                       int64_t head_dim) {
  using enum FusedInstance;
  if (block.is_llama != 0) return has_fp8_pages ? kLlamaFp8 : kLlama;
  const bool needs_any_block =
      block.has_post_norms != 0 || block.has_whole_norm != 0 || block.groups_per_kv_head > 1;
  if (!needs_any_block && fused_instance_is_built(kPreNorm, head_dim)) {
    return has_fp8_pages ? kPreNormFp8 : kPreNorm;
  }
  return has_fp8_pages ? kAnyBlockFp8 : kAnyBlock;
}

}  // namespace tessera
