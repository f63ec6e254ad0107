// The speed of light of prefill.
#pragma once

#include "kernels/backend.h"

namespace tessera {

// Floating-point operations per second of one large product of activations by linear(), the median
// of several: 8192^3 on CUDA, 1024^3 on the CPU. Random numbers, since zeros multiply faster.
double measure_matmul_rate(Backend& backend);

}  // namespace tessera
