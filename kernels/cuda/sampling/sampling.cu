#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/sampling/candidate.cuh"
#include "kernels/cuda/sampling/few_candidates.cuh"
#include "kernels/cuda/sampling/logit_select.cuh"
#include "kernels/cuda/sampling/sampling.h"

namespace tessera {
namespace {

constexpr double kOne = 0x1p40;  // the weight of the largest logit

constexpr int kClusterBlocks = 8;  // the most that every GPU with clusters has
// Of a share, to be kept in shared memory: a vocabulary of 262,144. A larger one is read again.
constexpr size_t kMaxShareBytes = size_t{128} << 10;

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

constexpr uint64_t kNonFinite = ~uint64_t{0};  // larger than all candidates

// The best candidate of each warp of all blocks.
template <int kBlocks>
struct WarpBests {
  static constexpr int kCount = kBlocks * kSampleWarps;

  uint64_t values[kCount];
  float bound;

  // kept: where the block keeps the logits of its share for later, or null. Returns the best of
  // all, kNonFinite if not all are finite.
  __device__ uint64_t find(const LogitShare& share, float* kept) {
    bool finite = true;
    float largest = -INFINITY;
    int index_of_largest = 0;
    for_each_logit<16>(share, [&](int index, float logit) {
      if (kept != nullptr) kept[index] = logit;
      finite = finite && isfinite(logit);
      if (logit > largest) {
        largest = logit;
        index_of_largest = index;
      }
    });
    const auto larger = [](uint64_t a, uint64_t b) { return max(a, b); };
    const uint64_t best = warp_reduce(
        finite ? candidate(largest, share.first_token + index_of_largest) : kNonFinite, larger);
    SamplingCluster<kBlocks>::wait();  // since the kernel began: all blocks have begun
    SamplingCluster<kBlocks>::send(values, warp_index(), best);
    SamplingCluster<kBlocks>::sync();
    uint64_t result = 0;
#pragma unroll
    for (int i = 0; i < kCount; i += kWarpSize) result = max(result, values[i + lane_index()]);
    return warp_reduce(result, larger);
  }

  // What at least `rank` logits reach, and seldom many more: the rank-th best warp's.
  __device__ float lower_bound(int rank) {
    if (rank > kCount) return -INFINITY;
    // Groups of threads count how many are better than one of them.
    constexpr int kThreads = kSampleThreads / kCount;
    const int mine = static_cast<int>(threadIdx.x) / kThreads;
    int better = 0;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x) % kThreads; i < kCount; i += kThreads) {
      better += values[i] > values[mine] || (values[i] == values[mine] && i < mine) ? 1 : 0;
    }
#pragma unroll
    for (int distance = kThreads / 2; distance > 0; distance /= 2) {
      better += __shfl_xor_sync(kFullWarp, better, distance);
    }
    if (better == rank - 1) bound = from_ordered_key(key_of(values[mine]));
    __syncthreads();
    return bound;
  }
};

// One copy of this code for all who call it: it takes longer to fetch than to run.
__device__ __noinline__ uint64_t weight_at(double exponent) {
  return static_cast<uint64_t>(exp(exponent) * kOne);
}

// SamplingBatch's w, or 0 where it is less than a threshold. In float64, because float32 would make
// equal what is not; w never decreases as the logit grows, which lets thresholds be searched for
// among logits.
class KeptWeight {
 public:
  __device__ KeptWeight(float largest, float temperature)
      : largest_(largest), inverse_temperature_(1.0 / temperature) {}

  __device__ void raise_threshold(uint64_t threshold) {
    if (threshold <= threshold_) return;
    // What lies clearly below need not be computed, which for most logits it does.
    constexpr double kMargin = 1e-6;
    threshold_ = threshold;
    smallest_exponent_ = log(static_cast<double>(threshold) / kOne) - kMargin;
  }

  // Less than this has no weight. The exponent's margin covers what is lost in rounding.
  __device__ float smallest_logit() const {
    return __double2float_rd(largest_ + smallest_exponent_ / inverse_temperature_);
  }

