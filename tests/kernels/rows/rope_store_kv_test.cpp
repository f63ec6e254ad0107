#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "tests/kernels/e4m3.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"
#include "tests/kernels/rows/kv_rows.h"

namespace tessera {
namespace {

struct RopeCase {
  int64_t num_tokens;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t page_size;
  int64_t largest_position = 4096;
  QkNorm norm = QkNorm::kNone;
  double amplitude = 1.0;
  QueryScalingSpec query_scaling = {};
  double mean = 0.0;  // of queries, keys and values

  // Weights of so many heads.
  int64_t norm_size(int64_t heads) const {
    return (norm == QkNorm::kPerHead ? 1 : heads) * head_dim;
  }
};

std::string_view words_of(QkNorm norm) {
  switch (norm) {
    case QkNorm::kNone:
      return "";
    case QkNorm::kPerHead:
      return ", heads normalised";
    case QkNorm::kWholeProjection:
      return ", rows normalised";
    case QkNorm::kLayerNormPerHead:
      return ", LayerNorm of heads";
  }
  return "";
}

class RopeStoreKvTest : public BackendTest {
 protected:
  void check(const RopeCase& size) const {
    SCOPED_TRACE(testing::Message() << size.num_tokens << " tokens, " << size.num_heads << "/"
                                    << size.num_kv_heads << " heads of " << size.head_dim
                                    << ", pages of " << size.page_size << words_of(size.norm));
    RandomValues random(static_cast<uint64_t>(size.num_tokens + size.head_dim));
    const int64_t token_heads = size.num_heads + 2 * size.num_kv_heads;
    auto qkv = random.normal(size.num_tokens * token_heads * size.head_dim);
    for (double& value : qkv) value += size.mean;
    qkv = rounded(qkv, activation());
    auto positions = random.integers(size.num_tokens, 0, size.largest_position);
    positions.back() = static_cast<int32_t>(size.largest_position);
    const int64_t num_pages = size.num_tokens / size.page_size + 3;
    auto slots = random.permutation(num_pages * size.page_size);
    slots.resize(static_cast<size_t>(size.num_tokens));
    const auto table = rope_table(size.head_dim, size.amplitude);
    const int64_t query_norm_size = size.norm_size(size.num_heads);
    const int64_t norm_size = query_norm_size + size.norm_size(size.num_kv_heads);
    const auto norm = rounded(random.normal(norm_size), DType::kFloat32);

    const DeviceTensor norm_weights = floats(norm, {norm_size});
    const Shape query_shape{size.num_tokens, size.num_heads, size.head_dim};
    const Shape page_shape{num_pages, size.num_kv_heads, size.page_size, size.head_dim};
    const DeviceTensor query = poisoned(backend(), activation(), query_shape);
    const DeviceTensor keys = poisoned(backend(), activation(), page_shape);
    const DeviceTensor values = poisoned(backend(), activation(), page_shape);
    operations().rope_store_kv(
        {.query = query,
         .pages = {keys.view, values.view},
         .qkv = activations(qkv, {size.num_tokens, token_heads * size.head_dim}),
         .positions = integers(positions, {size.num_tokens}),
         .kv_slots = integers(slots, {size.num_tokens}),
         .rope_table = floats(table, {2, size.head_dim / 2}),
         .qk_norm_kind = size.norm,
         .qk_norm = size.norm == QkNorm::kNone ? Tensor{} : norm_weights.view,
         .norm_epsilon = kNormEpsilon,
         .query_scaling = size.query_scaling});

    const auto heads = [&](int64_t token, int64_t first, int64_t count) {
      const auto begin = qkv.begin() + (token * token_heads + first) * size.head_dim;
      return std::vector<double>(begin, begin + count * size.head_dim);
    };
    // Heads as they are rotated, all queries or all keys of a token; `weights` is where those of
    // their norm begin.
    const auto normed = [&](int64_t token, int64_t first, int64_t count, int64_t weights) {
      const std::vector<double> values = heads(token, first, count);
      const auto begin = norm.begin() + weights;
      return reference_qk_norm(values, {begin, begin + size.norm_size(count)}, size.head_dim,
                               size.norm, kNormEpsilon);
    };
    Expected expected_query;
    Expected expected_keys;
    std::vector<double> expected_values;
    for (int64_t t = 0; t < size.num_tokens; ++t) {
      const int32_t position = positions[static_cast<size_t>(t)];
      expected_query.add(normed(t, 0, size.num_heads, 0), position,
                         scaled(table, size.query_scaling, position), activation());
      expected_keys.add(normed(t, size.num_heads, size.num_kv_heads, query_norm_size), position,
                        table, activation());
      const auto values_of_token = heads(t, size.num_heads + size.num_kv_heads, size.num_kv_heads);
      expected_values.insert(expected_values.end(), values_of_token.begin(), values_of_token.end());
    }
    const bool has_norm = size.norm != QkNorm::kNone;
    const Shape kv_shape{size.num_tokens, size.num_kv_heads, size.head_dim};
    check(host(query), expected_query, query_shape, has_norm);
    check(stored_rows(host(keys), page_shape, slots), expected_keys, kv_shape, has_norm);
    expect_equal(stored_rows(host(values), page_shape, slots), expected_values, kv_shape);
  }

