#include <dnnl.h>

#include <algorithm>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectors.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

// Output features that a thread computes at a time: enough to repay oneDNN's packing of x, few
// enough that the widened weights stay in the cache and that every thread has some.
constexpr int64_t kMinPanelRows = 64;
constexpr int64_t kMaxPanelRows = 256;

template <typename Weight>
VECTOR_FUNCTION void widen(const Weight* weight, float* widened, int64_t count) {
  Lanes lanes;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    load(weight + i, lanes);
    store(lanes, widened + i);
  }
  for (; i < count; ++i) widened[i] = to_float(weight[i]);
}

}  // namespace

void panel_linear(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate,
                  ThreadScratch& scratch, int num_threads) {
  const int64_t num_tokens = x.dim(0);
  const int64_t in_features = x.dim(1);
  const int64_t out_features = weight.dim(0);
  const int64_t panel_rows =
      std::clamp(ceil_divide<int64_t>(out_features, num_threads), kMinPanelRows, kMaxPanelRows);
  const SerialLibraries serial;  // every thread computes panels by itself
  with_float_type(weight.dtype, [&]<typename Weight>() {
    parallel_for(ceil_divide(out_features, panel_rows), num_threads, [&](int64_t panel) {
      const int64_t row = panel * panel_rows;
      const int64_t num_rows = std::min(panel_rows, out_features - row);
      const Weight* stored = weight.as<Weight>() + row * in_features;
      const float* widened = nullptr;
      if constexpr (std::is_same_v<Weight, float>) {
        widened = stored;
      } else {
        float* copy = scratch.get<float>(num_rows * in_features);
        widen(stored, copy, num_rows * in_features);
        widened = copy;
      }
      dnnl_sgemm('N', 'T', num_tokens, num_rows, in_features, 1.0f, x.as<float>(), in_features,
                 widened, in_features, accumulate ? 1.0f : 0.0f, out.as<float>() + row,
                 out_features);
    });
  });
}

}  // namespace tessera
