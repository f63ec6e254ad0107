#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/sampling/candidate.cuh"
#include "kernels/cuda/sampling/logprobs.h"

namespace tessera {
namespace {

struct LogprobArguments {
  const float* logits;    // [num_sequences, vocab_size]
  const int32_t* tokens;  // [num_sequences]
  float* logprobs;        // [num_sequences]
  int32_t* top_tokens;    // [num_sequences, num_top]
  float* top_logprobs;    // [num_sequences, num_top]
  int64_t vocab_size;
  int num_candidates;
  int num_top;
};

constexpr uint64_t kNoCandidate = 0;  // less than all

// The best of the thread's candidates that are less than `bound`.
__device__ uint64_t best_below(const LogitShare& row, uint64_t bound) {
  uint64_t best = kNoCandidate;
  for_each_logit<8>(row, [&](int token, float logit) {
    const uint64_t own = candidate(logit, token);
    if (own < bound) best = max(best, own);
  });
  return best;
}

__global__ void __launch_bounds__(kSampleThreads)
    logprobs_kernel(const __grid_constant__ LogprobArguments arguments) {
  const int64_t sequence = blockIdx.x;
  const int token = arguments.tokens[sequence];
  if (token == kNonFiniteLogits) return;
  const LogitShare row{.logits = arguments.logits + sequence * arguments.vocab_size,
                       .first_token = 0,
                       .count = arguments.num_candidates};
  const auto larger = [](uint64_t a, uint64_t b) { return max(a, b); };
  uint64_t best = best_below(row, ~uint64_t{0});
  uint64_t winner = block_reduce(best, larger);
  const float largest = from_ordered_key(key_of(winner));
  float sum = 0.0f;
  for_each_logit<8>(row, [&](int, float logit) { sum += expf(logit - largest); });
  const float log_sum = logf(block_sum(sum));
  if (threadIdx.x == 0) arguments.logprobs[sequence] = row.logits[token] - largest - log_sum;
  for (int i = 0; i < arguments.num_top; ++i) {
    if (threadIdx.x == 0) {
      const int64_t place = sequence * arguments.num_top + i;
      arguments.top_tokens[place] = token_of(winner);
      arguments.top_logprobs[place] = from_ordered_key(key_of(winner)) - largest - log_sum;
    }
    if (best == winner) best = best_below(row, winner);
    winner = block_reduce(best, larger);
  }
}

}  // namespace

void launch_logprobs(const Tensor& logits, const LogprobBatch& batch, cudaStream_t stream) {
  logprobs_kernel<<<static_cast<unsigned>(logits.dim(0)), kSampleThreads, 0, stream>>>({
      .logits = logits.as<float>(),
      .tokens = batch.tokens.as<int32_t>(),
      .logprobs = batch.logprobs.as<float>(),
      .top_tokens = batch.top_tokens.as<int32_t>(),
      .top_logprobs = batch.top_logprobs.as<float>(),
      .vocab_size = logits.dim(1),
      .num_candidates = static_cast<int>(batch.num_candidates),
      .num_top = static_cast<int>(batch.top_tokens.dim(1)),
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
