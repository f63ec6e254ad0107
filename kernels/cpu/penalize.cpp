#include "kernels/cpu/penalize.h"

#include <limits>

namespace tessera {
namespace {

// Calls visit(sequence, i, logit) for the i-th listed token, which is one of `sequence`, and its
// logit.
template <typename Visit>
void for_each_listed(const Tensor& logits, const PenaltyBatch& penalties, ThreadPool& pool,
                     Visit visit) {
  const int32_t* const offsets = penalties.offsets.as<int32_t>();
  const int32_t* const tokens = penalties.tokens.as<int32_t>();
  constexpr double kTokenNanoseconds = 5;  // a read and a write anywhere in the row
  const double row_nanoseconds = static_cast<double>(penalties.tokens.dim(0)) * kTokenNanoseconds /
                                 static_cast<double>(logits.dim(0));
  pool.for_each(logits.dim(0), row_nanoseconds, [&](int64_t sequence) {
    float* const row = logits.as<float>() + sequence * logits.dim(1);
    for (int32_t i = offsets[sequence]; i < offsets[sequence + 1]; ++i) {
      visit(sequence, i, row[tokens[i]]);
    }
  });
}

}  // namespace

void penalize(const Tensor& logits, const PenaltyBatch& penalties, ThreadPool& pool) {
  const int32_t* const counts = penalties.counts.as<int32_t>();
  const float* const repetition = penalties.repetition.as<float>();
  const float* const frequency = penalties.frequency.as<float>();
  const float* const presence = penalties.presence.as<float>();
  float* const before = penalties.before.shape.rank() > 0 ? penalties.before.as<float>() : nullptr;
  for_each_listed(logits, penalties, pool, [&](int64_t sequence, int32_t i, float& logit) {
    if (before != nullptr) before[i] = logit;
    if (counts[i] == kBarredCount) {
      logit = std::numeric_limits<float>::lowest();
      return;
    }
    logit = logit > 0.0f ? logit / repetition[sequence] : logit * repetition[sequence];
    logit -= frequency[sequence] * static_cast<float>(counts[i]);
    if (counts[i] > 0) logit -= presence[sequence];
  });
}

void restore_penalized(const Tensor& logits, const PenaltyBatch& penalties, ThreadPool& pool) {
  const float* const before = penalties.before.as<float>();
  for_each_listed(logits, penalties, pool,
                  [&](int64_t, int32_t i, float& logit) { logit = before[i]; });
}

}  // namespace tessera
