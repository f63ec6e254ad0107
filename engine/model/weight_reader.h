// Filling the tensors of a model from its checkpoint.
#pragma once

#include <cstdint>
#include <span>

#include "engine/model/load_progress.h"
#include "kernels/device.h"
#include "model_loaders/checkpoint.h"

namespace tessera {

// Rows of one tensor of the checkpoint and the part of a device tensor that they fill. Rows are as
// long as those of the device tensor but for zeros: one element where that is a vector, which a
// checkpoint may keep as a matrix.
struct WeightPiece {
  const TensorEntry* entry = nullptr;
  Tensor destination;
  int64_t first_row = 0;  // of the file
  // Rows are ordered in groups of row_order.size(): row i of a group in the destination is row
  // row_order[i] of the group in the file, or zeros where that is kZeroElement (head_order.h).
  // Empty: rows stay in their order.
  std::span<const int64_t> row_order;
  std::span<const int64_t> column_order;  // the same of the elements of each row
  // Only for vectors that are kept as float32: (value + addend) * factor.
  double addend = 0.0;
  double factor = 1.0;
};

// Reads all pieces, by several threads, and returns when they are on the device. `progress` is
// called on the calling thread. Throws Error naming tensor or file when a file cannot be read and,
// if `check_values`, when a value is NaN or infinity; of several problems the one of the first
// piece.
void read_weights(std::span<const WeightPiece> pieces, const Checkpoint& checkpoint, Device& device,
                  bool check_values, const LoadProgress& progress);

// Bytes of the pieces in the files.
uint64_t file_bytes(std::span<const WeightPiece> pieces);

}  // namespace tessera
