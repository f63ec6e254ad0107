#include "kernels/cuda/device/graph_timing.h"

#include <memory>
#include <type_traits>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/event.h"

namespace tessera {
namespace {

using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)>;
using ExecutableGraph =
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, decltype(&cudaGraphExecDestroy)>;

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

std::vector<double> time_graph_replays(const std::function<void()>& operations, int64_t repetitions,
                                       cudaStream_t stream) {
  operations();  // kernels are loaded at their first launch, which a capture does not allow
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const Graph graph = record(operations, stream);
  cudaGraphExec_t executable = nullptr;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
  const ExecutableGraph owner(executable, cudaGraphExecDestroy);

  std::vector<Event> events;
  for (int64_t i = 0; i < 2 * repetitions; ++i) events.push_back(make_timing_event());
  CUDA_CHECK(cudaGraphLaunch(executable, stream));  // the first replay also uploads the graph
  for (size_t i = 0; i < events.size(); i += 2) {
    CUDA_CHECK(cudaEventRecord(events[i].get(), stream));
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaEventRecord(events[i + 1].get(), stream));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  std::vector<double> seconds;
  for (size_t i = 0; i < events.size(); i += 2) {
    float milliseconds = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events[i].get(), events[i + 1].get()));
    seconds.push_back(milliseconds * 1e-3);
  }
  return seconds;
}

}  // namespace tessera
