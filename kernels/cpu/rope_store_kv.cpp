#include "kernels/cpu/rope_store_kv.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/layer_norm.h"
#include "kernels/cpu/rms_norm.h"
#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// A head, rotated by the pairs' cosines and sines and multiplied by a factor.
struct RotateHead {
  template <int kLanes>
  VECTOR_INLINE static void run(const float* in, const float* cosines, int64_t half, float factor,
                                float* out) {
    const float* sines = cosines + half;
    typename VectorOf<kLanes>::Floats cosine, sine, first, second;
    for (int64_t j = 0; j < half; j += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, half - j);
      load_first(cosines + j, count, cosine);
      load_first(sines + j, count, sine);
      load_first(in + j, count, first);
      load_first(in + half + j, count, second);
      store_first((first * cosine - second * sine) * factor, count, out + j);
      store_first((second * cosine + first * sine) * factor, count, out + half + j);
    }
  }
};

// Normalises a token's queries or its keys, of `size` elements, in place; `weight` is where theirs
// begin.
void normalize_heads(const RopeStoreKvParams& params, float* heads, int64_t size,
                     const float* weight) {
  const int64_t head_dim = params.pages.head_dim();
  switch (params.qk_norm_kind) {
    case QkNorm::kNone:
      return;
    case QkNorm::kPerHead:
      for (int64_t i = 0; i < size; i += head_dim) {
        rms_norm_row(heads + i, heads + i, weight, head_dim, params.norm_epsilon);
      }
      return;
    case QkNorm::kWholeProjection:
      return rms_norm_row(heads, heads, weight, size, params.norm_epsilon);
    case QkNorm::kLayerNormPerHead:
      for (int64_t i = 0; i < size; i += head_dim) {
        layer_norm_row(heads + i, heads + i, weight + i, head_dim, params.norm_epsilon);
      }
      return;
  }
}

float query_factor(const QueryScalingSpec& scaling, int32_t position) {
  if (scaling.beta == 0.0) return 1.0f;
  const int64_t contexts = position / scaling.original_max_position_embeddings;
  return static_cast<float>(1.0 + scaling.beta * std::log1p(static_cast<double>(contexts)));
}

// A token's row of pages.
struct PageRow {
  const KvPages& pages;
  int64_t slot;

  template <typename T>
  T* of_head(const Tensor& tensor, int64_t kv_head) const {
    const int64_t page_size = pages.page_size();
    const int64_t row =
        (slot / page_size * pages.num_kv_heads() + kv_head) * page_size + slot % page_size;
    return tensor.as<T>() + row * pages.head_dim();
  }

  // Stores a head of keys or of values, with the scales of the tensor it goes to.
  void store_fp8(const float* head, const Tensor& tensor, const Tensor& scales,
                 int64_t kv_head) const {
    const float scale = scales.as<float>()[kv_head];
    std::transform(head, head + pages.head_dim(), of_head<Float8E4M3>(tensor, kv_head),
                   [&](float value) { return to_float8_e4m3(value / scale); });
  }
};

}  // namespace

void rope_store_kv(const RopeStoreKvParams& params, RotationTable& table, ThreadPool& pool) {
  const KvPages& pages = params.pages;
  const int64_t num_tokens = params.query.dim(0);
  const int64_t num_kv_heads = pages.num_kv_heads();
  const int64_t head_dim = pages.head_dim();
  const int64_t half = head_dim / 2;
  const int64_t query_size = params.num_heads() * head_dim;
  const int64_t kv_size = num_kv_heads * head_dim;
  const int32_t* const positions = params.positions.as<int32_t>();
  const float* rotations =
      table.rotations({positions, static_cast<size_t>(num_tokens)},
                      {params.rope_table.as<float>(), static_cast<size_t>(head_dim)}, pool);
  const double token_nanoseconds = static_cast<double>(params.qkv.dim(1) * 8) * kNanosecondsPerByte;
  pool.for_each(num_tokens, token_nanoseconds, [&](int64_t token) {
    float* const queries = params.qkv.as<float>() + token * (query_size + 2 * kv_size);
    float* const keys = queries + query_size;
    const float* const values = keys + kv_size;
    if (params.qk_norm_kind != QkNorm::kNone) {
      const float* const weights = params.qk_norm.as<float>();
      normalize_heads(params, queries, query_size, weights);
      normalize_heads(params, keys, kv_size, weights + params.query_norm_size());
    }
    const float* const of_token = rotations + token * head_dim;
    const float factor = query_factor(params.query_scaling, positions[token]);
    float* const out = params.query.as<float>() + token * query_size;
    for (int64_t i = 0; i < query_size; i += head_dim) {
      run_vectorized<RotateHead>(queries + i, of_token, half, factor, out + i);
    }
    const PageRow row{pages, params.kv_slots.as<int32_t>()[token]};
    for (int64_t h = 0; h < num_kv_heads; ++h) {
      float* const key = keys + h * head_dim;
      const float* const value = values + h * head_dim;
      if (pages.is_fp8()) {
        run_vectorized<RotateHead>(key, of_token, half, 1.0f, key);
        row.store_fp8(key, pages.keys, pages.key_scales, h);
        row.store_fp8(value, pages.values, pages.value_scales, h);
      } else {
        run_vectorized<RotateHead>(key, of_token, half, 1.0f, row.of_head<float>(pages.keys, h));
        std::copy_n(value, head_dim, row.of_head<float>(pages.values, h));
      }
    }
  });
}

}  // namespace tessera
