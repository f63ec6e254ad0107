// How fast this machine reads memory: the limit of decoding.
#pragma once

#include "kernels/cpu/thread_pool.h"

namespace tessera {

// Bytes per second at which all threads together read a buffer larger than any cache, the median
// of several passes. Allocates 512 MiB for the time of the call.
double measure_host_read_bandwidth(ThreadPool& pool);

}  // namespace tessera
