// Attention right behind the operation that stores the step's queries, keys and values: on CUDA it
// starts before that one has ended.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/linear/normed_rows.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kPageSize = 64;
// Tokens that are stored before those of the decode, to no other end than to take time. A product
// that stores them takes it for its features.
constexpr int64_t kOtherTokens = 6000;
constexpr int64_t kOtherTokensOfProduct = 40;
constexpr int64_t kHiddenSize = 8192;

class AttentionOrderTest : public BackendTest {
 protected:
  // The newest query_length tokens of a context are stored, and at once attended to, as a decode
  // or, if there are too many, as a prompt.
  void check(int64_t head_dim, int64_t query_length, int64_t context_length,
             bool by_product) const {
    SCOPED_TRACE(testing::Message()
                 << query_length << " queries of " << context_length << " tokens, head_dim "
                 << head_dim << (by_product ? ", stored by the product" : ""));
    const bool is_decode = query_length <= kMaxDecodeQueryLength;
    RandomValues random(static_cast<uint64_t>(context_length));
    const int64_t other_tokens = by_product ? kOtherTokensOfProduct : kOtherTokens;
    const int64_t num_tokens = other_tokens + query_length;
    const int64_t qkv_rows = (kHeads + 2 * kKvHeads) * head_dim;
    const int64_t context_pages = ceil_divide(context_length, kPageSize);
    const int64_t num_pages = context_pages + ceil_divide(other_tokens, kPageSize);
    const Shape page_shape{num_pages, kKvHeads, kPageSize, head_dim};
    const Shape query_shape{num_tokens, kHeads, head_dim};
    const auto page_values =
        rounded(random.normal(num_pages * kKvHeads * kPageSize * head_dim), activation());
    const DeviceTensor qkv =
        activations(random.normal(num_tokens * qkv_rows), {num_tokens, qkv_rows});
    const int64_t hidden_size = by_product ? kHiddenSize : 8;
    const DeviceTensor residual =
        floats(random.normal(num_tokens * hidden_size), {num_tokens, hidden_size});
    const DeviceTensor norm_weight = floats(random.normal(hidden_size), {hidden_size});
    const DeviceTensor weight =
        activations(random.normal(qkv_rows * hidden_size, 0.01), {qkv_rows, hidden_size});
    const PoisonedRows rows(backend(), num_tokens, hidden_size);
    // The context has the first pages, the other tokens the rest.
    std::vector<int32_t> slots(static_cast<size_t>(num_tokens));
    std::iota(slots.begin(), slots.end(), static_cast<int32_t>(context_pages * kPageSize));
    std::iota(slots.end() - query_length, slots.end(),
              static_cast<int32_t>(context_length - query_length));
    std::vector<int32_t> table(static_cast<size_t>(context_pages));
    std::iota(table.begin(), table.end(), 0);
    const DeviceTensor positions = integers(random.integers(num_tokens, 0, 4096), {num_tokens});
    const DeviceTensor kv_slots = integers(slots, {num_tokens});
    const DeviceTensor table_of_rope = floats(random.normal(head_dim), {2, head_dim / 2});
    const DeviceTensor starts = integers({0, static_cast<int32_t>(query_length)}, {2});
    const DeviceTensor lengths = integers({static_cast<int32_t>(context_length)}, {1});
    const DeviceTensor tables = integers(table, {1, context_pages});
    const size_t workspace_bytes =
        operations().attention_workspace_bytes({.max_tokens = query_length,
                                                .max_sequences = 1,
                                                .max_context_length = context_length,
                                                .num_heads = kHeads,
                                                .num_kv_heads = kKvHeads,
                                                .head_dim = head_dim});
    const DeviceTensor workspace =
        poisoned(backend(), DType::kFloat32,
                 {static_cast<int64_t>(ceil_divide(workspace_bytes, sizeof(float)))});

    const auto run = [&](bool waits) {
      const DeviceTensor keys = activations(page_values, page_shape);
      const DeviceTensor values = activations(page_values, page_shape);
      const DeviceTensor query = poisoned(backend(), activation(), query_shape);
      const DeviceTensor out = poisoned(backend(), activation(), {query_length, kHeads, head_dim});
      const AttentionParams params = {
          .query = query.view.slice(other_tokens, num_tokens),
          .pages = {keys, values},
          .batch = {.query_starts = starts,
                    .context_lengths = lengths,
                    .block_tables = tables,
                    .num_sequences = 1,
                    .num_decodes = is_decode ? 1 : 0,
                    .max_decode_query_length = is_decode ? query_length : 1,
                    .max_query_length = query_length,
                    .max_context_length = context_length},
          .scale = 0.1f,
          .workspace = workspace};
      const RopeStoreKvParams rope = {.query = query,
                                      .pages = {keys, values},
                                      .qkv = qkv,
                                      .positions = positions,
                                      .kv_slots = kv_slots,
                                      .rope_table = table_of_rope};
      if (by_product) {
        fused().begin_norm(rows.view(), residual, norm_weight);
        fused().normed_linear_rope_store_kv(rope, rows.view(), weight);
      } else {
        operations().rope_store_kv(rope);
      }
      if (waits) device().synchronize();
      operations().attention(out, params);
      return bytes_of(backend(), out);
    };
    const std::vector<uint8_t> expected = run(true);
    for (int repeat = 0; repeat < 5; ++repeat) EXPECT_TRUE(run(false) == expected);
  }
};

TEST_P(AttentionOrderTest, SeesWhatWasStoredJustBefore) {
  for (const bool by_product : {false, true}) {
    for (const int64_t head_dim : {64, 128}) {
      check(head_dim, 1, 1, by_product);
      check(head_dim, 1, 64, by_product);
      check(head_dim, 1, 65, by_product);
      check(head_dim, 1, 2000, by_product);
      check(head_dim, 8, 1029, by_product);  // in two tiles
      check(head_dim, 8, 8, by_product);
      if (by_product) continue;  // which takes few tokens
      check(head_dim, 130, 130, by_product);
      check(head_dim, 300, 1029, by_product);
    }
  }
}

FOR_EACH_ATTENTION_BACKEND(AttentionOrderTest);

}  // namespace
}  // namespace tessera
