#include <cuda_fp8.h>

#include <algorithm>
#include <bit>

#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/rotation.cuh"
#include "kernels/cuda/rows/rope_store_kv.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kMaxThreads = 512;
constexpr int kWidth = 8;

template <typename Element>
struct RopeArguments {
  Element* query;            // [num_tokens, num_heads, head_dim]
  void* keys;                // Element or e4m3 [num_pages, num_kv_heads, page_size, head_dim]
  void* values;              // same shape and type
  const Element* qkv;        // [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim]
  const float* qkv_bias;     // [(num_heads + 2 * num_kv_heads) * head_dim]; nullptr: none
  const int32_t* positions;  // [num_tokens]
  const int32_t* kv_slots;   // [num_tokens]
  const float* rope_table;   // [2, head_dim / 2]: inverse frequencies, amplitudes
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int page_size;
  float query_beta;      // of QueryScalingSpec
  int original_context;  // tokens
  const float* qk_norm;  // [2, head_dim]: RMSNorm's weights of query heads, of key heads
  float norm_epsilon;
  const float* key_scales;  // of e4m3 pages: [num_kv_heads]
  const float* value_scales;
};

// Eight elements, divided by a power of two and rounded to e4m3: one store of 8 bytes.
template <typename Element>
__device__ void store_fp8(__nv_fp8_storage_t* row, int index, const Vector<Element, kWidth>& vector,
                          float inverse_scale) {
  Vector<__nv_fp8_storage_t, kWidth> bytes;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    bytes.values[j] = __nv_cvt_float_to_fp8(as_float(vector.values[j]) * inverse_scale,
                                            __NV_SATFINITE, __NV_E4M3);
  }
  store_vector(row, index, bytes);
}

// The same vector of both halves of a head: element j of one belongs to element j of the other.
template <typename Element>
struct HeadVectors {
  Vector<Element, kWidth> first;
  Vector<Element, kWidth> second;

  HeadVectors() = default;
  __device__ HeadVectors(const Element* head, int half, int vector)
      : first(load_vector<kWidth>(head, vector)),
        second(load_vector<kWidth>(head + half, vector)) {}
  __device__ void add(const HeadVectors<float>& terms) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      first.values[j] = from_float<Element>(as_float(first.values[j]) + terms.first.values[j]);
      second.values[j] = from_float<Element>(as_float(second.values[j]) + terms.second.values[j]);
    }
  }
  __device__ void store(Element* head, int half, int vector) const {
    store_vector(head, vector, first);
    store_vector(head + half, vector, second);
  }
  __device__ void store_fp8(__nv_fp8_storage_t* head, int half, int vector, float scale) const {
    const float inverse_scale = 1.0f / scale;  // exact
    tessera::store_fp8(head, vector, first, inverse_scale);
    tessera::store_fp8(head + half, vector, second, inverse_scale);
  }
  // RMSNorm of the head, of which as many neighbouring lanes have the other vectors as there are in
  // half of it, a power of two up to 32. weight: [head_dim].
  __device__ void normalize(const float* weight, int half, int vector, float epsilon) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float a = as_float(first.values[j]);
      const float b = as_float(second.values[j]);
      sum += a * a + b * b;
    }
    const int lanes = half / kWidth;
    const uint32_t of_head = (lanes == kWarpSize ? kFullWarp : (1u << lanes) - 1)
                             << lane_index() / lanes * lanes;
    for (int distance = 1; distance < lanes; distance *= 2) {
      sum += __shfl_xor_sync(of_head, sum, distance);
    }
    const float scale = 1.0f / sqrtf(sum / static_cast<float>(2 * half) + epsilon);
    const auto first_weights = load_vector<kWidth>(weight, vector);
    const auto second_weights = load_vector<kWidth>(weight + half, vector);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      first.values[j] =
          from_float<Element>(as_float(first.values[j]) * scale * first_weights.values[j]);
      second.values[j] =
          from_float<Element>(as_float(second.values[j]) * scale * second_weights.values[j]);
    }
  }
  __device__ void rotate(int j, float cosine, float sine) {
    const float a = as_float(first.values[j]);
    const float b = as_float(second.values[j]);
    first.values[j] = from_float<Element>(a * cosine - b * sine);
    second.values[j] = from_float<Element>(b * cosine + a * sine);
  }
};