 private:
  // The table whose amplitudes have the factor of a query at this position.
  static std::vector<double> scaled(std::vector<double> table, const QueryScalingSpec& scaling,
                                    int32_t position) {
    if (scaling.beta == 0.0) return table;
    const int64_t contexts = position / scaling.original_max_position_embeddings;
    for (size_t j = table.size() / 2; j < table.size(); ++j) {
      table[j] *= 1.0 + scaling.beta * std::log(1.0 + static_cast<double>(contexts));
    }
    return table;
  }

  // Heads after rotation: exact, and with results rounded on the way as an implementation does.
  struct Expected {
    Reference exact;
    std::vector<double> plain;

    void add(const std::vector<double>& heads, int32_t position, const std::vector<double>& table,
             DType dtype) {
      const auto head_dim = static_cast<int64_t>(table.size());
      for (auto begin = heads.begin(); begin != heads.end(); begin += head_dim) {
        const std::vector<double> head(begin, begin + head_dim);
        append(exact, reference_rope(head, position, table));
        const Reference rotated = reference_rope(rounded(head, dtype), position, table);
        const std::vector<double> values = rounded(rotated.values, dtype);
        plain.insert(plain.end(), values.begin(), values.end());
      }
    }
  };

  void check(const std::vector<double>& actual, const Expected& expected, const Shape& shape,
             bool has_norm) const {
    if (!has_norm) {
      return expect_close(actual, expected.exact, shape,
                          {.out = activation(), .length = kRoundings});
    }
    const double factor = activation() == DType::kFloat32 ? 30.0 : 4.0;
    expect_as_exact(actual, expected.exact.values, expected.plain, factor, activation(), shape);
  }