  __device__ uint64_t operator()(float logit) const {
    const double exponent = (logit - largest_) * inverse_temperature_;
    if (exponent < smallest_exponent_) return 0;
    const uint64_t weight = weight_at(exponent);
    return weight >= threshold_ ? weight : 0;
  }

 private:
  double largest_;
  double inverse_temperature_;
  double smallest_exponent_ = -28.0;  // exp(-28) * 2^40 < 1
  uint64_t threshold_ = 0;
};

struct SequenceRules {
  int top_k;          // less than the number of candidates; 0: all
  float top_k_bound;  // that at least top_k logits reach
  float top_p;
  float min_p;
};

// Raises the threshold to what top_k, top_p and min_p keep. `select` is called as
//   select(mass(logit), target(total of all masses))
// and returns the largest logit such that it and all above it have a mass of at least `target`.
template <typename Select>
__device__ void apply_rules(const SequenceRules& rules, KeptWeight& weight_of, Select select) {
#pragma unroll 1
  for (int step = rules.top_k > 0 ? 1 : 2; step <= 2; ++step) {  // SamplingBatch's
    const bool counts = step == 1;
    if (!counts && rules.top_p >= 1.0f) break;
    const auto mass = [&](float logit) {
      return counts ? static_cast<uint64_t>(logit >= rules.top_k_bound ? 1 : 0) : weight_of(logit);
    };
    const auto target = [&](uint64_t total) {
      // Fewer have any weight, then all of those are kept.
      if (counts) return min(static_cast<uint64_t>(rules.top_k), total);
      const double part = ceil(static_cast<double>(rules.top_p) * static_cast<double>(total));
      return min(max(static_cast<uint64_t>(part), uint64_t{1}), total);
    };
    weight_of.raise_threshold(weight_of(select(mass, target)));
  }
  weight_of.raise_threshold(static_cast<uint64_t>(ceil(static_cast<double>(rules.min_p) * kOne)));
}

// The first token whose running sum of weights exceeds floor(random * total / 2^64). One thread of
// one block writes it to `token`.
template <int kBlocks>
__device__ void draw(const KeptWeight& weight_of, const LogitShare& share, uint64_t random,
                     int32_t* token) {
  // Each warp of all blocks sums a range of consecutive tokens.
  __shared__ uint64_t range_sums[kBlocks * kSampleWarps];
  uint64_t sum = 0;
  share.for_each_of_warp([&](int, float logit) { sum += weight_of(logit); });
  SamplingCluster<kBlocks>::send(range_sums, warp_index(), warp_sum(sum));
  SamplingCluster<kBlocks>::sync();

  uint64_t remaining = __umul64hi(random, sum_of(range_sums));
  int range = -1;
  for (int begin = 0; range < 0 && begin < kBlocks * kSampleWarps; begin += kWarpSize) {
    const int lane = find_lane(range_sums[begin + lane_index()], remaining);
    if (lane >= 0) range = begin + lane;
  }
  if (range < 0 || range / kSampleWarps != SamplingCluster<kBlocks>::rank()) return;
  // The range that holds the token, a block's width at a time.
  __shared__ uint64_t warp_sums[kSampleWarps];
  const int first = range % kSampleWarps * share.warp_tokens();
  const int end = min(first + share.warp_tokens(), share.count);
  int warp = -1;
  for (int begin = first; warp < 0 && begin < end; begin += kSampleThreads) {
    const int index = begin + static_cast<int>(threadIdx.x);
    const uint64_t weight = index < end ? weight_of(share.logits[index]) : 0;
    sum = warp_sum(weight);
    __syncthreads();
    if (lane_index() == 0) warp_sums[warp_index()] = sum;
    __syncthreads();
    warp = find_lane(warp_sums[lane_index()], remaining);
    if (warp != warp_index()) continue;
    const int lane = find_lane(weight, remaining);
    if (lane == lane_index()) *token = share.first_token + index;
  }
}

// A sequence's candidates in equal consecutive shares, the last ones smaller or empty.
__host__ __device__ inline int share_size(int count, int num_blocks) {
  return (count + num_blocks - 1) / num_blocks;
}

