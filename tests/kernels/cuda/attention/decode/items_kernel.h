// Runs the division of decode attention on the GPU and says what every block would read.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/attention/decode/partition.h"

namespace tessera {

struct DecodeItemsCase {
  DecodeItemShape shape;
  int num_blocks;
  bool is_even;  // num_blocks / KV heads blocks for each KV head of one sequence
  std::vector<int32_t> query_starts;     // [sequences + 1]
  std::vector<int32_t> context_lengths;  // [sequences]
};

// A piece as DecodeItems gives it.
struct ListedPiece {
  int sequence, kv_head, first_row, num_rows, tile_begin, tile_end, index, first_block, count;

  bool operator==(const ListedPiece&) const = default;
};

// Per block, its pieces in the order in which it reads them. The lengths of the first 32 sequences
// are kept by the warp, or of the first 64: what the one-kernel step and the attention kernel do.
std::vector<std::vector<ListedPiece>> listed_pieces(const DecodeItemsCase& work,
                                                    int known_sequences);

}  // namespace tessera
