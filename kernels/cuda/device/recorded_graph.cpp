#include "kernels/cuda/device/recorded_graph.h"

#include "kernels/cuda/device/cuda_check.h"

namespace tessera {
namespace {

using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)>;

// The stream leaves capture mode also when `operations` throws.
Graph capture(const std::function<void()>& operations, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    operations();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // or it would be taken for an error of the next kernel launch
    throw;
  }
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  return Graph(graph, cudaGraphDestroy);
}

}  // namespace

std::optional<RecordedGraph> RecordedGraph::record(const std::function<void()>& operations,
                                                   cudaStream_t stream) {
  const Graph graph = capture(operations, stream);
  cudaGraphExec_t executable = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&executable, graph.get(), 0);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return {};
  }
  CUDA_CHECK(code);
  return RecordedGraph(executable);
}

void RecordedGraph::launch(cudaStream_t stream) const {
  CUDA_CHECK(cudaGraphLaunch(executable_.get(), stream));
}

}  // namespace tessera
