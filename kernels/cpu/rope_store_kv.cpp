#include "kernels/cpu/rope_store_kv.h"

#include <algorithm>

#include "kernels/cpu/rms_norm.h"
#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// A head, rotated by the pairs' cosines and sines; `out` may be `in`.
struct RotateHead {
  template <int kLanes>
  VECTOR_INLINE static void run(const float* in, const float* cosines, int64_t half, float* out) {
    const float* sines = cosines + half;
    typename VectorOf<kLanes>::Floats cosine, sine, first, second;
    for (int64_t j = 0; j < half; j += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, half - j);
      load_first(cosines + j, count, cosine);
      load_first(sines + j, count, sine);
      load_first(in + j, count, first);
      load_first(in + half + j, count, second);
      store_first(first * cosine - second * sine, count, out + j);
      store_first(second * cosine + first * sine, count, out + half + j);
    }
  }
};

}  // namespace

void rope_store_kv(const RopeStoreKvParams& params, RotationTable& table, ThreadPool& pool) {
  const auto& [query, pages, qkv, positions, kv_slots, inverse_frequencies, qk_norm, norm_epsilon] =
      params;
  const int64_t num_tokens = query.dim(0);
  const int64_t num_heads = query.dim(1);
  const int64_t num_kv_heads = pages.num_kv_heads();
  const int64_t page_size = pages.page_size();
  const int64_t head_dim = pages.head_dim();
  const int64_t half = head_dim / 2;
  const float* const query_norm = qk_norm.empty() ? nullptr : qk_norm.as<float>();
  const float* const key_norm = qk_norm.empty() ? nullptr : query_norm + head_dim;
  const float* rotations =
      table.rotations({positions.as<int32_t>(), static_cast<size_t>(num_tokens)},
                      {inverse_frequencies.as<float>(), static_cast<size_t>(half)}, pool);
  const double token_nanoseconds = static_cast<double>(qkv.dim(1) * 8) * kNanosecondsPerByte;
  pool.for_each(num_tokens, token_nanoseconds, [&](int64_t token) {
    const int64_t slot = kv_slots.as<int32_t>()[token];
    const auto row_in_pages = [&](const Tensor& tensor, int64_t kv_head) {
      const int64_t row =
          (slot / page_size * num_kv_heads + kv_head) * page_size + slot % page_size;
      return tensor.as<float>() + row * head_dim;
    };
    const float* queries_in = qkv.as<float>() + token * (num_heads + 2 * num_kv_heads) * head_dim;
    const float* keys_in = queries_in + num_heads * head_dim;
    const float* values_in = keys_in + num_kv_heads * head_dim;
    const auto rotate = [&](const float* in, const float* norm, float* out) {
      if (norm != nullptr) {
        normalize_row(out, in, norm, head_dim, norm_epsilon);
        in = out;
      }
      run_vectorized<RotateHead>(in, rotations + token * head_dim, half, out);
    };
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t head = h * head_dim;
      rotate(queries_in + head, query_norm,
             query.as<float>() + token * num_heads * head_dim + head);
    }
    for (int64_t h = 0; h < num_kv_heads; ++h) {
      rotate(keys_in + h * head_dim, key_norm, row_in_pages(pages.keys, h));
      std::copy_n(values_in + h * head_dim, head_dim, row_in_pages(pages.values, h));
    }
  });
}

}  // namespace tessera
