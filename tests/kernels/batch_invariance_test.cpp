// Kernels that were asked to be batch-invariant: a token comes out the same bit by bit whichever
// tokens are computed with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/sanitized.h"

namespace tessera {
namespace {

class BatchInvarianceTest : public BackendTest {};

TEST_P(BatchInvarianceTest, ProductsOfAnyNumberOfTokens) {
  constexpr int64_t kMostTokens = kIsSanitized ? 130 : 700;
  struct Size {
    int64_t out_features, in_features;
  };
  for (const auto& [out_features, in_features] :
       {Size{40, 136}, {1000, 1032}, {65, 8200}, {6144, 512}, {264, 4096}}) {
    RandomValues random(5);
    const DType weight_type = operations().weight_dtype(DType::kBFloat16);
    const DeviceTensor x =
        activations(random.normal(kMostTokens * in_features), {kMostTokens, in_features});
    const DeviceTensor weight =
        to_device(backend(), random.normal(out_features * in_features, 0.05), weight_type,
                  {out_features, in_features});
    const auto residual = random.normal(kMostTokens * out_features);
    // The rows of tokens [begin, end), computed without any other.
    const auto product = [&](int64_t begin, int64_t end, bool adds) {
      const std::vector<double> before(residual.begin() + begin * out_features,
                                       residual.begin() + end * out_features);
      const DeviceTensor out = floats(before, {end - begin, out_features});
      const Tensor rows = x.view.slice(begin, end);
      if (adds) {
        operations().linear_add(out, rows, weight, 1.0f);
      } else {
        operations().linear(out, rows, weight);
      }
      return bytes_of(backend(), out);
    };
    for (const bool adds : {false, true}) {
      const std::vector<uint8_t> all = product(0, kMostTokens, adds);
      const size_t row_bytes = all.size() / kMostTokens;
      for (const int64_t num_tokens : {1, 2, 8, 9, 16, 17, 64, 65, 127, 128, 129, 300, 699}) {
        if (num_tokens > kMostTokens) continue;
        for (const int64_t begin : {int64_t{0}, kMostTokens - num_tokens}) {
          SCOPED_TRACE(testing::Message()
                       << in_features << " -> " << out_features << (adds ? ", added" : "") << ", "
                       << num_tokens << " tokens from " << begin);
          const auto some = product(begin, begin + num_tokens, adds);
          EXPECT_TRUE(std::ranges::equal(
              some, std::span(all).subspan(static_cast<size_t>(begin) * row_bytes, some.size())));
        }
      }
    }
  }
}

struct HeadSizes {
  int64_t num_heads, num_kv_heads, head_dim;
  int64_t sliding_window = 0;
  float softcap = 0.0f;
};

// Keys, values and queries of one context, of which any range can be computed.
class Context {
 public:
  static constexpr int64_t kTokens = 1500;
  static constexpr int64_t kPageSize = 16;

  Context(Backend& backend, const HeadSizes& sizes) : backend_(backend), sizes_(sizes) {
    RandomValues random(9);
    const DType dtype = backend.operations().activation_dtype();
    const int64_t pages = ceil_divide(kTokens, kPageSize);
    const Shape shape{pages, sizes.num_kv_heads, kPageSize, sizes.head_dim};
    keys_ = to_device(backend, random.normal(shape.num_elements()), dtype, shape);
    values_ = to_device(backend, random.normal(shape.num_elements()), dtype, shape);
    const Shape query_shape{kTokens, sizes.num_heads, sizes.head_dim};
    query_ = to_device(backend, random.normal(query_shape.num_elements()), dtype, query_shape);
    table_.resize(static_cast<size_t>(pages));
    std::iota(table_.begin(), table_.end(), 0);
  }

