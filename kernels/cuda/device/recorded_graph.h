// Operations as a CUDA graph, which the host launches as a whole.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

namespace tessera {

class RecordedGraph {
 public:
  // Calls `operations` and records what they enqueue on `stream`, which is not executed. Kernels
  // are loaded at their first launch, which recording does not allow: each must have been launched
  // before. Nothing where the GPU has no memory left for the graph. Throws what `operations`
  // throws, and Error where CUDA cannot record.
  static std::optional<RecordedGraph> record(const std::function<void()>& operations,
                                             cudaStream_t stream);

  // Enqueues all of it on `stream`. Throws Error where CUDA fails.
  void launch(cudaStream_t stream) const;

 private:
  // A graph that still runs is freed when it has ended.
  using Executable =
      std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, decltype(&cudaGraphExecDestroy)>;

  explicit RecordedGraph(cudaGraphExec_t executable)
      : executable_(executable, cudaGraphExecDestroy) {}

  Executable executable_;
};

}  // namespace tessera
