// How the copy engine (TMA, sm_90) leaves rows in shared memory. Plain arithmetic.
//
// A row is cut into equal pieces of 128, 64 or 32 bytes. A panel has one piece of every row, one
// after the other; the panels follow each other. In every 128 bytes of a panel the 16-byte chunks
// of a piece are permuted by XOR with the number of these 128 bytes: wgmma's swizzles of 128, 64
// and 32 bytes. So eight rows' chunks of one number lie in different banks.
#pragma once

#include <cstdint>

namespace tessera {

// Bytes of a row in a panel: the longest piece into which rows of row_bytes can be cut; 0: the copy
// engine cannot bring such rows.
constexpr int panel_row_bytes(int64_t row_bytes) {
  return row_bytes % 128 == 0 ? 128 : row_bytes % 64 == 0 ? 64 : row_bytes % 32 == 0 ? 32 : 0;
}

// What the numbers of the chunks of row `row` are XORed with.
template <int kPanelRowBytes>
constexpr uint32_t panel_swizzle(uint32_t row) {
  return row * kPanelRowBytes / 128 % (kPanelRowBytes / 16);
}

}  // namespace tessera
