#include "kernels/cpu/logprobs.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tessera {
namespace {

// log(softmax(logits)) one by one: logit - largest - log(sum(exp(all - largest))), in this order,
// so that neither exp() overflows nor the logarithm is lost beside a largest logit of 1e38.
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits)
      : logits_(logits), largest_(std::ranges::max(logits)) {
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(logit - largest_);
    log_sum_ = std::log(sum);
  }

  float operator()(int32_t token) const {
    return static_cast<float>(logits_[static_cast<size_t>(token)] - largest_ - log_sum_);
  }

 private:
  std::span<const float> logits_;
  double largest_;
  double log_sum_ = 0.0;
};

// tokens = those of the largest logits, the largest first. A token moves in front of those that are
// less, so that among equals the lowest id stays first.
void find_largest(std::span<const float> logits, std::span<int32_t> tokens) {
  size_t found = 0;
  for (size_t token = 0; token < logits.size(); ++token) {
    const auto logit_at = [&](size_t i) { return logits[static_cast<size_t>(tokens[i])]; };
    if (found == tokens.size() && !(logits[token] > logit_at(found - 1))) continue;
    size_t place = found == tokens.size() ? found - 1 : found++;
    for (; place > 0 && logits[token] > logit_at(place - 1); --place) {
      tokens[place] = tokens[place - 1];
    }
    tokens[place] = static_cast<int32_t>(token);
  }
}

}  // namespace

void logprobs(const Tensor& logits, const LogprobBatch& batch, ThreadPool& pool) {
  const auto num_candidates = static_cast<size_t>(batch.num_candidates);
  const auto num_top = static_cast<size_t>(batch.top_tokens.dim(1));
  constexpr double kCandidateNanoseconds = 4;  // mostly the exponential in double precision
  const double row_nanoseconds = static_cast<double>(num_candidates) * kCandidateNanoseconds;
  pool.for_each(logits.dim(0), row_nanoseconds, [&](int64_t sequence) {
    const int32_t token = batch.tokens.as<int32_t>()[sequence];
    if (token == kNonFiniteLogits) return;
    const std::span row(logits.as<float>() + sequence * logits.dim(1), num_candidates);
    const LogSoftmax logprob_of(row);
    batch.logprobs.as<float>()[sequence] = logprob_of(token);
    if (num_top == 0) return;
    const auto first = sequence * static_cast<int64_t>(num_top);
    const std::span top(batch.top_tokens.as<int32_t>() + first, num_top);
    find_largest(row, top);
    std::ranges::transform(top, batch.top_logprobs.as<float>() + first, logprob_of);
  });
}

}  // namespace tessera