// A block per token, a thread per vector of a head: queries, keys and values in one go.
template <typename Element, bool kScalesQueries, bool kNormsHeads, bool kIsFp8, bool kHasBias>
__global__ void __launch_bounds__(kMaxThreads)
    rope_store_kv_kernel(const __grid_constant__ RopeArguments<Element> arguments) {
  // (cos, sin) of elements 2i and 2i + 1 of each vector. Threads of one head read side by side.
  extern __shared__ float4 rotations[];  // [kWidth / 2][half_vectors]
  const auto& [query, keys, values, qkv, qkv_bias, positions, kv_slots, rope_table, num_heads,
               num_kv_heads, head_dim, page_size, query_beta, original_context, qk_norm,
               norm_epsilon, key_scales, value_scales] = arguments;
  const int64_t token = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const int num_threads = static_cast<int>(blockDim.x);
  const int half = head_dim / 2;
  const int half_vectors = half / kWidth;
  const int num_all_heads = num_heads + 2 * num_kv_heads;
  const int num_vectors = num_all_heads * half_vectors;
  const Element* const heads = qkv + token * num_all_heads * head_dim;
  const auto load = [&](int index) {
    return HeadVectors<Element>(heads + index / half_vectors * head_dim, half,
                                index % half_vectors);
  };
  const auto load_bias = [&](int index) {
    return HeadVectors<float>(qkv_bias + index / half_vectors * head_dim, half,
                              index % half_vectors);
  };
  const int32_t position = positions[token];
  const int64_t slot = kv_slots[token];
  for (int j = thread; j < half; j += num_threads) {
    const int place = j % kWidth / 2 * half_vectors + j / kWidth;
    reinterpret_cast<float2*>(rotations)[2 * place + j % 2] =
        rotation_of(position, rope_table[j], rope_table[half + j]);
  }
  float query_factor = 1.0f;
  if constexpr (kScalesQueries) {
    query_factor += query_beta * logf(static_cast<float>(1 + position / original_context));
  }
  const int64_t page_row = slot / page_size * num_kv_heads * page_size + slot % page_size;
  // A thread beyond the last vector repeats it. Nobody writes the bias while a model runs.
  const int first_index = min(thread, num_vectors - 1);
  HeadVectors<float> terms;
  if constexpr (kHasBias) terms = load_bias(first_index);
  wait_for_previous_kernel();
  HeadVectors<Element> vectors = load(first_index);
  __syncthreads();

  for (int index = thread; index < num_vectors; index += num_threads) {
    if (index != thread) {
      vectors = load(index);
      if constexpr (kHasBias) terms = load_bias(index);
    }
    const int head = index / half_vectors;
    const int vector = index % half_vectors;
    const int kv_head = head - num_heads;  // keys, then values
    if constexpr (kHasBias) vectors.add(terms);
    if (kv_head < num_kv_heads) {
      if constexpr (kNormsHeads) {
        vectors.normalize(qk_norm + (kv_head < 0 ? 0 : head_dim), half, vector, norm_epsilon);
      }
#pragma unroll
      for (int i = 0; i < kWidth / 2; ++i) {
        float4 rotation = rotations[i * half_vectors + vector];
        if (kScalesQueries && kv_head < 0) {
          rotation = {rotation.x * query_factor, rotation.y * query_factor,
                      rotation.z * query_factor, rotation.w * query_factor};
        }
        vectors.rotate(2 * i, rotation.x, rotation.y);
        vectors.rotate(2 * i + 1, rotation.z, rotation.w);
      }
    }
    const auto page_head = [&]<typename Stored>(Stored* pages, int64_t of_page) {
      return pages + (page_row + of_page * page_size) * head_dim;
    };
    if constexpr (kIsFp8) {
      if (kv_head >= 0) {
        const bool is_key = kv_head < num_kv_heads;
        const int of_page = is_key ? kv_head : kv_head - num_kv_heads;
        auto* const pages = static_cast<__nv_fp8_storage_t*>(is_key ? keys : values);
        vectors.store_fp8(page_head(pages, of_page), half, vector,
                          (is_key ? key_scales : value_scales)[of_page]);
        continue;
      }
    }
    Element* const target = kv_head < 0 ? query + (token * num_heads + head) * head_dim
                            : kv_head < num_kv_heads
                                ? page_head(static_cast<Element*>(keys), kv_head)
                                : page_head(static_cast<Element*>(values), kv_head - num_kv_heads);
    vectors.store(target, half, vector);
  }
}

}  // namespace

