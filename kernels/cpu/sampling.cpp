#include "kernels/cpu/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

constexpr double kWeightOne = 0x1p40;  // the weight of the largest logit

using Wide = unsigned __int128;

struct Settings {
  float temperature;
  int32_t top_k;
  float top_p;
  float min_p;
  uint64_t random;
};

Settings settings_of(const SamplingBatch& batch, int64_t sequence) {
  const int32_t* random = batch.random.as<int32_t>() + 2 * sequence;
  return {.temperature = batch.temperature.as<float>()[sequence],
          .top_k = batch.top_k.as<int32_t>()[sequence],
          .top_p = batch.top_p.as<float>()[sequence],
          .min_p = batch.min_p.as<float>()[sequence],
          .random = static_cast<uint64_t>(static_cast<uint32_t>(random[1])) << 32 |
                    static_cast<uint32_t>(random[0])};
}

void compute_weights(std::span<const float> logits, double largest, double temperature,
                     std::span<uint64_t> weights) {
  constexpr double kSmallestExponent = -28.0;  // exp() * 2^40 is below 1
  for (size_t i = 0; i < logits.size(); ++i) {
    const double exponent = (logits[i] - largest) / temperature;
    weights[i] =
        exponent < kSmallestExponent ? 0 : static_cast<uint64_t>(std::exp(exponent) * kWeightOne);
  }
}

// The largest threshold for which measure(w), summed over all w >= threshold, reaches `wanted`; 0
// when none does. Finds the threshold's digits from the highest down, counting the weights that
// share the digits found so far by their next digit: four passes instead of a sort.
template <typename Measure>
uint64_t threshold_reaching(std::span<const uint64_t> weights, uint64_t wanted, Measure measure) {
  constexpr int kDigitBits = 11;
  constexpr int kHighestShift = 3 * kDigitBits;  // weights have 41 bits
  uint64_t threshold = 0;
  uint64_t above = 0;  // the measure of weights that are larger than the digits found so far
  for (int shift = kHighestShift; shift >= 0; shift -= kDigitBits) {
    std::array<uint64_t, 1 << kDigitBits> measures{};
    for (const uint64_t weight : weights) {
      if ((weight ^ threshold) >> (shift + kDigitBits) != 0) continue;
      measures[(weight >> shift) % measures.size()] += measure(weight);
    }
    size_t digit = measures.size() - 1;
    while (digit > 0 && above + measures[digit] < wanted) above += measures[digit--];
    threshold |= uint64_t{digit} << shift;
  }
  return threshold;
}

uint64_t total_from(std::span<const uint64_t> weights, uint64_t threshold) {
  uint64_t total = 0;
  for (const uint64_t weight : weights) total += weight >= threshold ? weight : 0;
  return total;
}

// ceil(top_p * total) without rounding: 0 < top_p < 1 is a 24-bit integer over a power of two.
uint64_t share_of(float top_p, uint64_t total) {
  int exponent = 0;
  const auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(top_p, &exponent), 24));
  const int shift = 24 - exponent;
  const Wide product = Wide{mantissa} * total;
  if (shift >= 100) return 1;  // the product has fewer bits
  return static_cast<uint64_t>((product + (Wide{1} << shift) - 1) >> shift);
}

// The smallest weight that top_k, top_p and min_p all keep.
uint64_t find_threshold(std::span<const uint64_t> weights, const Settings& settings) {
  uint64_t threshold = 0;
  if (settings.top_k > 0 && static_cast<size_t>(settings.top_k) < weights.size()) {
    threshold = threshold_reaching(weights, static_cast<uint64_t>(settings.top_k),
                                   [](uint64_t) { return uint64_t{1}; });
  }
  if (settings.top_p < 1.0f) {
    const uint64_t wanted = share_of(settings.top_p, total_from(weights, threshold));
    threshold = std::max(
        threshold, threshold_reaching(weights, wanted, [](uint64_t weight) { return weight; }));
  }
  return std::max(threshold, static_cast<uint64_t>(std::ceil(settings.min_p * kWeightOne)));
}

int32_t draw(std::span<const uint64_t> weights, uint64_t threshold, uint64_t random) {
  const uint64_t total = total_from(weights, threshold);
  const auto place = static_cast<uint64_t>((Wide{random} * total) >> 64);
  uint64_t sum = 0;
  size_t token = 0;
  while (true) {
    sum += weights[token] >= threshold ? weights[token] : 0;
    if (sum > place) return static_cast<int32_t>(token);
    ++token;
  }
}

// largest = the largest logit, or NaN where one is NaN or infinite: a finite number minus itself is
// 0, any other is NaN.
struct FindLargest {
  template <int kLanes>
  VECTOR_INLINE static void run(std::span<const float> logits, float& largest) {
    using Floats = typename VectorOf<kLanes>::Floats;
    const auto size = static_cast<int64_t>(logits.size());
    Floats most = Floats{} + logits[0], differences = {}, lanes;
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      load(logits.data() + i, lanes);
      most = lanes > most ? lanes : most;
      differences += lanes - lanes;
    }
    largest = most[0];
    for (int lane = 0; lane < kLanes; ++lane) largest = std::max(largest, most[lane]);
    float difference = sum_of(differences);
    for (; i < size; ++i) {
      largest = std::max(largest, logits[static_cast<size_t>(i)]);
      difference += logits[static_cast<size_t>(i)] - logits[static_cast<size_t>(i)];
    }
    largest += difference;
  }
};

int32_t sample_one(std::span<const float> logits, const Settings& settings, int thread,
                   ThreadScratch& scratch) {
  float largest = 0.0f;
  run_vectorized<FindLargest>(logits, largest);
  if (!std::isfinite(largest)) return kNonFiniteLogits;
  if (settings.temperature == 0.0f) {
    return static_cast<int32_t>(std::ranges::find(logits, largest) - logits.begin());
  }
  const std::span<uint64_t> weights(scratch.get<uint64_t>(thread, std::ssize(logits)),
                                    logits.size());
  compute_weights(logits, largest, settings.temperature, weights);
  return draw(weights, find_threshold(weights, settings), settings.random);
}

}  // namespace

void sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling,
            ThreadScratch& scratch, ThreadPool& pool) {
  const auto num_candidates = static_cast<size_t>(sampling.num_candidates);
  constexpr double kCandidateNanoseconds = 3;  // mostly the exponential in double precision
  const double row_nanoseconds = static_cast<double>(num_candidates) * kCandidateNanoseconds;
  pool.for_each(tokens.dim(0), row_nanoseconds, [&](int64_t sequence, int thread) {
    const float* row = logits.as<float>() + sequence * logits.dim(1);
    tokens.as<int32_t>()[sequence] =
        sample_one({row, num_candidates}, settings_of(sampling, sequence), thread, scratch);
  });
}

}  // namespace tessera
