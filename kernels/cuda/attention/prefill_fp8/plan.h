// Prefill attention in float8_e4m3: what it was built for, and the scratch that it takes. Plain
// arithmetic, no CUDA.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/backend_limits.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

inline constexpr int kFp8HeadDim = 128;
inline constexpr int kFp8TileKeys = 128;
// What arranged keys and values take together, unless those of one sequence take more.
inline constexpr int64_t kArrangedBytes = int64_t{256} << 20;

// Why prompts are not attended to in float8_e4m3, whatever the layer; nullptr: they are.
constexpr const char* fp8_prefill_problem(const GpuTraits& gpu, int64_t head_dim,
                                          KvDType kv_dtype) {
  if (gpu.choice != KernelChoice::kFp8Attention) return "it was not asked for";
  if (!gpu.runs_hopper()) return "the GPU's compute capability is not 9.0";
  if (kv_dtype != KvDType::kFloat8E4M3) return "keys and values are not stored in float8_e4m3";
  if (head_dim != kFp8HeadDim) return "head_dim is not 128";
  return nullptr;
}

// Bytes of each part of the scratch of a step within limits, each a multiple of kAlignment.
struct Fp8PrefillScratch {
  static constexpr int64_t kAlignment = 256;

  int64_t tiles = 0;   // of keys, and as many of values
  int64_t tables = 0;  // block tables of the tiles

  int64_t total() const { return 2 * tiles + tables; }
};

// Bytes of the arranged keys of a sequence, all KV heads.
constexpr int64_t arranged_sequence_bytes(int64_t num_kv_heads, int64_t max_context_length) {
  const int64_t tiles =
      std::max<int64_t>(1, ceil_divide<int64_t>(max_context_length, kFp8TileKeys));
  return tiles * num_kv_heads * kFp8TileKeys * kFp8HeadDim;
}

inline Fp8PrefillScratch fp8_prefill_scratch(const BackendLimits& limits,
                                             int64_t most_bytes = kArrangedBytes) {
  const auto aligned = [](int64_t bytes) {
    return checked_round_up(bytes, Fp8PrefillScratch::kAlignment, "arranged keys and values");
  };
  const int64_t sequence = arranged_sequence_bytes(limits.num_kv_heads, limits.max_context_length);
  const int64_t all = checked_multiply(sequence, std::max<int64_t>(1, limits.max_sequences),
                                       "arranged keys and values");
  Fp8PrefillScratch scratch;
  scratch.tiles = aligned(std::max(sequence, std::min(most_bytes / 2, all)));
  // Tables are longest when tiles have one head.
  scratch.tables = aligned(scratch.tiles / (kFp8TileKeys * kFp8HeadDim) * 4);
  return scratch;
}

}  // namespace tessera
