// Sizes that the attention tests share.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/device/head_dims.h"
#include "tests/kernels/attention/problem.h"

namespace tessera {

inline constexpr int64_t kPageSizes[] = {16, 64, 128};

// Groups of 1, 2, 3, 4, 7 and 8 query heads per KV head, over every supported head_dim.
inline std::vector<AttentionSize> head_layouts() {
  return {{.num_heads = 2, .num_kv_heads = 2, .head_dim = 64},
          {.num_heads = 6, .num_kv_heads = 2, .head_dim = 80},
          {.num_heads = 8, .num_kv_heads = 2, .head_dim = 128},
          {.num_heads = 7, .num_kv_heads = 1, .head_dim = 96},
          {.num_heads = 8, .num_kv_heads = 1, .head_dim = 64},
          {.num_heads = 4, .num_kv_heads = 1, .head_dim = 32},
          {.num_heads = 2, .num_kv_heads = 1, .head_dim = 256}};
}

// What a query may see, and what becomes of its scores.
inline std::vector<AttentionSize> score_rules() {
  return {{},
          {.causal = false},
          {.sliding_window = 100},
          {.softcap = 2.0},  // far below the largest scores
          {.softcap = 30.0, .causal = false},
          {.scale = 0.3, .softcap = 5.0, .sliding_window = 33}};
}

class AttentionTest : public BackendTest {
 protected:
  void check(AttentionSize size, int64_t page_size,
             const std::vector<SequenceSize>& sequences) const {
    size.page_size = page_size;
    check(size, sequences);
  }
  void check(const AttentionSize& size, const std::vector<SequenceSize>& sequences) const {
    AttentionProblem(backend(), size, sequences).check();
  }
};

}  // namespace tessera
