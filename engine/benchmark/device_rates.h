// How fast a device computes and reads, for forecasts of what a model will take there.
#pragma once

#include "engine/options.h"
#include "kernels/tensor/dtype.h"
#include "kernels/tensor/stopped.h"

namespace tessera {

struct DeviceRates {
  double product_operations = 0.0;    // per second, of products with weights
  double attention_operations = 0.0;  // per second, of prompts
  double read_bytes = 0.0;            // per second
};

// Of the options' device, for weights that are stored as `weight_dtype`. On a CPU this takes about
// half a second and 512 MiB, which are given back. Throws Stopped when told to.
DeviceRates measure_device_rates(const EngineOptions& options, DType weight_dtype,
                                 const StopQuestion& should_stop = {});

}  // namespace tessera
