#include "kernels/cpu/activate_mul.h"

#include <algorithm>

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// x = 1 / (1 + exp(-x)), with an exponential that cannot overflow on either side of 0.
template <typename Floats>
VECTOR_INLINE void sigmoid(Floats& x) {
  Floats exponential = x > 0.0f ? -x : x;
  exp_of_nonpositive(exponential);
  const Floats numerator = x > 0.0f ? Floats{} + 1.0f : exponential;
  x = numerator / (1.0f + exponential);
}

// Both are the gate times a sigmoid: (1 + tanh(y)) / 2 = sigmoid(2 y).
template <Activation kActivation, typename Floats>
VECTOR_INLINE void activate(Floats& gate) {
  constexpr float kTwiceRootOf2OverPi = 1.5957691216f;
  Floats factor = gate;
  if constexpr (kActivation == Activation::kGeluTanh) {
    factor *= kTwiceRootOf2OverPi + kTwiceRootOf2OverPi * 0.044715f * (gate * gate);
  }
  sigmoid(factor);
  gate *= factor;
}

template <Activation kActivation>
struct ActivateMulRow {
  template <int kLanes>
  VECTOR_INLINE static void run(float* out, const float* gate, const float* up, int64_t size) {
    typename VectorOf<kLanes>::Floats gate_lanes, up_lanes;
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, size - i);
      load_first(gate + i, count, gate_lanes);
      load_first(up + i, count, up_lanes);
      activate<kActivation>(gate_lanes);
      store_first(gate_lanes * up_lanes, count, out + i);
    }
  }
};

template <Activation kActivation>
void activate_mul(const Tensor& out, const Tensor& gate_up, ThreadPool& pool) {
  const int64_t intermediate_size = out.dim(1);
  const double row_nanoseconds = static_cast<double>(intermediate_size * 12) * kNanosecondsPerByte;
  pool.for_each(out.dim(0), row_nanoseconds, [&](int64_t token) {
    const float* gate = gate_up.as<float>() + token * 2 * intermediate_size;
    run_vectorized<ActivateMulRow<kActivation>>(out.as<float>() + token * intermediate_size, gate,
                                                gate + intermediate_size, intermediate_size);
  });
}

}  // namespace

void activate_mul(const Tensor& out, const Tensor& gate_up, Activation activation,
                  ThreadPool& pool) {
  switch (activation) {
    case Activation::kSilu:
      return activate_mul<Activation::kSilu>(out, gate_up, pool);
    case Activation::kGeluTanh:
      return activate_mul<Activation::kGeluTanh>(out, gate_up, pool);
  }
}

}  // namespace tessera
