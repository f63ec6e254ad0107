#include "kernels/cpu/rope_store_kv.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

// The rotation of one pair of elements.
struct Rotation {
  float cosine;
  float sine;

  // A float32 product would be off by 0.03 radians at position 1,000,000.
  Rotation(int32_t position, float inverse_frequency) {
    const double angle = position * static_cast<double>(inverse_frequency);
    cosine = static_cast<float>(std::cos(angle));
    sine = static_cast<float>(std::sin(angle));
  }

  void apply(const float* in, float* out, int64_t j, int64_t half) const {
    const float first = in[j];
    const float second = in[j + half];
    out[j] = first * cosine - second * sine;
    out[j + half] = second * cosine + first * sine;
  }
};

}  // namespace

void rope_store_kv(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                   const Tensor& positions, const Tensor& kv_slots,
                   const Tensor& inverse_frequencies, ThreadPool& pool) {
  const int64_t num_heads = query.dim(1);
  const int64_t num_kv_heads = pages.num_kv_heads();
  const int64_t page_size = pages.page_size();
  const int64_t head_dim = pages.head_dim();
  constexpr double kRotationNanoseconds = 30;  // a sine and a cosine in double precision
  const double token_nanoseconds = static_cast<double>(head_dim / 2) * kRotationNanoseconds +
                                   static_cast<double>(qkv.dim(1) * 8) * kNanosecondsPerByte;
  pool.for_each(query.dim(0), token_nanoseconds, [&](int64_t token) {
    const int64_t slot = kv_slots.as<int32_t>()[token];
    const auto row_in_pages = [&](const Tensor& tensor, int64_t kv_head) {
      const int64_t row =
          (slot / page_size * num_kv_heads + kv_head) * page_size + slot % page_size;
      return tensor.as<float>() + row * head_dim;
    };
    const float* queries_in = qkv.as<float>() + token * (num_heads + 2 * num_kv_heads) * head_dim;
    const float* keys_in = queries_in + num_heads * head_dim;
    const float* values_in = keys_in + num_kv_heads * head_dim;
    float* queries_out = query.as<float>() + token * num_heads * head_dim;

    for (int64_t j = 0; j < head_dim / 2; ++j) {
      const Rotation rotation(positions.as<int32_t>()[token], inverse_frequencies.as<float>()[j]);
      for (int64_t h = 0; h < num_heads; ++h) {
        rotation.apply(queries_in + h * head_dim, queries_out + h * head_dim, j, head_dim / 2);
      }
      for (int64_t h = 0; h < num_kv_heads; ++h) {
        rotation.apply(keys_in + h * head_dim, row_in_pages(pages.keys, h), j, head_dim / 2);
      }
    }
    for (int64_t h = 0; h < num_kv_heads; ++h) {
      std::copy_n(values_in + h * head_dim, head_dim, row_in_pages(pages.values, h));
    }
  });
}

}  // namespace tessera
