#include "kernels/cpu/linear.h"

namespace tessera {

void linear(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate,
            ThreadScratch& scratch, int num_threads) {
  if (x.dim(0) <= kMaxStreamedTokens) {
    stream_linear(out, x, weight, accumulate, num_threads);
  } else {
    panel_linear(out, x, weight, accumulate, scratch, num_threads);
  }
}

}  // namespace tessera
