#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/rope_store_kv.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 8;

template <typename Element>
struct RopeArguments {
  Element* query;                    // [num_tokens, num_heads, head_dim]
  Element* keys;                     // [num_pages, num_kv_heads, page_size, head_dim]
  Element* values;                   // same shape
  const Element* qkv;                // [num_tokens, (num_heads + 2 * num_kv_heads) * head_dim]
  const int32_t* positions;          // [num_tokens]
  const int32_t* kv_slots;           // [num_tokens]
  const float* inverse_frequencies;  // [head_dim / 2]
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int page_size;
};

// (cos, sin) of position * inverse_frequency. A float32 product would be off by 0.03 radians at
// position 1,000,000; the product and its reduction to one turn are exact enough in float64.
__device__ float2 rotation_of(int32_t position, float inverse_frequency) {
  constexpr double kTurnsPerRadian = 0.15915494309189535;
  const double turns = position * static_cast<double>(inverse_frequency) * kTurnsPerRadian;
  float2 rotation;
  sincospif(2.0f * static_cast<float>(turns - rint(turns)), &rotation.y, &rotation.x);
  return rotation;
}

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    rope_store_kv_kernel(const __grid_constant__ RopeArguments<Element> arguments) {
  extern __shared__ float2 rotations[];  // [head_dim / 2]
  const auto& [query, keys, values, qkv, positions, kv_slots, inverse_frequencies, num_heads,
               num_kv_heads, head_dim, page_size] = arguments;
  const int64_t token = blockIdx.x;
  const int half = head_dim / 2;
  for (int j = threadIdx.x; j < half; j += kThreads) {
    rotations[j] = rotation_of(positions[token], inverse_frequencies[j]);
  }
  __syncthreads();

  const int64_t slot = kv_slots[token];
  const int64_t page_row = slot / page_size * num_kv_heads * page_size + slot % page_size;
  const Element* heads = qkv + token * (num_heads + 2 * num_kv_heads) * head_dim;

  const int half_vectors = half / kWidth;
  for (int i = threadIdx.x; i < (num_heads + num_kv_heads) * half_vectors; i += kThreads) {
    const int head = i / half_vectors;
    const int vector = i % half_vectors;
    const Element* source = heads + head * head_dim;
    const auto first = load_vector<kWidth>(source, vector);
    const auto second = load_vector<kWidth>(source + half, vector);
    Vector<Element, kWidth> rotated_first;
    Vector<Element, kWidth> rotated_second;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const auto [cosine, sine] = rotations[vector * kWidth + j];
      const float a = as_float(first.values[j]);
      const float b = as_float(second.values[j]);
      rotated_first.values[j] = from_float<Element>(a * cosine - b * sine);
      rotated_second.values[j] = from_float<Element>(b * cosine + a * sine);
    }
    Element* target =
        head < num_heads
            ? query + (token * num_heads + head) * head_dim
            : keys + (page_row + static_cast<int64_t>(head - num_heads) * page_size) * head_dim;
    store_vector(target, vector, rotated_first);
    store_vector(target + half, vector, rotated_second);
  }

  const Element* value_heads = heads + (num_heads + num_kv_heads) * head_dim;
  const int head_vectors = head_dim / kWidth;
  for (int i = threadIdx.x; i < num_kv_heads * head_vectors; i += kThreads) {
    const int64_t head = i / head_vectors;
    store_vector(values + (page_row + head * page_size) * head_dim, i % head_vectors,
                 load_vector<kWidth>(value_heads, i));
  }
}

}  // namespace

void launch_rope_store_kv(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                          const Tensor& positions, const Tensor& kv_slots,
                          const Tensor& inverse_frequencies, cudaStream_t stream) {
  const auto num_tokens = static_cast<unsigned>(query.dim(0));
  const auto head_dim = static_cast<int>(pages.head_dim());
  CHECK(head_dim % (2 * kWidth) == 0, "rope_store_kv: head_dim is ", head_dim,
        ", CUDA needs a multiple of ", 2 * kWidth);
  dispatch_element(query.dtype, [&]<typename Element>() {
    const RopeArguments<Element> arguments{
        .query = static_cast<Element*>(query.data),
        .keys = static_cast<Element*>(pages.keys.data),
        .values = static_cast<Element*>(pages.values.data),
        .qkv = static_cast<const Element*>(qkv.data),
        .positions = positions.as<int32_t>(),
        .kv_slots = kv_slots.as<int32_t>(),
        .inverse_frequencies = inverse_frequencies.as<float>(),
        .num_heads = static_cast<int>(query.dim(1)),
        .num_kv_heads = static_cast<int>(pages.num_kv_heads()),
        .head_dim = head_dim,
        .page_size = static_cast<int>(pages.page_size()),
    };
    const size_t shared_bytes = static_cast<size_t>(head_dim / 2) * sizeof(float2);
    rope_store_kv_kernel<Element><<<num_tokens, kThreads, shared_bytes, stream>>>(arguments);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