template <int kBlocks, bool kKeepsShare>
__global__ void __launch_bounds__(kSampleThreads)
    sample_kernel(const __grid_constant__ SamplingArguments arguments) {
  extern __shared__ float kept[];
  SamplingCluster<kBlocks>::arrive();
  wait_for_previous_kernel();
  const int sequence = static_cast<int>(blockIdx.x) / kBlocks;
  const int count = arguments.num_candidates;
  const int size = share_size(count, kBlocks);
  const int first_token = min(SamplingCluster<kBlocks>::rank() * size, count);
  LogitShare share{.logits = arguments.logits + sequence * arguments.vocab_size + first_token,
                   .first_token = first_token,
                   .count = min(size, count - first_token)};
  int32_t* const token = arguments.tokens + sequence;

  __shared__ WarpBests<kBlocks> bests;
  const uint64_t best = bests.find(share, kKeepsShare ? kept : nullptr);
  if (kKeepsShare) share.logits = kept;
  const float temperature = arguments.temperature[sequence];
  if (best == kNonFinite || temperature == 0.0f) {
    if (SamplingCluster<kBlocks>::rank() == 0 && threadIdx.x == 0) {
      *token = best == kNonFinite ? kNonFiniteLogits : token_of(best);
    }
    return;
  }
  const int top_k = arguments.top_k[sequence];
  SequenceRules rules{.top_k = top_k < count ? top_k : 0,
                      .top_k_bound = -INFINITY,
                      .top_p = arguments.top_p[sequence],
                      .min_p = arguments.min_p[sequence]};
  const uint64_t random = static_cast<uint64_t>(arguments.random[2 * sequence + 1]) << 32 |
                          arguments.random[2 * sequence];
  KeptWeight weight_of(from_ordered_key(key_of(best)), temperature);
  if (rules.top_k > 0) {
    rules.top_k_bound = bests.lower_bound(rules.top_k);
    weight_of.raise_threshold(weight_of(rules.top_k_bound));
  }
  __shared__ FewCandidates<kBlocks> few;
  if (few.gather(share, weight_of.smallest_logit())) {
    if (SamplingCluster<kBlocks>::rank() != 0) return;
    apply_rules(rules, weight_of,
                [&](const auto& mass, const auto& target) { return few.select(mass, target); });
    few.draw(weight_of, random, token);
    return;
  }
  __shared__ MassHistogram<kBlocks> histogram;
  apply_rules(rules, weight_of, [&](const auto& mass, const auto& target) {
    return select_logit(share, histogram, mass, target);
  });
  draw<kBlocks>(weight_of, share, random, token);
}

template <int kBlocks, bool kKeepsShare>
void launch(const SamplingArguments& arguments, int64_t num_sequences, size_t shared_bytes,
            cudaStream_t stream) {
  const auto kernel = sample_kernel<kBlocks, kKeepsShare>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes)));
  launch_dependent(kernel,
                   {.blocks = dim3(static_cast<unsigned>(num_sequences * kBlocks)),
                    .threads = kSampleThreads,
                    .shared_bytes = shared_bytes,
                    .cluster_blocks = kBlocks},
                   stream, arguments);
}

}  // namespace

void launch_sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling,
                   bool has_clusters, cudaStream_t stream) {
  const SamplingArguments arguments{
      .tokens = tokens.as<int32_t>(),
      .logits = logits.as<float>(),
      .temperature = sampling.temperature.as<float>(),
      .top_k = sampling.top_k.as<int32_t>(),
      .top_p = sampling.top_p.as<float>(),
      .min_p = sampling.min_p.as<float>(),
      .random = reinterpret_cast<const uint32_t*>(sampling.random.as<int32_t>()),
      .vocab_size = logits.dim(1),
      .num_candidates = static_cast<int>(sampling.num_candidates),
  };
  const int64_t num_sequences = logits.dim(0);
  if (!has_clusters) return launch<1, false>(arguments, num_sequences, 0, stream);
  const size_t share_bytes =
      static_cast<size_t>(share_size(arguments.num_candidates, kClusterBlocks)) * sizeof(float);
  if (share_bytes > kMaxShareBytes) {
    return launch<kClusterBlocks, false>(arguments, num_sequences, 0, stream);
  }
  launch<kClusterBlocks, true>(arguments, num_sequences, share_bytes, stream);
}

}  // namespace tessera
