#include "kernels/cpu/rms_norm.h"

#include <cmath>

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

VECTOR_FUNCTION void normalize_row(float* out, const float* x, const float* weight,
                                   int64_t hidden_size, float epsilon) {
  const float mean = dot(x, x, hidden_size) / static_cast<float>(hidden_size);
  const float scale = 1.0f / std::sqrt(mean + epsilon);
  for (int64_t i = 0; i < hidden_size; ++i) out[i] = x[i] * scale * weight[i];
}

}  // namespace

void rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
              ThreadPool& pool) {
  const int64_t hidden_size = x.dim(1);
  const double row_nanoseconds = static_cast<double>(hidden_size * 12) * kNanosecondsPerByte;
  pool.for_each(x.dim(0), row_nanoseconds, [&](int64_t token) {
    const int64_t row = token * hidden_size;
    normalize_row(out.as<float>() + row, x.as<float>() + row, weight.as<float>(), hidden_size,
                  epsilon);
  });
}

}  // namespace tessera