  // Sine, cosine, two products and a sum, counted generously.
  static constexpr int64_t kRoundings = 16;
};

TEST_P(RopeStoreKvTest, MatchesReference) {
  for (const int64_t num_tokens : {1, 3, 17, 33, 129}) {
    check({num_tokens, 4, 4, 64, 16});
    check({num_tokens, 6, 2, 80, 64});
    check({num_tokens, 7, 1, 96, 64});
    check({num_tokens, 8, 2, 128, 128});
    check({num_tokens, 3, 1, 32, 32});
    check({num_tokens, 2, 1, 256, 64});
  }
  check({9, 64, 8, 128, 64});  // more to move than a block has threads
}

TEST_P(RopeStoreKvTest, NormalisesQueriesAndKeysBefore) {
  for (const int64_t num_tokens : {1, 3, 33}) {
    for (const QkNorm norm :
         {QkNorm::kPerHead, QkNorm::kWholeProjection, QkNorm::kLayerNormPerHead}) {
      check({num_tokens, 4, 2, 64, 16, 4096, norm});
      check({num_tokens, 6, 2, 80, 64, 4096, norm});
      check({num_tokens, 8, 1, 128, 64, 4096, norm});
      check({num_tokens, 2, 2, 256, 64, 4096, norm});
      check({num_tokens, 1, 1, 64, 16, 4096, norm});  // where both are the same
      check({num_tokens, 40, 8, 128, 64, 4096, norm});
    }
  }
}

TEST_P(RopeStoreKvTest, LayerNormTakesTheMeanOfEachHead) {
  for (const int64_t head_dim : {32, 80, 128}) {
    for (const double mean : {-4.0, 1.0}) {
      check({.num_tokens = 5,
             .num_heads = 6,
             .num_kv_heads = 3,
             .head_dim = head_dim,
             .page_size = 16,
             .norm = QkNorm::kLayerNormPerHead,
             .mean = mean});
    }
  }
}

TEST_P(RopeStoreKvTest, MultipliesByAmplitudes) {
  for (const double amplitude : {0.5, 1.34657, 2.0}) {
    check({3, 4, 2, 64, 16, 4096, QkNorm::kNone, amplitude});
    check({17, 6, 2, 80, 64, 131071, QkNorm::kPerHead, amplitude});
  }
}

TEST_P(RopeStoreKvTest, ScalesQueriesByTheirPosition) {
  const QueryScalingSpec scaling{.beta = 0.1, .original_max_position_embeddings = 1000};
  for (const int64_t largest_position : {999, 1000, 50000, 1000000}) {
    check({9, 4, 2, 64, 16, largest_position, QkNorm::kNone, 1.0, scaling});
    check({3, 6, 2, 128, 64, largest_position, QkNorm::kWholeProjection, 1.25, scaling});
    check({3, 6, 2, 128, 64, largest_position, QkNorm::kLayerNormPerHead, 1.25, scaling});
  }
}

TEST_P(RopeStoreKvTest, StaysExactAtFarPositions) {
  check({17, 2, 1, 128, 64, 131071});
  check({17, 2, 1, 128, 64, 1000000});
}

// What float8_e4m3 pages hold is what others hold, rounded once more, after a division by the scale
// of the head. Scales that leave everything among the subnormals, and that cut most of it off; a
// NaN stays one.
TEST_P(RopeStoreKvTest, RoundsToFp8) {
  constexpr int64_t kTokens = 37, kHeads = 4, kKvHeads = 3, kPageSize = 16, kPages = 5;
  RandomValues random(1);
  const auto slots = random.permutation(kPages * kPageSize);
  const DeviceTensor kv_slots = integers({slots.begin(), slots.begin() + kTokens}, {kTokens});
  const DeviceTensor positions = integers(random.integers(kTokens, 0, 5000), {kTokens});
  const std::vector<double> scales = {64.0, 0.0078125, 0.001953125};
  for (const int64_t head_dim : {32, 80, 128, 256}) {
    const Shape page_shape{kPages, kKvHeads, kPageSize, head_dim};
    const Shape qkv_shape{kTokens, (kHeads + 2 * kKvHeads) * head_dim};
    auto qkv = rounded(random.normal(qkv_shape.num_elements()), activation());
    qkv[static_cast<size_t>((kHeads + kKvHeads) * head_dim + 5)] = std::nan("");  // of a value
    const DeviceTensor table = floats(rope_table(head_dim), {2, head_dim / 2});
    const DeviceTensor of_heads = floats(scales, {kKvHeads});
    for (const QkNorm norm : {QkNorm::kNone, QkNorm::kPerHead, QkNorm::kLayerNormPerHead}) {
      SCOPED_TRACE(testing::Message() << "heads of " << head_dim << words_of(norm));
      const int64_t norm_size = (norm == QkNorm::kPerHead ? 2 : kHeads + kKvHeads) * head_dim;
      const DeviceTensor norm_weights = floats(random.normal(norm_size), {norm_size});
      const auto store = [&](const KvPages& pages) {
        operations().rope_store_kv(
            {.query = poisoned(backend(), activation(), {kTokens, kHeads, head_dim}),
             .pages = pages,
             .qkv = activations(qkv, qkv_shape),
             .positions = positions,
             .kv_slots = kv_slots,
             .rope_table = table,
             .qk_norm_kind = norm,
             .qk_norm = norm == QkNorm::kNone ? Tensor{} : norm_weights.view,
             .norm_epsilon = kNormEpsilon});
        device().synchronize();
      };
      const DeviceTensor keys = poisoned(backend(), activation(), page_shape);
      const DeviceTensor values = poisoned(backend(), activation(), page_shape);
      const DeviceTensor fp8_keys = poisoned(backend(), DType::kFloat8E4M3, page_shape);
      const DeviceTensor fp8_values = poisoned(backend(), DType::kFloat8E4M3, page_shape);
      store({keys, values});
      store({fp8_keys, fp8_values, of_heads, of_heads});
      const auto expect_rounded = [&](const Tensor& fp8, const Tensor& exact) {
        const std::vector<double> numbers = host(exact);
        const std::vector<uint8_t> codes = bytes_of(backend(), fp8);
        for (size_t i = 0; i < codes.size(); ++i) {
          const size_t head = i / static_cast<size_t>(kPageSize * head_dim) % kKvHeads;
          const uint8_t expected = nearest_e4m3(numbers[i] / scales[head]);
          const bool is_nan = (codes[i] & 0x7f) == kNanE4M3;  // of either sign
          ASSERT_TRUE(is_nan ? expected == kNanE4M3 : codes[i] == expected)
              << "element " << i << ": " << numbers[i] << " / " << scales[head] << " became code "
              << int{codes[i]} << ", expected " << int{expected};
        }
      };
      expect_rounded(fp8_keys, keys);
      expect_rounded(fp8_values, values);
    }
  }
}

FOR_EACH_BACKEND(RopeStoreKvTest);
FOR_EACH_VECTOR_LEVEL(RopeStoreKvTest);

}  // namespace
}  // namespace tessera
