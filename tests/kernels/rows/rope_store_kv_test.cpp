#include <gtest/gtest.h>

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
  bool has_norm = false;
};

constexpr float kEpsilon = 1e-5f;

class RopeStoreKvTest : public BackendTest {
 protected:
  void check(const RopeCase& size) const {
    SCOPED_TRACE(testing::Message()
                 << size.num_tokens << " tokens, " << size.num_heads << "/" << size.num_kv_heads
                 << " heads of " << size.head_dim << ", pages of " << size.page_size
                 << (size.has_norm ? ", normalised" : ""));
    RandomValues random(static_cast<uint64_t>(size.num_tokens + size.head_dim));
    const int64_t token_heads = size.num_heads + 2 * size.num_kv_heads;
    const auto qkv =
        rounded(random.normal(size.num_tokens * token_heads * size.head_dim), activation());
    auto positions = random.integers(size.num_tokens, 0, size.largest_position);
    positions.back() = static_cast<int32_t>(size.largest_position);
    const int64_t num_pages = size.num_tokens / size.page_size + 3;
    auto slots = random.permutation(num_pages * size.page_size);
    slots.resize(static_cast<size_t>(size.num_tokens));
    const auto frequencies = rope_frequencies(size.head_dim);
    const auto norm = rounded(random.normal(2 * size.head_dim), DType::kFloat32);

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
         .inverse_frequencies = floats(frequencies, {size.head_dim / 2}),
         .qk_norm = size.has_norm ? floats(norm, {2 * size.head_dim}).view : Tensor{},
         .norm_epsilon = kEpsilon});

    const auto head = [&](int64_t token, int64_t index) {
      const auto begin = qkv.begin() + (token * token_heads + index) * size.head_dim;
      return std::vector<double>(begin, begin + size.head_dim);
    };
    // The head as it is rotated; `weights` is where those of its norm begin.
    const auto normed = [&](int64_t token, int64_t index, int64_t weights) {
      if (!size.has_norm) return head(token, index);
      const std::vector<double> weight(norm.begin() + weights,
                                       norm.begin() + weights + size.head_dim);
      return reference_rms_norm(head(token, index), weight, kEpsilon).values;
    };
    Expected expected_query;
    Expected expected_keys;
    std::vector<double> expected_values;
    for (int64_t t = 0; t < size.num_tokens; ++t) {
      const int32_t position = positions[static_cast<size_t>(t)];
      for (int64_t h = 0; h < size.num_heads; ++h) {
        expected_query.add(normed(t, h, 0), position, frequencies, activation());
      }
      for (int64_t h = 0; h < size.num_kv_heads; ++h) {
        expected_keys.add(normed(t, size.num_heads + h, size.head_dim), position, frequencies,
                          activation());
        const auto value = head(t, size.num_heads + size.num_kv_heads + h);
        expected_values.insert(expected_values.end(), value.begin(), value.end());
      }
    }
    const Shape kv_shape{size.num_tokens, size.num_kv_heads, size.head_dim};
    check(host(query), expected_query, query_shape, size.has_norm);
    check(stored_rows(host(keys), page_shape, slots), expected_keys, kv_shape, size.has_norm);
    expect_equal(stored_rows(host(values), page_shape, slots), expected_values, kv_shape);
  }

 private:
  // Heads after rotation: exact, and with results rounded on the way as an implementation does.
  struct Expected {
    Reference exact;
    std::vector<double> plain;

    void add(const std::vector<double>& head, int32_t position,
             const std::vector<double>& frequencies, DType dtype) {
      append(exact, reference_rope(head, position, frequencies));
      const Reference rotated = reference_rope(rounded(head, dtype), position, frequencies);
      const std::vector<double> values = rounded(rotated.values, dtype);
      plain.insert(plain.end(), values.begin(), values.end());
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
    check({num_tokens, 4, 2, 64, 16, 4096, true});
    check({num_tokens, 6, 2, 80, 64, 4096, true});
    check({num_tokens, 8, 1, 128, 64, 4096, true});
    check({num_tokens, 2, 2, 256, 64, 4096, true});
  }
}

TEST_P(RopeStoreKvTest, StaysExactAtFarPositions) {
  check({17, 2, 1, 128, 64, 131071});
  check({17, 2, 1, 128, 64, 1000000});
}

FOR_EACH_BACKEND(RopeStoreKvTest);
FOR_EACH_VECTOR_LEVEL(RopeStoreKvTest);

}  // namespace
}  // namespace tessera
