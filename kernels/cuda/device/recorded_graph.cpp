#include "kernels/cuda/device/recorded_graph.h"

#include "kernels/cuda/device/cuda_check.h"

namespace tessera {
namespace {

using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)>;

// The stream leaves capture mode also when `operations` throws.
Graph record(const std::function<void()>& operations, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    operations();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    throw;
  }
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  return Graph(graph, cudaGraphDestroy);
}

}  // namespace

RecordedGraph::RecordedGraph(const std::function<void()>& operations, cudaStream_t stream) {
  const Graph graph = record(operations, stream);
  cudaGraphExec_t executable = nullptr;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
  executable_.reset(executable);
}

void RecordedGraph::launch(cudaStream_t stream) const {
  CUDA_CHECK(cudaGraphLaunch(executable_.get(), stream));
}

}  // namespace tessera
