#include "engine/serving/prefix_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>

namespace tessera {
namespace {

constexpr int64_t kCachePageSize = 4;
using Tokens = std::vector<TokenId>;

class PrefixCacheTest : public testing::Test {
 protected:
  // A sequence that has computed these tokens, and added them.
  Sequence& computed(const Tokens& tokens) {
    Sequence& sequence = coming(tokens);
    cache_.publish();
    return sequence;
  }
  // One whose step is being planned.
  Sequence& coming(const Tokens& tokens) {
    Sequence& sequence = sequences_.emplace_back(pool_);
    sequence.start(tokens);
    pool_.grow(sequence.block_table(), sequence.num_tokens());
    cache_.add(sequence, sequence.num_tokens());
    sequence.launch(sequence.num_tokens(), 0);
    sequence.advance(sequence.num_tokens());
    return sequence;
  }
  int64_t pages_found(const Tokens& tokens) const { return std::ssize(cache_.find(tokens).pages); }

  PagePool pool_{/*num_pages=*/6, kCachePageSize};
  PrefixCache cache_{pool_, true};
  std::deque<Sequence> sequences_;
};

TEST_F(PrefixCacheTest, FindsWholePagesButNotTheLastToken) {
  const Sequence& sequence = computed({1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(cache_.find(Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9}).pages,
            (BlockTable{sequence.block_table()[0], sequence.block_table()[1]}));
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0}), 2);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8}), 1) << "whose logits are needed";
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 0, 0}), 1);
  EXPECT_EQ(pages_found({1, 2, 3, 4}), 0);
  EXPECT_EQ(pages_found({1, 2, 3, 0, 5, 6, 7, 8, 9}), 0);
  EXPECT_EQ(pages_found({5, 6, 7, 8, 9}), 0) << "the same tokens behind others";
}

TEST_F(PrefixCacheTest, WhatIsOffFindsNothing) {
  PagePool pool(6, kCachePageSize);
  PrefixCache off(pool, false);
  Sequence sequence(pool);
  sequence.start(Tokens{1, 2, 3, 4, 5});
  pool.grow(sequence.block_table(), 5);
  off.add(sequence, 5);
  off.publish();
  EXPECT_TRUE(off.find(Tokens{1, 2, 3, 4, 5}).pages.empty());
}

TEST_F(PrefixCacheTest, WhatIsComingIsThereOnceItIsLaunched) {
  coming({1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5}), 0);
  EXPECT_TRUE(cache_.find(Tokens{1, 2, 3, 4, 5}).is_coming_on);
  EXPECT_FALSE(cache_.find(Tokens{1, 2, 3, 0, 5}).is_coming_on);
  cache_.publish();
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5}), 1);
  EXPECT_FALSE(cache_.find(Tokens{1, 2, 3, 4, 5}).is_coming_on);
}

TEST_F(PrefixCacheTest, WhatIsGivenUpIsNeverThere) {
  computed({1, 2, 3, 4, 5});
  Sequence& sequence = coming({1, 2, 3, 4, 5, 6, 7, 8, 9});
  cache_.withdraw();
  cache_.publish();
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 1) << "what was there stays";
  sequence.release_cache();
  EXPECT_EQ(pool_.num_kept_free_pages(), 0);
}

TEST_F(PrefixCacheTest, PagesThatNobodyHoldsStayUntilTheyAreNeeded) {
  computed({1, 2, 3, 4, 5, 6, 7, 8, 9}).release_cache();
  EXPECT_EQ(pool_.num_free_pages(), 6);
  EXPECT_EQ(pool_.num_kept_free_pages(), 2);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 2);
  BlockTable others;
  pool_.grow(others, 4 * kCachePageSize);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 2);
  pool_.grow(others, 5 * kCachePageSize);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 1) << "the last page of a prefix goes first";
  pool_.grow(others, 6 * kCachePageSize);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 0);
  pool_.shrink(others, 0);
}

TEST_F(PrefixCacheTest, TheLeastRecentlyUsedGoesFirst) {
  Sequence& first = computed({1, 1, 1, 1, 0});
  Sequence& second = computed({2, 2, 2, 2, 0});
  first.release_cache();
  second.release_cache();
  const CachedPrefix prefix = cache_.find(Tokens{1, 1, 1, 1, 5});
  first.adopt(prefix.pages, prefix.names);
  first.release_cache();
  BlockTable others;
  pool_.grow(others, 5 * kCachePageSize);
  EXPECT_EQ(pages_found({1, 1, 1, 1, 0}), 1);
  EXPECT_EQ(pages_found({2, 2, 2, 2, 0}), 0);
  pool_.shrink(others, 0);
}

