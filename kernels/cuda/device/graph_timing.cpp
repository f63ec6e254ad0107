#include "kernels/cuda/device/graph_timing.h"

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/event.h"
#include "kernels/cuda/device/recorded_graph.h"

namespace tessera {

std::vector<double> time_graph_replays(const std::function<void()>& operations, int64_t repetitions,
                                       cudaStream_t stream) {
  operations();  // loads the kernels
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const std::optional<RecordedGraph> graph = RecordedGraph::record(operations, stream);
  CHECK(graph, "no GPU memory to record operations");
  std::vector<Event> events;
  for (int64_t i = 0; i < 2 * repetitions; ++i) events.push_back(make_timing_event());
  graph->launch(stream);  // the first replay also uploads the graph
  for (size_t i = 0; i < events.size(); i += 2) {
    CUDA_CHECK(cudaEventRecord(events[i].get(), stream));
    graph->launch(stream);
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
