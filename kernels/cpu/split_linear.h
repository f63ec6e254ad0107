// Products with bfloat16 weights by the matrix unit of Intel's processors since 2023 (AMX). It
// multiplies bfloat16 so much faster than vectors multiply float32 that three products take less
// time than one.
//
// A float32 has 24 significant bits and a bfloat16 8, so that an activation is the sum of three
// bfloat16, its parts, without an error. Parts times weights are exact in float32 too, and are
// summed as float32: results are as good as those of float32 products. (Numbers below 1e-33 may
// lose bits: the unit takes what is below the least normal float32 for zero.)
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/linear_epilogue.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

class SplitLinear {
 public:
  // For pools of that many threads.
  explicit SplitLinear(int num_threads);
  ~SplitLinear();
  SplitLinear(const SplitLinear&) = delete;
  SplitLinear& operator=(const SplitLinear&) = delete;

  // Whether this machine has the unit, the vector level in use is its best, and weights of this
  // type fit it.
  static bool takes(DType weight);

  // The product of linear() in linear.h. Results are the same bit by bit on any number of threads.
  void run(const Tensor& out, const Tensor& x, const Tensor& weight, const LinearEpilogue& epilogue,
           ThreadScratch& scratch, ThreadPool& pool);

 private:
  class Products;  // that oneDNN has compiled, of one thread

  std::vector<std::unique_ptr<Products>> products_;
  ScratchBlock parts_;  // of the activations that are multiplied now
};

}  // namespace tessera
