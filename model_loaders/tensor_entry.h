// Where one tensor of a checkpoint lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/tensor/dtype.h"
#include "kernels/tensor/shape.h"

namespace tessera {

// Offsets are absolute in the file and need not be aligned.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  size_t file_index = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

}  // namespace tessera