// Both have computed them; one of each is found, and what follows is found by either.
TEST_F(PrefixCacheTest, TheSamePageMayBeComputedTwice) {
  const Sequence& first = computed({1, 2, 3, 4, 5});
  Sequence& second = computed({1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(first.block_table()[0], cache_.find(Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9}).pages[0]);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 2);
  second.release_cache();
  EXPECT_EQ(pool_.num_kept_free_pages(), 1);
}

// The second went on behind the first one's page. Once that is lost, its own is found.
TEST_F(PrefixCacheTest, WhatFollowsAPageThatIsLostCanBeFoundAgain) {
  Sequence& first = computed({1, 2, 3, 4, 5});
  Sequence& second = computed({1, 2, 3, 4, 5});
  pool_.lose(first.block_table()[0]);
  for (const TokenId token : {6, 7, 8, 9}) second.append(token);
  pool_.grow(second.block_table(), second.num_tokens());
  cache_.add(second, second.num_tokens());
  cache_.publish();
  EXPECT_EQ(cache_.find(Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9}).pages,
            (BlockTable{second.block_table()[0], second.block_table()[1]}));
}

// The second's first page is known by that of the first sequence. Without it nobody finds what is
// behind, until the second adds all it has under its own.
TEST_F(PrefixCacheTest, WhatIsBehindAPageThatIsLostIsLostWithIt) {
  Sequence& first = computed({1, 2, 3, 4, 5});
  Sequence& second = computed({1, 2, 3, 4, 5, 6, 7, 8, 9});
  pool_.lose(first.block_table()[0]);
  for (const TokenId token : {10, 11, 12}) second.append(token);
  pool_.grow(second.block_table(), second.num_tokens());
  cache_.add(second, second.num_tokens());
  cache_.publish();
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}), 3);
  second.release_cache();
  EXPECT_EQ(pool_.num_kept_free_pages(), 3);
  pool_.lose(cache_.find(Tokens{1, 2, 3, 4, 5}).pages[0]);
  EXPECT_EQ(pool_.num_kept_free_pages(), 0);
}

// Also where several pages are behind one, in whatever order they go.
TEST_F(PrefixCacheTest, PagesBehindTheSameOneGoOneByOne) {
  Sequence& first = computed({1, 2, 3, 4, 5});
  for (const TokenId token : {6, 7, 8}) {
    const CachedPrefix prefix = cache_.find(Tokens{1, 2, 3, 4, token});
    Sequence& sequence = sequences_.emplace_back(pool_);
    sequence.start(Tokens{1, 2, 3, 4, token, 0, 0, 0});
    sequence.adopt(prefix.pages, prefix.names);
    pool_.grow(sequence.block_table(), 8);
    cache_.add(sequence, 8);
  }
  cache_.publish();
  const auto found = [&](TokenId token) {
    return pages_found({1, 2, 3, 4, token, 0, 0, 0, 0}) - 1;
  };
  pool_.lose(sequences_[2].block_table()[1]);
  EXPECT_EQ((std::array{found(6), found(7), found(8)}), (std::array<int64_t, 3>{1, 0, 1}));
  pool_.lose(sequences_[3].block_table()[1]);
  EXPECT_EQ((std::array{found(6), found(7), found(8)}), (std::array<int64_t, 3>{1, 0, 0}));
  pool_.lose(first.block_table()[0]);
  for (Sequence& sequence : sequences_) sequence.release_cache();
  EXPECT_EQ(pool_.num_kept_free_pages(), 0);
}

TEST_F(PrefixCacheTest, ForgetsASequenceOrAll) {
  const Sequence& broken = computed({1, 2, 3, 4, 5});
  computed({2, 2, 2, 2, 0});
  cache_.forget(broken);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5}), 0);
  EXPECT_EQ(pages_found({2, 2, 2, 2, 0}), 1);
  cache_.clear();
  EXPECT_EQ(pages_found({2, 2, 2, 2, 0}), 0);
}

// Pages behind one that is gone cannot be reached, also when the same tokens are computed again.
TEST_F(PrefixCacheTest, NamesAreNeverGivenAgain) {
  Sequence& sequence = computed({1, 2, 3, 4, 5, 6, 7, 8, 9});
  pool_.lose(sequence.block_table()[0]);
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 0);
  computed({1, 2, 3, 4, 0});
  EXPECT_EQ(pages_found({1, 2, 3, 4, 5, 6, 7, 8, 9}), 1);
}

}  // namespace
}  // namespace tessera
