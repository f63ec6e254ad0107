// The rotations of rotary position embedding (Su et al. 2021).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/thread_pool.h"

namespace tessera {

// Cosines and sines of a step's tokens. Layers of a step ask for the same ones, or where layers
// differ for those of a few tables by turns, which are computed for the first layer that asks: in
// double precision they take a third of a short step's elementwise work.
class RotationTable {
 public:
  // [num_tokens, 2, num_frequencies]: of every token the cosines, then the sines of its position
  // times the frequencies, both times the amplitudes. Valid until the next call.
  //   rope_table [2, num_frequencies]: frequencies, amplitudes
  const float* rotations(std::span<const int32_t> positions, std::span<const float> rope_table,
                         ThreadPool& pool);

 private:
  struct Rotations {
    std::vector<float> rope_table;
    std::vector<int32_t> positions;
    std::vector<float> values;
  };
  // No model has more: one for all layers, one for those with a window, one that rotates nothing.
  static constexpr size_t kMaxTables = 3;

  Rotations& of_table(std::span<const float> rope_table);

  std::vector<Rotations> tables_;
  size_t next_replaced_ = 0;
};

}  // namespace tessera