bool rope_normalizes(const RopeStoreKvParams& params) {
  if (params.qk_norm_kind != QkNorm::kPerHead) return false;
  // As many as there are lanes that add up a head's squares.
  const auto half_vectors = static_cast<unsigned>(params.pages.head_dim() / (2 * kWidth));
  return std::has_single_bit(half_vectors) && half_vectors <= kWarpSize;
}

bool rope_adds_bias(const RopeStoreKvParams& params) {
  const bool is_normed_before = params.qk_norm_kind != QkNorm::kNone && !rope_normalizes(params);
  return !is_normed_before && params.query_scaling == QueryScalingSpec{};
}

void launch_rope_store_kv(const RopeStoreKvParams& params, const Tensor& bias,
                          cudaStream_t stream) {
  const auto& [query, pages, qkv, positions, kv_slots, rope_table, qk_norm_kind, qk_norm,
               norm_epsilon, query_scaling] = params;
  CHECK(bias.empty() || rope_adds_bias(params), "rope_store_kv: the bias belongs to the product");
  const auto num_tokens = static_cast<unsigned>(query.dim(0));
  const auto head_dim = static_cast<int>(pages.head_dim());
  CHECK(head_dim % (2 * kWidth) == 0, "rope_store_kv: head_dim is ", head_dim,
        ", CUDA needs a multiple of ", 2 * kWidth);
  dispatch_element(query.dtype, [&]<typename Element>() {
    const RopeArguments<Element> arguments{
        .query = static_cast<Element*>(query.data),
        .keys = pages.keys.data,
        .values = pages.values.data,
        .qkv = static_cast<const Element*>(qkv.data),
        .qkv_bias = bias.empty() ? nullptr : bias.as<float>(),
        .positions = positions.as<int32_t>(),
        .kv_slots = kv_slots.as<int32_t>(),
        .rope_table = rope_table.as<float>(),
        .num_heads = static_cast<int>(query.dim(1)),
        .num_kv_heads = static_cast<int>(pages.num_kv_heads()),
        .head_dim = head_dim,
        .page_size = static_cast<int>(pages.page_size()),
        .query_beta = static_cast<float>(query_scaling.beta),
        .original_context = static_cast<int>(query_scaling.original_max_position_embeddings),
        .qk_norm = qk_norm.empty() ? nullptr : qk_norm.as<float>(),
        .norm_epsilon = norm_epsilon,
        .key_scales = pages.is_fp8() ? pages.key_scales.as<float>() : nullptr,
        .value_scales = pages.is_fp8() ? pages.value_scales.as<float>() : nullptr,
    };
    const int num_vectors =
        (arguments.num_heads + 2 * arguments.num_kv_heads) * head_dim / (2 * kWidth);
    const int num_threads = std::min(ceil_divide(num_vectors, kWarpSize) * kWarpSize, kMaxThreads);
    const bool normalizes = rope_normalizes(params);
    const auto kernel_for = [&]<bool kIsFp8, bool kHasBias>() {
      if constexpr (!kHasBias) {
        if (query_scaling.beta != 0.0) {
          return normalizes ? rope_store_kv_kernel<Element, true, true, kIsFp8, false>
                            : rope_store_kv_kernel<Element, true, false, kIsFp8, false>;
        }
      }
      return normalizes ? rope_store_kv_kernel<Element, false, true, kIsFp8, kHasBias>
                        : rope_store_kv_kernel<Element, false, false, kIsFp8, kHasBias>;
    };
    const auto kernel = bias.empty()
                            ? (pages.is_fp8() ? kernel_for.template operator()<true, false>()
                                              : kernel_for.template operator()<false, false>())
                            : (pages.is_fp8() ? kernel_for.template operator()<true, true>()
                                              : kernel_for.template operator()<false, true>());
    launch_dependent(kernel,
                     {.blocks = dim3(num_tokens),
                      .threads = static_cast<unsigned>(num_threads),
                      .shared_bytes = static_cast<size_t>(head_dim / 2) * sizeof(float2)},
                     stream, arguments);
  });
}

}  // namespace tessera
