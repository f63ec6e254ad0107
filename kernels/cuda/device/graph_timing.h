// How long a few operations take on the GPU, without what it costs to launch them one by one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tessera {

// Runs `operations` once, records what it enqueues on `stream` into a graph, replays the graph once
// untimed and then `repetitions` times between two events each. The replays queue up behind one
// another, so that the GPU never waits for the host. Returns the seconds of each.
std::vector<double> time_graph_replays(const std::function<void()>& operations, int64_t repetitions,
                                       cudaStream_t stream);

}  // namespace tessera
