#include <dnnl.h>
#include <dnnl_debug.h>

#include <algorithm>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/single_threaded_library.h"
#include "kernels/cpu/vectors.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// Output features that are computed at a time: oneDNN reaches half the speed below 128, and with
// more the widened weights leave the cache.
constexpr int64_t kPanelRows = 128;
// Tokens that are computed at a time, at most: enough to repay the widening, few enough that many
// threads have work.
constexpr int64_t kMaxPanelTokens = 512;
// A stop is heard between panels: on a slow core they take three times as long as estimated.
constexpr double kMaxPanelNanoseconds = 10e6;

// Tokens of a panel that takes no longer than that, but enough to repay the widening.
int64_t max_panel_tokens(int64_t in_features) {
  const double nanoseconds =
      static_cast<double>(kPanelRows * in_features) * kNanosecondsPerMultiplyAdd;
  return std::clamp(static_cast<int64_t>(kMaxPanelNanoseconds / nanoseconds), int64_t{64},
                    kMaxPanelTokens);
}

struct Widen {
  template <int kLanes, typename Weight>
  VECTOR_INLINE static void run(const Weight* weight, float* widened, int64_t size) {
    typename VectorOf<kLanes>::Floats lanes;
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      load(weight + i, lanes);
      store(lanes, widened + i);
    }
    if (i < size) {
      load_first(weight + i, size - i, lanes);
      store_first(lanes, size - i, widened + i);
    }
  }
};

// out[i] += multiplier * bias[i]
struct AddBias {
  template <int kLanes>
  VECTOR_INLINE static void run(float* out, const float* bias, int64_t size, float multiplier) {
    typename VectorOf<kLanes>::Floats lanes, bias_lanes;
    for (int64_t i = 0; i < size; i += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, size - i);
      load_first(out + i, count, lanes);
      load_first(bias + i, count, bias_lanes);
      store_first(lanes + bias_lanes * multiplier, count, out + i);
    }
  }
};

}  // namespace

void panel_linear(const Tensor& out, const Tensor& x, const Tensor& weight,
                  const LinearEpilogue& epilogue, ThreadScratch& scratch, ThreadPool& pool) {
  const int64_t num_tokens = x.dim(0);
  const int64_t in_features = x.dim(1);
  const int64_t out_features = weight.dim(0);
  const int64_t num_panels = ceil_divide(out_features, kPanelRows);
  const int64_t num_blocks = ceil_divide(num_tokens, max_panel_tokens(in_features));
  const int64_t block_tokens = ceil_divide(num_tokens, num_blocks);
  const double nanoseconds =
      static_cast<double>(kPanelRows * block_tokens * in_features) * kNanosecondsPerMultiplyAdd;
  with_float_type(weight.dtype, [&]<typename Weight>() {
    pool.for_each(num_panels * num_blocks, nanoseconds, [&](int64_t i, int thread) {
      const int64_t row = i % num_panels * kPanelRows;
      const int64_t num_rows = std::min(kPanelRows, out_features - row);
      const int64_t token = i / num_panels * block_tokens;
      const int64_t panel_tokens = std::min(block_tokens, num_tokens - token);
      float* const panel = out.as<float>() + token * out_features + row;
      const Weight* stored = weight.as<Weight>() + row * in_features;
      const float* widened = nullptr;
      if constexpr (std::is_same_v<Weight, float>) {
        widened = stored;
      } else {
        float* copy = scratch.get<float>(thread, num_rows * in_features);
        run_vectorized<Widen>(stored, copy, num_rows * in_features);
        widened = copy;
      }
      const SingleThreadedLibrary single_threaded;
      const dnnl_status_t status =
          dnnl_sgemm('N', 'T', panel_tokens, num_rows, in_features, epilogue.multiplier,
                     x.as<float>() + token * in_features, in_features, widened, in_features,
                     epilogue.accumulate ? 1.0f : 0.0f, panel, out_features);
      CHECK(status == dnnl_success, "oneDNN could not multiply [", num_tokens, ", ", in_features,
            "] by [", in_features, ", ", out_features, "]: ", dnnl_status2str(status));
      if (epilogue.bias == nullptr) return;
      for (int64_t t = 0; t < panel_tokens; ++t) {  // what the product has left in the cache
        run_vectorized<AddBias>(panel + t * out_features, epilogue.bias + row, num_rows,
                                epilogue.multiplier);
      }
    });
  });
}

}  // namespace tessera
