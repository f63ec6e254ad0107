#include "kernels/cpu/linear.h"

namespace tessera {

void linear(const Tensor& out, const Tensor& x, const Tensor& weight,
            const LinearEpilogue& epilogue, bool is_batch_invariant, SplitLinear& split_linear,
            ThreadScratch& scratch, ThreadPool& pool) {
  if (is_batch_invariant || x.dim(0) <= kMaxStreamedTokens) {
    stream_linear(out, x, weight, epilogue, pool);
  } else if (SplitLinear::takes(weight.dtype)) {
    split_linear.run(out, x, weight, epilogue, scratch, pool);
  } else {
    panel_linear(out, x, weight, epilogue, scratch, pool);
  }
}

}  // namespace tessera
