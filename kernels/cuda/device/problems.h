// What people are told when a GPU cannot be used. Plain C++, so that every sentence is tested on
// machines without the problem it speaks of.
#pragma once

#include <string>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// Why no GPU is visible. Versions as CUDA encodes them (13000 is 13.0); driver_version is 0 when
// there is no driver at all. `insufficient`: the runtime refused the driver as too old or absent.
inline std::string missing_gpu_problem(bool insufficient, int driver_version, int runtime_version) {
  if (!insufficient) return "no visible GPU";
  if (driver_version == 0) return "no NVIDIA driver";
  // A driver runs every minor version of its major version.
  return concat("driver supports CUDA ", driver_version / 1000, '.', driver_version % 1000 / 10,
                ", need ", runtime_version / 1000, ".0");
}

// For an index that is not in [0, num_devices).
inline std::string gpu_index_problem(int index, int num_devices) {
  return concat("there is no GPU ", index, "; valid ",
                num_devices == 1 ? "is 0" : concat("are 0 to ", num_devices - 1));
}

// For a GPU of compute capability major.minor that `built`, e.g. "sm_80, sm_90", leaves out.
inline std::string gpu_architecture_problem(std::string_view name, int major, int minor,
                                            std::string_view built) {
  return concat("GPU '", name, "' sm_", major, minor, " not supported; built for ", built);
}

}  // namespace tessera
