#include "kernels/cpu/silu_mul.h"

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// gate = gate / (1 + exp(-gate)), with an exponential that cannot overflow on either side of 0.
VECTOR_INLINE void silu(Lanes& gate) {
  Lanes exponential = gate > 0.0f ? -gate : gate;
  exp_of_nonpositive(exponential);
  const Lanes numerator = gate > 0.0f ? Lanes{} + 1.0f : exponential;
  gate *= numerator / (1.0f + exponential);
}

VECTOR_FUNCTION void silu_mul_row(float* out, const float* gate, const float* up, int64_t count) {
  Lanes gate_lanes, up_lanes;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    load(gate + i, gate_lanes);
    load(up + i, up_lanes);
    silu(gate_lanes);
    store(gate_lanes * up_lanes, out + i);
  }
  if (i < count) {
    load_first(gate + i, count - i, gate_lanes);
    load_first(up + i, count - i, up_lanes);
    silu(gate_lanes);
    store_first(gate_lanes * up_lanes, count - i, out + i);
  }
}

}  // namespace

void silu_mul(const Tensor& out, const Tensor& gate_up, ThreadPool& pool) {
  const int64_t intermediate_size = out.dim(1);
  const double row_nanoseconds = static_cast<double>(intermediate_size * 12) * kNanosecondsPerByte;
  pool.for_each(out.dim(0), row_nanoseconds, [&](int64_t token) {
    const float* gate = gate_up.as<float>() + token * 2 * intermediate_size;
    silu_mul_row(out.as<float>() + token * intermediate_size, gate, gate + intermediate_size,
                 intermediate_size);
  });
}

}  // namespace tessera
