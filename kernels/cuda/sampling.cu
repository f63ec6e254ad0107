#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/logit_select.cuh"
#include "kernels/cuda/sampling.h"

namespace tessera {
namespace {

constexpr int kWarps = kSampleThreads / kWarpSize;
constexpr double kOne = 0x1p40;  // the weight of the largest logit

struct SamplingArguments {
  int32_t* tokens;           // [num_sequences]
  const float* logits;       // [num_sequences, vocab_size]
  const float* temperature;  // [num_sequences]
  const int32_t* top_k;      // [num_sequences]
  const float* top_p;        // [num_sequences]
  const float* min_p;        // [num_sequences]
  const uint32_t* random;    // [num_sequences, 2]
  int64_t vocab_size;
  int num_candidates;
};

struct Largest {
  bool all_finite;
  int token;  // the lowest id among equals
  float logit;
};

__device__ Largest find_largest(const float* logits, int count) {
  bool finite = true;
  float largest = -INFINITY;
  int token = 0;
  for_each_logit(logits, count, [&](int index, float logit) {
    finite = finite && isfinite(logit);
    if (logit > largest) {
      largest = logit;
      token = index;
    }
  });
  // The larger logit wins, then the larger complement of the id.
  const uint64_t candidate =
      static_cast<uint64_t>(ordered_key(largest)) << 32 | static_cast<uint32_t>(~token);
  const uint64_t best = block_reduce(candidate, [](uint64_t a, uint64_t b) { return max(a, b); });
  return {.all_finite = __syncthreads_and(finite) != 0,
          .token = static_cast<int>(~static_cast<uint32_t>(best)),
          .logit = from_ordered_key(static_cast<uint32_t>(best >> 32))};
}

// SamplingBatch's w. In float64, because float32 would make equal what is not; it never decreases
// as the logit grows, which lets thresholds be searched for among logits.
struct WeightOf {
  double largest;
  double inverse_temperature;

  __device__ uint64_t operator()(float logit) const {
    constexpr double kSmallest = -28.0;  // exp(-28) * 2^40 < 1
    const double exponent = (logit - largest) * inverse_temperature;
    return exponent < kSmallest ? 0 : static_cast<uint64_t>(exp(exponent) * kOne);
  }
};

// The smallest weight that top_k, top_p and min_p keep.
__device__ uint64_t smallest_kept(const float* logits, int count, MassHistogram& histogram,
                                  WeightOf weight_of, int top_k, float top_p, float min_p) {
  uint64_t threshold = 0;
  if (top_k > 0 && top_k < count) {
    threshold = weight_of(select_logit(
        logits, count, histogram, [](float) { return uint64_t{1}; },
        [&](uint64_t) { return static_cast<uint64_t>(top_k); }));
  }
  if (top_p < 1.0f) {
    const auto kept_mass = [&](float logit) {
      const uint64_t weight = weight_of(logit);
      return weight >= threshold ? weight : 0;
    };
    const auto target = [&](uint64_t total) {
      const double share = ceil(static_cast<double>(top_p) * static_cast<double>(total));
      return min(max(static_cast<uint64_t>(share), uint64_t{1}), total);
    };
    threshold =
        max(threshold, weight_of(select_logit(logits, count, histogram, kept_mass, target)));
  }
  return max(threshold, static_cast<uint64_t>(ceil(static_cast<double>(min_p) * kOne)));
}

// The first token whose running sum of weights of at least `threshold` exceeds
// floor(random * total / 2^64). One thread writes it to `token`.
__device__ void draw(const float* logits, int count, WeightOf weight_of, uint64_t threshold,
                     uint64_t random, int32_t* token) {
  __shared__ uint64_t range_sums[kWarps];
  const auto kept_weight = [&](int index) {
    const uint64_t weight = weight_of(logits[index]);
    return weight >= threshold ? weight : 0;
  };
  // Each warp sums a range of consecutive tokens.
  const int range_tokens = (count + kWarps - 1) / kWarps;
  const int warp_begin = warp_index() * range_tokens;
  const int warp_end = min(warp_begin + range_tokens, count);
  uint64_t sum = 0;
#pragma unroll 4
  for (int i = warp_begin + lane_index(); i < warp_end; i += kWarpSize) sum += kept_weight(i);
  sum = warp_reduce(sum, [](uint64_t a, uint64_t b) { return a + b; });
  if (lane_index() == 0) range_sums[warp_index()] = sum;
  __syncthreads();

  uint64_t total = 0;
  for (const uint64_t range_sum : range_sums) total += range_sum;
  uint64_t remaining = __umul64hi(random, total);
  int range = 0;
  while (remaining >= range_sums[range]) remaining -= range_sums[range++];

  // The range that holds the token, a block's width at a time.
  const int end = min((range + 1) * range_tokens, count);
  for (int begin = range * range_tokens; begin < end; begin += kSampleThreads) {
    const int index = begin + static_cast<int>(threadIdx.x);
    const uint64_t weight = index < end ? kept_weight(index) : 0;
    const BlockScan scan = block_scan(weight);
    if (scan.before <= remaining && remaining < scan.before + weight) *token = index;
    if (remaining < scan.total) return;
    remaining -= scan.total;
  }
}

__global__ void __launch_bounds__(kSampleThreads)
    sample_kernel(const __grid_constant__ SamplingArguments arguments) {
  __shared__ MassHistogram histogram;
  const int sequence = blockIdx.x;
  const float* const logits = arguments.logits + sequence * arguments.vocab_size;
  const int count = arguments.num_candidates;
  int32_t* const token = arguments.tokens + sequence;

  const Largest largest = find_largest(logits, count);
  const float temperature = arguments.temperature[sequence];
  if (!largest.all_finite || temperature == 0.0f) {
    if (threadIdx.x == 0) *token = largest.all_finite ? largest.token : kNonFiniteLogits;
    return;
  }
  const WeightOf weight_of{largest.logit, 1.0 / temperature};
  const uint64_t threshold =
      smallest_kept(logits, count, histogram, weight_of, arguments.top_k[sequence],
                    arguments.top_p[sequence], arguments.min_p[sequence]);
  const uint64_t random = static_cast<uint64_t>(arguments.random[2 * sequence + 1]) << 32 |
                          arguments.random[2 * sequence];
  draw(logits, count, weight_of, threshold, random, token);
}

}  // namespace

void launch_sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling,
                   cudaStream_t stream) {
  sample_kernel<<<static_cast<unsigned>(logits.dim(0)), kSampleThreads, 0, stream>>>({
      .tokens = tokens.as<int32_t>(),
      .logits = logits.as<float>(),
      .temperature = sampling.temperature.as<float>(),
      .top_k = sampling.top_k.as<int32_t>(),
      .top_p = sampling.top_p.as<float>(),
      .min_p = sampling.min_p.as<float>(),
      .random = reinterpret_cast<const uint32_t*>(sampling.random.as<int32_t>()),
      .vocab_size = logits.dim(1),
      .num_candidates = static_cast<int>(sampling.num_candidates),
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
