// Operations as a CUDA graph, which the host launches as a whole.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <type_traits>

namespace tessera {

class RecordedGraph {
 public:
  // Calls `operations` and records what they enqueue on `stream`, which is not executed. Kernels
  // are loaded at their first launch, which recording does not allow: each must have been launched
  // before. Throws what `operations` throws, and Error where CUDA cannot record.
  RecordedGraph(const std::function<void()>& operations, cudaStream_t stream);

  void launch(cudaStream_t stream) const;

 private:
  // A graph that still runs is freed when it has ended.
  using Executable =
      std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, decltype(&cudaGraphExecDestroy)>;
  Executable executable_{nullptr, cudaGraphExecDestroy};
};

}  // namespace tessera
