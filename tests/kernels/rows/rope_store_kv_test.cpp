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
};

class RopeStoreKvTest : public BackendTest {
 protected:
  void check(const RopeCase& size) const {
    SCOPED_TRACE(testing::Message()
                 << size.num_tokens << " tokens, " << size.num_heads << "/" << size.num_kv_heads
                 << " heads of " << size.head_dim << ", pages of " << size.page_size);
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
         .inverse_frequencies = floats(frequencies, {size.head_dim / 2})});

    const auto head = [&](int64_t token, int64_t index) {
      const auto begin = qkv.begin() + (token * token_heads + index) * size.head_dim;
      return std::vector<double>(begin, begin + size.head_dim);
    };
    Reference expected_query;
    Reference expected_keys;
    std::vector<double> expected_values;
    for (int64_t t = 0; t < size.num_tokens; ++t) {
      const int32_t position = positions[static_cast<size_t>(t)];
      for (int64_t h = 0; h < size.num_heads; ++h) {
        append(expected_query, reference_rope(head(t, h), position, frequencies));
      }
      for (int64_t h = 0; h < size.num_kv_heads; ++h) {
        append(expected_keys, reference_rope(head(t, size.num_heads + h), position, frequencies));
        const auto value = head(t, size.num_heads + size.num_kv_heads + h);
        expected_values.insert(expected_values.end(), value.begin(), value.end());
      }
    }
    const Shape kv_shape{size.num_tokens, size.num_kv_heads, size.head_dim};
    const ErrorBound bound{.out = activation(), .length = kRoundings};
    expect_close(host(query), expected_query, query_shape, bound);
    expect_close(stored_rows(host(keys), page_shape, slots), expected_keys, kv_shape, bound);
    expect_equal(stored_rows(host(values), page_shape, slots), expected_values, kv_shape);
  }

 private:
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

TEST_P(RopeStoreKvTest, StaysExactAtFarPositions) {
  check({17, 2, 1, 128, 64, 131071});
  check({17, 2, 1, 128, 64, 1000000});
}

FOR_EACH_BACKEND(RopeStoreKvTest);
FOR_EACH_VECTOR_LEVEL(RopeStoreKvTest);

}  // namespace
}  // namespace tessera
