// The speed of light of decoding.
#pragma once

#include "engine/options.h"
#include "kernels/tensor/stopped.h"

namespace tessera {

// Bytes per second that the options' device reads now, from a large buffer
// (DeviceMeasurement::read_bandwidth). The buffer is a part of what is free: while a model and its
// KV cache take all but a little, a pass over it ends before its start no longer counts. Rests
// before (rest.h). Throws Stopped when told to.
double measure_read_bandwidth(const EngineOptions& options, const StopQuestion& should_stop = {});

}  // namespace tessera
