#include <algorithm>

#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/memory.h"
#include "tests/kernels/cuda/attention/decode/items_kernel.h"

namespace tessera {
namespace {

// One warp per block, as one of the kernel's producer warps. `pieces` has room for `most` a block;
// more are counted, not stored.
template <int kKnown>
__global__ void list_pieces(AttentionArguments arguments, DecodeDivision division, bool keeps_whole,
                            ListedPiece* pieces, int* counts, int most) {
  DecodeItems<kKnown> items(arguments, division, keeps_whole);
  items.divide();
  DecodePiece piece;
  int count = 0;
  for (; items.next(piece); ++count) {
    if (lane_index() != 0 || count >= most) continue;
    pieces[static_cast<int>(blockIdx.x) * most + count] = {.sequence = piece.sequence,
                                                           .kv_head = piece.kv_head,
                                                           .first_row = piece.first_row,
                                                           .num_rows = piece.num_rows,
                                                           .tile_begin = piece.tile_begin,
                                                           .tile_end = piece.tile_end,
                                                           .index = piece.index,
                                                           .first_block = piece.owners.first_block,
                                                           .count = piece.owners.count};
  }
  if (lane_index() == 0) counts[blockIdx.x] = count;
}

template <typename Value>
Buffer on_device(const std::vector<Value>& values) {
  const size_t bytes = values.size() * sizeof(Value);
  Buffer buffer = allocate_device_memory(bytes, "a test");
  CUDA_CHECK(cudaMemcpy(buffer.data(), values.data(), bytes, cudaMemcpyDefault));
  return buffer;
}

template <typename Value>
void copy_back(std::vector<Value>& values, const Buffer& buffer) {
  CUDA_CHECK(
      cudaMemcpy(values.data(), buffer.data(), values.size() * sizeof(Value), cudaMemcpyDefault));
}

}  // namespace

std::vector<std::vector<ListedPiece>> listed_pieces(const DecodeItemsCase& work,
                                                    int known_sequences) {
  const auto num_sequences = static_cast<int>(work.context_lengths.size());
  const auto num_blocks = static_cast<size_t>(work.num_blocks);
  const int item_blocks = work.is_even ? work.num_blocks / work.shape.num_kv_heads : 2;
  const Buffer query_starts = on_device(work.query_starts);
  const Buffer context_lengths = on_device(work.context_lengths);
  std::vector<int> counts(num_blocks);
  const Buffer device_counts = on_device(counts);
  const AttentionArguments arguments = {
      .out = nullptr,
      .query = nullptr,
      .keys = nullptr,
      .values = nullptr,
      .query_starts = static_cast<const int32_t*>(query_starts.data()),
      .context_lengths = static_cast<const int32_t*>(context_lengths.data()),
      .block_tables = nullptr,
      .max_pages = 0,
      .num_tokens = work.query_starts.back(),
      .num_decodes = num_sequences,
      .num_heads = work.shape.num_kv_heads * work.shape.heads_per_kv_head,
      .num_kv_heads = work.shape.num_kv_heads,
      .heads_per_kv_head = work.shape.heads_per_kv_head,
      .page_size = FastDivisor(64),
      .causal = true,
      .window = work.shape.window,
      .softcap_scale = 0.0f,
      .scale_log2 = 1.0f};
  const DecodeDivision division = {.item_rows = work.shape.item_rows,
                                   .is_even = work.is_even,
                                   .item_blocks = FastDivisor(static_cast<uint32_t>(item_blocks)),
                                   .max_whole_tiles = kMaxWholeTiles,
                                   .least_tiles = kLeastSplitTiles};
  const auto kernel = known_sequences == kWarpSize ? list_pieces<1> : list_pieces<2>;
  const auto run = [&](ListedPiece* pieces, int most) {
    kernel<<<static_cast<unsigned>(work.num_blocks), kWarpSize>>>(
        arguments, division, work.shape.keeps_whole, pieces,
        static_cast<int*>(device_counts.data()), most);
    CUDA_CHECK(cudaGetLastError());
    copy_back(counts, device_counts);
  };
  run(nullptr, 0);  // counts
  const int most = std::max(*std::ranges::max_element(counts), 1);
  std::vector<ListedPiece> pieces(num_blocks * static_cast<size_t>(most));
  const Buffer device_pieces = on_device(pieces);
  run(static_cast<ListedPiece*>(device_pieces.data()), most);
  copy_back(pieces, device_pieces);

  std::vector<std::vector<ListedPiece>> of_blocks(num_blocks);
  for (size_t block = 0; block < num_blocks; ++block) {
    const auto first = pieces.begin() + static_cast<std::ptrdiff_t>(block) * most;
    of_blocks[block].assign(first, first + counts[block]);
  }
  return of_blocks;
}

}  // namespace tessera
