#include "kernels/cpu/softcap.h"

#include <algorithm>

#include "kernels/cpu/vectors.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// What a thread takes at a time: a row may be all that there is.
constexpr int64_t kPart = 4096;

// tanh(x) = (1 - e) / (1 + e) with e = exp(-2 x), for x >= 0, and tanh(-x) = -tanh(x).
struct CapLogits {
  template <int kLanes>
  VECTOR_INLINE static void run(float* logits, int64_t size, float cap) {
    using Floats = typename VectorOf<kLanes>::Floats;
    using Bits = typename VectorOf<kLanes>::Bits;
    const float minus_two_over_cap = -2.0f / cap;
    Floats x;
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, size - i);
      load_first(logits + i, count, x);
      const Bits sign = (Bits)x & 0x80000000u;
      Floats e = (Floats)((Bits)x & 0x7fffffffu) * minus_two_over_cap;
      exp_of_nonpositive(e);
      const Floats capped = (1.0f - e) / (1.0f + e) * cap;
      store_first((Floats)((Bits)capped | sign), count, logits + i);
    }
  }
};

}  // namespace

void softcap(const Tensor& logits, float cap, ThreadPool& pool) {
  const int64_t size = logits.num_elements();
  const double part_nanoseconds = static_cast<double>(kPart * 8) * kNanosecondsPerByte;
  pool.for_each(ceil_divide(size, kPart), part_nanoseconds, [&](int64_t part) {
    const int64_t begin = part * kPart;
    run_vectorized<CapLogits>(logits.as<float>() + begin, std::min(kPart, size - begin), cap);
  });
}

}  // namespace tessera
