#include "engine/model/shared_prefixes.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tessera {
namespace {

constexpr int64_t kPrefixPageSize = 64;

// Decodes by their block tables; each has one more token than its pages but the last hold, or as
// many as `begins` says.
PrefixGroups groups_of(const std::vector<std::vector<int32_t>>& tables,
                       const std::vector<int64_t>& begins = {},
                       int64_t page_size = kPrefixPageSize) {
  std::vector<TokenChunk> decodes;
  for (size_t i = 0; i < tables.size(); ++i) {
    const int64_t begin = begins.empty() ? (std::ssize(tables[i]) - 1) * page_size : begins[i];
    decodes.push_back({.block_table = tables[i], .begin = begin, .num_tokens = 1});
  }
  return group_by_prefix(decodes, page_size);
}

using Numbers = std::vector<int32_t>;

TEST(SharedPrefixesTest, OneInstructionForAll) {
  const PrefixGroups groups = groups_of({{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, 6, 7}});
  EXPECT_EQ(groups.starts, Numbers({0, 3}));
  EXPECT_EQ(groups.lengths, Numbers({192}));
  EXPECT_EQ(groups.own_begins(3), Numbers({192, 192, 192}));
  EXPECT_EQ(groups.spared_tokens, 2 * 192);
}

TEST(SharedPrefixesTest, SequencesWithoutCompanyAreOneGroup) {
  const PrefixGroups groups = groups_of({{1, 2}, {3, 4}, {5, 6, 7}, {5, 6, 8}, {9, 3}});
  EXPECT_EQ(groups.starts, Numbers({0, 2, 4, 5}));
  EXPECT_EQ(groups.lengths, Numbers({0, 128, 0}));
  EXPECT_EQ(groups.own_begins(6), Numbers({0, 0, 128, 128, 0, 0}));
  EXPECT_EQ(groups.spared_tokens, 128);
}

TEST(SharedPrefixesTest, NothingIsShared) {
  const PrefixGroups groups = groups_of({{1, 2}, {2, 1}, {3, 1}});
  EXPECT_EQ(groups.starts, Numbers({0, 3}));
  EXPECT_EQ(groups.lengths, Numbers({0}));
  EXPECT_EQ(groups.spared_tokens, 0);
  EXPECT_EQ(groups_of({}).starts, Numbers({0}));
}

// The page of a sequence's newest token is its own, and so is one that is not full.
TEST(SharedPrefixesTest, OnlyFullPagesBeforeTheNewestToken) {
  EXPECT_EQ(groups_of({{1, 2}, {1, 2}}, {127, 128}).lengths, Numbers({64}));
  EXPECT_EQ(groups_of({{1, 2, 3}, {1, 2, 4}}, {128, 130}).lengths, Numbers({128}));
  EXPECT_EQ(groups_of({{1, 2}, {1, 3}}, {63, 70}).lengths, Numbers({0}));
}

// A sequence that shares a page with a long group would leave it with that page.
TEST(SharedPrefixesTest, JoinsWhereNothingIsLost) {
  const PrefixGroups groups =
      groups_of({{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 7}, {1, 2, 3, 8}, {1, 2, 3, 9}, {1, 8}});
  EXPECT_EQ(groups.starts, Numbers({0, 4, 5}));
  EXPECT_EQ(groups.lengths, Numbers({192, 0}));
  EXPECT_EQ(groups_of({{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 6}}).starts, Numbers({0, 2, 3}));
}

// What is shared ends with a page and with a unit of kernels.
TEST(SharedPrefixesTest, LengthsAreWholeUnits) {
  std::vector<int32_t> table(12);
  std::iota(table.begin(), table.end(), 0);
  EXPECT_EQ(groups_of({table, table}, {}, 16).lengths, Numbers({128}));  // of 11 full pages
  EXPECT_EQ(groups_of({table, table}, {}, 128).lengths, Numbers({11 * 128}));
}

}  // namespace
}  // namespace tessera
