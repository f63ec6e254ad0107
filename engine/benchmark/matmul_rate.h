// The speed of light of prefill.
#pragma once

#include "kernels/device_measurement.h"
#include "kernels/operations.h"

namespace tessera {

// Floating-point operations per second of one large product of activations and weights of
// `weight_dtype` by linear(), the median of `repetitions`: 8192^3 on CUDA, 1024^3 on the CPU.
// Random numbers, since zeros multiply faster.
double measure_matmul_rate(Operations& operations, DeviceMeasurement& measurement,
                           DType weight_dtype, int64_t repetitions);

}  // namespace tessera
