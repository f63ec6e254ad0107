#include "kernels/cpu/silu_mul.h"

#include <algorithm>

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// gate = gate / (1 + exp(-gate)), with an exponential that cannot overflow on either side of 0.
template <typename Floats>
VECTOR_INLINE void silu(Floats& gate) {
  Floats exponential = gate > 0.0f ? -gate : gate;
  exp_of_nonpositive(exponential);
  const Floats numerator = gate > 0.0f ? Floats{} + 1.0f : exponential;
  gate *= numerator / (1.0f + exponential);
}

struct SiluMulRow {
  template <int kLanes>
  VECTOR_INLINE static void run(float* out, const float* gate, const float* up, int64_t size) {
    typename VectorOf<kLanes>::Floats gate_lanes, up_lanes;
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, size - i);
      load_first(gate + i, count, gate_lanes);
      load_first(up + i, count, up_lanes);
      silu(gate_lanes);
      store_first(gate_lanes * up_lanes, count, out + i);
    }
  }
};

}  // namespace

void silu_mul(const Tensor& out, const Tensor& gate_up, ThreadPool& pool) {
  const int64_t intermediate_size = out.dim(1);
  const double row_nanoseconds = static_cast<double>(intermediate_size * 12) * kNanosecondsPerByte;
  pool.for_each(out.dim(0), row_nanoseconds, [&](int64_t token) {
    const float* gate = gate_up.as<float>() + token * 2 * intermediate_size;
    run_vectorized<SiluMulRow>(out.as<float>() + token * intermediate_size, gate,
                               gate + intermediate_size, intermediate_size);
  });
}

}  // namespace tessera
