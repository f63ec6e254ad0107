// Attention right behind the operation that stores the step's queries, keys and values, and right
// before one that stores others in their place: on CUDA each starts before the one before has
// ended, and in a step with decodes and prompts so do the two parts of attention.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/attention/problem.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/linear/normed_rows.h"
#include "tests/kernels/num_repeats.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kOrderPageSize = 64;
// Tokens that are stored before those of the sequences, to no other end than to take time. A
// product that stores them takes it for its features. On the CPU nothing is under way when an
// operation returns, and so nothing need take time there.
constexpr int64_t kOtherTokens = 6000;
constexpr int64_t kOtherTokensOfProduct = 40;
constexpr int64_t kHiddenSize = 8192;
constexpr int64_t kOtherTokensOnCpu = 3;
constexpr int64_t kHiddenSizeOnCpu = 64;

class AttentionOrderTest : public BackendTest {
 protected:
  // The newest tokens of contexts are stored, and at once attended to: first those of decodes, then
  // those of prompts.
  void check(int64_t head_dim, const std::vector<SequenceSize>& sequences, bool by_product) const {
    SCOPED_TRACE(testing::Message()
                 << sequences.size() << " sequences, the first with " << sequences[0].query_length
                 << " queries of " << sequences[0].context_length << " tokens, head_dim "
                 << head_dim << (by_product ? ", stored by the product" : ""));
    RandomValues random(static_cast<uint64_t>(sequences[0].context_length));
    const auto num_sequences = static_cast<int64_t>(sequences.size());
    int64_t query_length = 0;
    int64_t context_pages = 0;
    AttentionBatch batch = {.num_sequences = num_sequences};
    for (const auto& [queries, context] : sequences) {
      if (queries <= kMaxDecodeQueryLength) {
        ++batch.num_decodes;
        batch.num_decode_keys += context;
        batch.max_decode_query_length = std::max(batch.max_decode_query_length, queries);
      } else {
        batch.num_prefill_scores += queries * context;
      }
      batch.max_query_length = std::max(batch.max_query_length, queries);
      batch.max_context_length = std::max(batch.max_context_length, context);
      query_length += queries;
      context_pages += ceil_divide(context, kOrderPageSize);
    }
    const bool on_cpu = device().type() == DeviceType::kCpu;
    const int64_t other_tokens = on_cpu       ? kOtherTokensOnCpu
                                 : by_product ? kOtherTokensOfProduct
                                              : kOtherTokens;
    const int64_t num_tokens = other_tokens + query_length;
    const int64_t qkv_rows = (kHeads + 2 * kKvHeads) * head_dim;
    const int64_t num_pages = context_pages + ceil_divide(other_tokens, kOrderPageSize);
    const Shape page_shape{num_pages, kKvHeads, kOrderPageSize, head_dim};
    const Shape query_shape{num_tokens, kHeads, head_dim};
    const auto page_values =
        rounded(random.normal(num_pages * kKvHeads * kOrderPageSize * head_dim), activation());
    const DeviceTensor qkv =
        activations(random.normal(num_tokens * qkv_rows), {num_tokens, qkv_rows});
    const int64_t hidden_size = on_cpu ? kHiddenSizeOnCpu : by_product ? kHiddenSize : 8;
    const DeviceTensor residual =
        floats(random.normal(num_tokens * hidden_size), {num_tokens, hidden_size});
    const DeviceTensor norm_weight = floats(random.normal(hidden_size), {hidden_size});
    const DeviceTensor weight =
        activations(random.normal(qkv_rows * hidden_size, 0.01), {qkv_rows, hidden_size});
    const PoisonedRows rows(backend(), num_tokens, hidden_size);
    // The contexts have the first pages, the other tokens the rest.
    std::vector<int32_t> slots(static_cast<size_t>(other_tokens));
    std::iota(slots.begin(), slots.end(), static_cast<int32_t>(context_pages * kOrderPageSize));
    const int64_t table_pages = ceil_divide(batch.max_context_length, kOrderPageSize);
    std::vector<int32_t> table, query_starts = {0}, context_lengths;
    int64_t first_page = 0;
    for (const auto& [queries, context] : sequences) {
      for (int64_t token = context - queries; token < context; ++token) {
        slots.push_back(static_cast<int32_t>(first_page * kOrderPageSize + token));
      }
      for (int64_t page = 0; page < table_pages; ++page) {
        table.push_back(static_cast<int32_t>(std::min(first_page + page, context_pages - 1)));
      }
      query_starts.push_back(static_cast<int32_t>(query_starts.back() + queries));
      context_lengths.push_back(static_cast<int32_t>(context));
      first_page += ceil_divide(context, kOrderPageSize);
    }
    const DeviceTensor positions = integers(random.integers(num_tokens, 0, 4096), {num_tokens});
    const DeviceTensor kv_slots = integers(slots, {num_tokens});
    const DeviceTensor table_of_rope = floats(random.normal(head_dim), {2, head_dim / 2});
    const DeviceTensor starts = integers(query_starts, {num_sequences + 1});
    const DeviceTensor lengths = integers(context_lengths, {num_sequences});
    const DeviceTensor tables = integers(table, {num_sequences, table_pages});
    batch.query_starts = starts;
    batch.context_lengths = lengths;
    batch.block_tables = tables;
    const DeviceTensor no_qkv = poisoned(backend(), activation(), {num_tokens, qkv_rows});
    const size_t workspace_bytes =
        operations().attention_workspace_bytes({.max_tokens = query_length,
                                                .max_sequences = num_sequences,
                                                .max_context_length = batch.max_context_length,
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
      const AttentionParams params = {.query = query.view.slice(other_tokens, num_tokens),
                                      .pages = {keys, values},
                                      .batch = batch,
                                      .scale = 0.1f,
                                      .workspace = workspace};
      RopeStoreKvParams rope = {.query = query,
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
      if (waits) device().synchronize();
      rope.qkv = no_qkv;  // whoever reads now gets NaN
      operations().rope_store_kv(rope);
      return bytes_of(backend(), out);
    };
    const std::vector<uint8_t> expected = run(true);
    const int64_t repeats = on_cpu ? 1 : num_repeats(5);
    for (int64_t repeat = 0; repeat < repeats; ++repeat) EXPECT_TRUE(run(false) == expected);
  }
};

TEST_P(AttentionOrderTest, SeesWhatWasStoredJustBefore) {
  for (const bool by_product : {false, true}) {
    for (const int64_t head_dim : {64, 128}) {
      check(head_dim, {{1, 1}}, by_product);
      check(head_dim, {{1, 64}}, by_product);
      check(head_dim, {{1, 65}}, by_product);
      check(head_dim, {{1, 2000}}, by_product);
      check(head_dim, {{8, 1029}}, by_product);  // in two tiles
      check(head_dim, {{8, 8}}, by_product);
      check(head_dim, {{1, 2000}, {9, 9}}, by_product);
      if (by_product) continue;  // which takes few tokens
      check(head_dim, {{130, 130}}, by_product);
      check(head_dim, {{300, 1029}}, by_product);
      check(head_dim, {{1, 70}, {300, 1029}}, by_product);
      check(head_dim, {{1, 2000}, {1, 90}, {8, 3000}, {1, 5000}, {130, 130}, {40, 70}}, by_product);
    }
  }
}

FOR_EACH_ATTENTION_BACKEND(AttentionOrderTest);

}  // namespace
}  // namespace tessera