  // Attention of tokens [begin, end) beside so many other sequences, which have a token each.
  std::vector<uint8_t> rows(int64_t begin, int64_t end, int64_t others) const {
    const int64_t num_queries = end - begin;
    std::vector<int32_t> starts(static_cast<size_t>(others) + 2), lengths, tables;
    for (int64_t i = 0; i <= others; ++i) {
      const bool is_last = i == others;
      starts[static_cast<size_t>(i) + 1] = static_cast<int32_t>(i + (is_last ? num_queries : 1));
      lengths.push_back(static_cast<int32_t>(is_last ? end : 1 + i * 37 % kTokens));
      tables.insert(tables.end(), table_.begin(), table_.end());
    }
    const int64_t num_tokens = others + num_queries;
    const DType dtype = backend_.operations().activation_dtype();
    const int64_t row = sizes_.num_heads * sizes_.head_dim;
    // The others' queries are those of the first tokens.
    const auto all = to_host(backend_, query_.view);
    std::vector<double> queries(all.begin(), all.begin() + others * row);
    queries.insert(queries.end(), all.begin() + begin * row, all.begin() + end * row);
    const DeviceTensor query =
        to_device(backend_, queries, dtype, {num_tokens, sizes_.num_heads, sizes_.head_dim});
    const DeviceTensor query_starts = to_device(backend_, starts, {others + 2});
    const DeviceTensor context_lengths = to_device(backend_, lengths, {others + 1});
    const DeviceTensor block_tables = to_device(backend_, tables, {others + 1, std::ssize(table_)});
    const size_t workspace_bytes =
        backend_.operations().attention_workspace_bytes({.max_tokens = num_tokens,
                                                         .max_sequences = others + 1,
                                                         .max_context_length = kTokens,
                                                         .num_heads = sizes_.num_heads,
                                                         .num_kv_heads = sizes_.num_kv_heads,
                                                         .head_dim = sizes_.head_dim});
    const DeviceTensor workspace =
        poisoned(backend_, DType::kFloat32,
                 {static_cast<int64_t>(ceil_divide(workspace_bytes, sizeof(float)))});
    const bool is_decode = num_queries <= kMaxDecodeQueryLength;
    const DeviceTensor out = poisoned(backend_, dtype, query.view.shape);
    backend_.operations().attention(
        out, {.query = query,
              .pages = {keys_, values_},
              .batch = {.query_starts = query_starts,
                        .context_lengths = context_lengths,
                        .block_tables = block_tables,
                        .num_sequences = others + 1,
                        .num_decodes = others + (is_decode ? 1 : 0),
                        .max_decode_query_length = is_decode ? num_queries : 1,
                        .max_query_length = num_queries,
                        .max_context_length = kTokens},
              .scale = 0.1f,
              .softcap = sizes_.softcap,
              .sliding_window = sizes_.sliding_window,
              .workspace = workspace});
    return bytes_of(backend_, out.view.slice(others, num_tokens));
  }

 private:
  Backend& backend_;
  HeadSizes sizes_;
  DeviceTensor keys_, values_, query_;
  std::vector<int32_t> table_;
};

TEST_P(BatchInvarianceTest, AttentionInAnyChunksAndCompany) {
  for (const HeadSizes& sizes : {HeadSizes{4, 1, 128},
                                 {4, 2, 64, 100},
                                 {14, 2, 64, 700, 20.0f},
                                 {2, 2, 96},
                                 {4, 2, 256, 130},
                                 {24, 1, 128, 0, 30.0f}}) {
    const Context context(backend(), sizes);
    const std::vector<uint8_t> all = context.rows(0, Context::kTokens, 0);
    const size_t row_bytes = all.size() / Context::kTokens;
    struct Range {
      int64_t begin, end, others;
    };
    for (const auto& [begin, end, others] : {Range{0, 1, 0},
                                             {0, 1, 5},
                                             {63, 64, 0},
                                             {64, 65, 70},
                                             {1499, 1500, 0},
                                             {1499, 1500, 300},
                                             {1490, 1498, 3},
                                             {1000, 1003, 1},
                                             {700, 709, 0},
                                             {101, 833, 0},
                                             {1, 1500, 2},
                                             {1037, 1500, 40}}) {
      if (kIsSanitized && end - begin > 500) continue;
      SCOPED_TRACE(testing::Message()
                   << sizes.num_heads << "/" << sizes.num_kv_heads << " heads of " << sizes.head_dim
                   << ", window " << sizes.sliding_window << ", tokens " << begin << " to " << end
                   << " beside " << others);
      const auto some = context.rows(begin, end, others);
      EXPECT_TRUE(std::ranges::equal(
          some, std::span(all).subspan(static_cast<size_t>(begin) * row_bytes, some.size())));
    }
  }
}

FOR_EACH_INVARIANT_BACKEND(BatchInvarianceTest);

}  // namespace
}  // namespace tessera
