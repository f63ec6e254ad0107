#include <cuda_fp8.h>

#include "kernels/cuda/attention/widened/pages.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/primitives/element.cuh"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 16;  // elements that a thread loads at a time
// Tokens before the first that a query sees, which prefill kernels may read for the sake of whole
// tiles, and which must then be numbers.
constexpr int kLargestTile = 256;

struct WidenArguments {
  const void* keys;
  const void* values;
  const float* key_scales;
  const float* value_scales;
  void* widened_keys;
  void* widened_values;
  const int32_t* query_starts;
  const int32_t* context_lengths;
  const int32_t* block_tables;
  int32_t* widened_tables;
  int max_pages;
  int num_kv_heads;  // of the source
  int first_kv_head;
  int page_size;
  int window;  // tokens
  int page_elements;
};

// destination = scale * source, of a page and KV head.
template <typename Element>
__device__ void widen(const __nv_fp8_storage_t* source, float scale, Element* destination,
                      int num_elements) {
  for (int i = static_cast<int>(threadIdx.x); i < num_elements / kWidth; i += kThreads) {
    const auto bytes = load_vector<kWidth>(source, i);
    Vector<Element, kWidth> wide;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const __half value = __nv_cvt_fp8_to_halfraw(bytes.values[j], __NV_E4M3);
      wide.values[j] = from_float<Element>(__half2float(value) * scale);
    }
    auto* const out = reinterpret_cast<uint4*>(destination) + 2 * i;
    out[0] = reinterpret_cast<const uint4*>(&wide)[0];
    out[1] = reinterpret_cast<const uint4*>(&wide)[1];
  }
}

// A block per page, sequence and KV head.
template <typename Element>
__global__ void __launch_bounds__(kThreads)
    widen_pages_kernel(const __grid_constant__ WidenArguments arguments) {
  const int page_size = arguments.page_size;
  const int index = static_cast<int>(blockIdx.x);
  const int sequence = static_cast<int>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.z);
  const int context_length = arguments.context_lengths[sequence];
  const int query_length = arguments.query_starts[sequence + 1] - arguments.query_starts[sequence];
  const int first_seen = context_length - query_length + 1 - arguments.window;
  if (index * page_size >= context_length || (index + 1) * page_size <= first_seen - kLargestTile) {
    return;
  }
  const int64_t widened_page = static_cast<int64_t>(sequence) * gridDim.x + index;
  if (head == 0 && threadIdx.x == 0) {
    arguments.widened_tables[widened_page] = static_cast<int32_t>(widened_page);
  }
  const int kv_head = arguments.first_kv_head + head;
  const int64_t page =
      arguments.block_tables[static_cast<int64_t>(sequence) * arguments.max_pages + index];
  const int64_t from = (page * arguments.num_kv_heads + kv_head) * arguments.page_elements;
  const int64_t to = (widened_page * gridDim.z + head) * arguments.page_elements;
  const auto widen_to = [&](const void* source, float scale, void* destination) {
    widen(static_cast<const __nv_fp8_storage_t*>(source) + from, scale,
          static_cast<Element*>(destination) + to, arguments.page_elements);
  };
  widen_to(arguments.keys, arguments.key_scales[kv_head], arguments.widened_keys);
  widen_to(arguments.values, arguments.value_scales[kv_head], arguments.widened_values);
}

}  // namespace

void launch_widen_pages(const WidenPages& widen, cudaStream_t stream) {
  constexpr int64_t kNoWindow = int64_t{1} << 30;
  const KvPages& source = widen.source;
  const auto as_int = [](int64_t value) { return static_cast<int>(value); };
  const WidenArguments arguments = {
      .keys = source.keys.data,
      .values = source.values.data,
      .key_scales = source.key_scales.as<float>(),
      .value_scales = source.value_scales.as<float>(),
      .widened_keys = widen.pages.keys.data,
      .widened_values = widen.pages.values.data,
      .query_starts = widen.query_starts.as<int32_t>(),
      .context_lengths = widen.context_lengths.as<int32_t>(),
      .block_tables = widen.block_tables.as<int32_t>(),
      .widened_tables = widen.widened_tables.as<int32_t>(),
      .max_pages = as_int(widen.block_tables.dim(1)),
      .num_kv_heads = as_int(source.num_kv_heads()),
      .first_kv_head = as_int(widen.first_kv_head),
      .page_size = as_int(source.page_size()),
      .window = as_int(widen.sliding_window == 0 ? kNoWindow : widen.sliding_window),
      .page_elements = as_int(source.page_size() * source.head_dim())};
  const dim3 grid(static_cast<unsigned>(widen.widened_tables.dim(1)),
                  static_cast<unsigned>(widen.widened_tables.dim(0)),
                  static_cast<unsigned>(widen.pages.num_kv_heads()));
  if (grid.x == 0) return;
  dispatch_element(widen.pages.keys.dtype, [&]<typename Element>() {
    widen_pages_kernel<Element><<<grid, kThreads, 0, stream>>>(arguments);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
