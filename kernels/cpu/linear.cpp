#include "kernels/cpu/linear.h"

namespace tessera {

void linear(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate,
            ThreadScratch& scratch, ThreadPool& pool) {
  if (x.dim(0) <= kMaxStreamedTokens) {
    stream_linear(out, x, weight, accumulate, pool);
  } else {
    panel_linear(out, x, weight, accumulate, scratch, pool);
  }
}

}  // namespace tessera
