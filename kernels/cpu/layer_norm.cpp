#include "kernels/cpu/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

struct LayerNormRow {
  template <int kLanes>
  VECTOR_INLINE static void run(float* out, const float* x, const float* weight,
                                int64_t hidden_size, float epsilon) {
    typename VectorOf<kLanes>::Floats lanes, weight_lanes;
    const auto size = static_cast<float>(hidden_size);
    const float mean = sum<kLanes>(x, hidden_size) / size;
    const float variance = sum_of_squares<kLanes>(x, mean, hidden_size) / size;
    const float scale = 1.0f / std::sqrt(variance + epsilon);
    for (int64_t i = 0; i < hidden_size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, hidden_size - i);
      load_first(x + i, count, lanes);
      load_first(weight + i, count, weight_lanes);
      store_first((lanes - mean) * scale * weight_lanes, count, out + i);
    }
  }
  template <int kLanes>
  VECTOR_INLINE static float sum(const float* x, int64_t count) {
    typename VectorOf<kLanes>::Floats total = {}, lanes;
    for (int64_t i = 0; i < count; i += kLanes) {
      load_first(x + i, std::min<int64_t>(kLanes, count - i), lanes);
      total += lanes;
    }
    return sum_of(total);
  }
  // Of the distances from the mean: in the difference of two sums their digits would cancel.
  template <int kLanes>
  VECTOR_INLINE static float sum_of_squares(const float* x, float mean, int64_t count) {
    typename VectorOf<kLanes>::Floats total = {}, lanes;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      load(x + i, lanes);
      total += (lanes - mean) * (lanes - mean);
    }
    float rest = 0.0f;
    for (; i < count; ++i) rest += (x[i] - mean) * (x[i] - mean);
    return sum_of(total) + rest;
  }
};

}  // namespace

void layer_norm_row(float* out, const float* x, const float* weight, int64_t size, float epsilon) {
  run_vectorized<LayerNormRow>(out, x, weight, size, epsilon);
}

void layer_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
                ThreadPool& pool) {
  const int64_t hidden_size = x.dim(1);
  const double row_nanoseconds = static_cast<double>(hidden_size * 16) * kNanosecondsPerByte;
  pool.for_each(x.dim(0), row_nanoseconds, [&](int64_t token) {
    const int64_t row = token * hidden_size;
    layer_norm_row(out.as<float>() + row, x.as<float>() + row, weight.as<float>(), hidden_size,
                   epsilon);
  });
}

}  // namespace tessera
