// Which of the values that a lane has loaded belong to the context.
#pragma once

#include <cstdint>

namespace tessera {

// Of 16 rows of values, those of two 8 x 8 matrices as load_matrices_transposed() gives them: a
// register holds two rows that follow each other. Registers are those of the first eight rows and
// of the second in turn, or kInTurn at a time.
template <int kInTurn = 1>
struct ValidValues {
  uint32_t masks[2];  // of the first eight rows and of the second

  // row: the lane's first; those from the num_valid-th on are behind the context's end.
  __device__ ValidValues(int row, int num_valid) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int first = row + n * 8;
      masks[n] = (first < num_valid ? 0x0000ffffu : 0) | (first + 1 < num_valid ? 0xffff0000u : 0);
    }
  }

  // Makes zeros of the values behind the end.
  __device__ void clear_others(uint32_t (&values)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] &= masks[i / kInTurn % 2];
  }
};

}  // namespace tessera
