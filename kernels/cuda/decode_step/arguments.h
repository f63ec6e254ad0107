// What the fused decode kernel is told at launch.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstddef>

#include "kernels/cuda/attention/arguments.cuh"
#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/decode_step/plan.h"

namespace tessera {

// The tensor maps of a model, in this order for each layer, then that of the output head.
enum FusedMap : uint8_t {
  kQkvMap,
  kKeysMap,
  kValuesMap,
  kOProjMap,
  kGateUpMap,
  kDownMap,
  kNumLayerMaps
};

// Device memory of a layer that is not read through tensor maps.
struct FusedLayerPointers {
  const float* input_layernorm;            // [hidden_size]
  const float* pre_feedforward_layernorm;  // [hidden_size]
  __nv_bfloat16* keys;                     // pages of AttentionArguments
  __nv_bfloat16* values;
  // Read where the block is not Llama's.
  const float* qkv_bias;  // [qkv rows]; null: none
  const float* qk_norm;   // [2 * head_dim]: of queries, of keys; null: none
  const float*
      post_norms[2];  // of attention, of the feed-forward network; [hidden_size]; null: none
};

struct FusedDecodeArguments {
  FusedProduct products[kNumFusedProducts];
  FusedExchangeLayout layout;
  uint32_t* copies[2];       // this launch's set; each is a `layout`, then the partial results
  int partials;              // offset of the partial results in a copy, words
  uint32_t* used_copies[2];  // the set that the previous launch used
  int used_words;            // words to clear in each, without the partial results; 0: none
  uint32_t* claims;          // counters of this launch, [fused_claim_words()], all missing
  uint32_t* used_claims;     // counters of the previous launch
  const CUtensorMap* maps;   // [num_layers * kNumLayerMaps + 1]
  const FusedLayerPointers* layers;
  const float* norm;                  // [hidden_size]
  const __nv_bfloat16* embed_tokens;  // [vocab_size, hidden_size]
  const float* rope_tables[2];        // of each kind of layers, [2, head_dim / 2]: inverse
                                      // frequencies, amplitudes; null: no rotation
  const int32_t* token_ids;           // [num_tokens]
  const int32_t* positions;           // [num_tokens]
  const int32_t* kv_slots;            // [num_tokens]
  float* logits;                      // [num_tokens, vocab_size]
  AttentionArguments attention;       // its pointers to activations are null
  DecodeDivision division;
  int num_tokens;
  int num_layers;
  float epsilon;
  FusedRings rings;
  int most_under_way;  // the most units of a ring that may be under way at a time
  int input_stride;    // bytes
  // What follows is for blocks other than Llama's.
  FusedBlock block;
  int num_kinds;                        // of layers
  int num_windows;                      // of these kinds
  int input_bytes;                      // for all input features in shared memory
  AttentionArguments second_attention;  // `attention` with the window of the second kind of layers
  // What follows is for keys and values in float8_e4m3.
  const float* kv_scales;  // what stored keys, then values are multiplied with: [num_layers,
                           // 2 num_kv_heads]; null: they are in bfloat16
};

// Bytes of the arguments that an instance of the kernel reads.
constexpr size_t fused_argument_bytes(FusedInstance instance) {
  if (reads_fp8(instance)) return sizeof(FusedDecodeArguments);
  return is_llama(instance) ? offsetof(FusedDecodeArguments, block)
                            : offsetof(FusedDecodeArguments, kv_scales);
}

}  // namespace tessera
