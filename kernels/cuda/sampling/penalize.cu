#include <cfloat>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/sampling/penalize.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

struct PenaltyArguments {
  float* logits;            // [num_sequences, vocab_size]
  const int32_t* offsets;   // [num_sequences + 1]
  const int32_t* tokens;    // [num_listed]
  const int32_t* counts;    // [num_listed]
  const float* repetition;  // [num_sequences]
  const float* frequency;   // [num_sequences]
  const float* presence;    // [num_sequences]
  float* before;            // [num_listed], or null
  int64_t vocab_size;
};

__global__ void __launch_bounds__(kThreads)
    penalize_kernel(const __grid_constant__ PenaltyArguments arguments) {
  const int sequence = blockIdx.x;
  float* const logits = arguments.logits + sequence * arguments.vocab_size;
  const float repetition = arguments.repetition[sequence];
  const float frequency = arguments.frequency[sequence];
  const float presence = arguments.presence[sequence];
  const int end = arguments.offsets[sequence + 1];
  for (int i = arguments.offsets[sequence] + threadIdx.x; i < end; i += kThreads) {
    float& logit = logits[arguments.tokens[i]];
    const int count = arguments.counts[i];
    if (arguments.before != nullptr) arguments.before[i] = logit;
    if (count == kBarredCount) {
      logit = -FLT_MAX;
      continue;
    }
    const float repeated = logit > 0.0f ? logit / repetition : logit * repetition;
    const float present = count > 0 ? presence : 0.0f;
    logit = repeated - frequency * static_cast<float>(count) - present;
  }
}

__global__ void __launch_bounds__(kThreads)
    restore_kernel(const __grid_constant__ PenaltyArguments arguments) {
  const int sequence = blockIdx.x;
  float* const logits = arguments.logits + sequence * arguments.vocab_size;
  const int end = arguments.offsets[sequence + 1];
  for (int i = arguments.offsets[sequence] + threadIdx.x; i < end; i += kThreads) {
    logits[arguments.tokens[i]] = arguments.before[i];
  }
}

PenaltyArguments arguments_of(const Tensor& logits, const PenaltyBatch& penalties) {
  return {
      .logits = logits.as<float>(),
      .offsets = penalties.offsets.as<int32_t>(),
      .tokens = penalties.tokens.as<int32_t>(),
      .counts = penalties.counts.as<int32_t>(),
      .repetition = penalties.repetition.as<float>(),
      .frequency = penalties.frequency.as<float>(),
      .presence = penalties.presence.as<float>(),
      .before = penalties.before.shape.rank() > 0 ? penalties.before.as<float>() : nullptr,
      .vocab_size = logits.dim(1),
  };
}

}  // namespace

void launch_penalize(const Tensor& logits, const PenaltyBatch& penalties, cudaStream_t stream) {
  const auto num_blocks = static_cast<unsigned>(logits.dim(0));
  penalize_kernel<<<num_blocks, kThreads, 0, stream>>>(arguments_of(logits, penalties));
  CUDA_CHECK(cudaGetLastError());
}

void launch_restore_penalized(const Tensor& logits, const PenaltyBatch& penalties,
                              cudaStream_t stream) {
  const auto num_blocks = static_cast<unsigned>(logits.dim(0));
  restore_kernel<<<num_blocks, kThreads, 0, stream>>>(arguments_of(logits, penalties));
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
