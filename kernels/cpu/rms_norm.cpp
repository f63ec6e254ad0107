#include "kernels/cpu/rms_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

template <int kLanes>
VECTOR_INLINE float sum_of_squares(const float* x, int64_t count) {
  typename VectorOf<kLanes>::Floats sum = {}, lanes;
  for (int64_t i = 0; i < count; i += kLanes) {
    load_first(x + i, std::min<int64_t>(kLanes, count - i), lanes);
    sum += lanes * lanes;
  }
  return sum_of(sum);
}

// 1 / sqrt(mean(x^2) + epsilon)
template <int kLanes>
VECTOR_INLINE float scale_of(const float* x, int64_t size, float epsilon) {
  const float mean = sum_of_squares<kLanes>(x, size) / static_cast<float>(size);
  return 1.0f / std::sqrt(mean + epsilon);
}

struct RmsNormRow {
  template <int kLanes>
  VECTOR_INLINE static void run(float* out, const float* x, const float* weight,
                                int64_t hidden_size, float epsilon) {
    typename VectorOf<kLanes>::Floats lanes, weight_lanes;
    const float scale = scale_of<kLanes>(x, hidden_size, epsilon);
    for (int64_t i = 0; i < hidden_size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, hidden_size - i);
      load_first(x + i, count, lanes);
      load_first(weight + i, count, weight_lanes);
      store_first(lanes * scale * weight_lanes, count, out + i);
    }
  }
};

struct AddNormalizedRow {
  template <int kLanes>
  VECTOR_INLINE static void run(float* residual, const float* x, const float* weight,
                                int64_t hidden_size, float epsilon, float multiplier) {
    typename VectorOf<kLanes>::Floats lanes, weight_lanes, residual_lanes;
    const float scale = scale_of<kLanes>(x, hidden_size, epsilon);
    for (int64_t i = 0; i < hidden_size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, hidden_size - i);
      load_first(x + i, count, lanes);
      load_first(weight + i, count, weight_lanes);
      load_first(residual + i, count, residual_lanes);
      store_first(residual_lanes + lanes * scale * weight_lanes * multiplier, count, residual + i);
    }
  }
};

}  // namespace

void rms_norm_row(float* out, const float* x, const float* weight, int64_t size, float epsilon) {
  run_vectorized<RmsNormRow>(out, x, weight, size, epsilon);
}

void rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
              ThreadPool& pool) {
  const int64_t hidden_size = x.dim(1);
  const double row_nanoseconds = static_cast<double>(hidden_size * 12) * kNanosecondsPerByte;
  pool.for_each(x.dim(0), row_nanoseconds, [&](int64_t token) {
    const int64_t row = token * hidden_size;
    rms_norm_row(out.as<float>() + row, x.as<float>() + row, weight.as<float>(), hidden_size,
                 epsilon);
  });
}

void rms_norm_add(const Tensor& residual, const Tensor& x, const Tensor& weight, float epsilon,
                  float multiplier, ThreadPool& pool) {
  const int64_t hidden_size = x.dim(1);
  const double row_nanoseconds = static_cast<double>(hidden_size * 16) * kNanosecondsPerByte;
  pool.for_each(x.dim(0), row_nanoseconds, [&](int64_t token) {
    const int64_t row = token * hidden_size;
    run_vectorized<AddNormalizedRow>(residual.as<float>() + row, x.as<float>() + row,
                                     weight.as<float>(), hidden_size, epsilon, multiplier);
  });
}

}  // namespace tessera
