#include "engine/serving/sequence.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr int64_t kSequencePageSize = 4;

class SequenceTest : public testing::Test {
 protected:
  // A sequence of these tokens, of which all but the last are cached, as after an answer.
  void hold(const std::vector<TokenId>& tokens) {
    sequence_.start(tokens);
    pool_.grow(sequence_.block_table(), sequence_.num_tokens() - 1);
    sequence_.launch(sequence_.num_tokens() - 1, 0);
    sequence_.advance(sequence_.num_tokens() - 1);
  }
  int64_t cached_after_start(const std::vector<TokenId>& prompt) {
    hold({1, 2, 3, 4, 5, 6});
    sequence_.start(prompt);
    EXPECT_EQ(sequence_.tokens(), prompt);
    EXPECT_EQ(std::ssize(sequence_.block_table()),
              (sequence_.num_cached() + kSequencePageSize - 1) / kSequencePageSize);
    return sequence_.num_cached();
  }

  PagePool pool_{/*num_pages=*/8, kSequencePageSize};
  Sequence sequence_{pool_};
};

TEST_F(SequenceTest, KeepsTheCachedTokensThatAPromptBeginsWith) {
  EXPECT_EQ(cached_after_start({1, 2, 3, 4, 5, 6, 7, 8}), 5);
  EXPECT_EQ(cached_after_start({1, 2, 3, 9, 5, 6}), 3);
  EXPECT_EQ(cached_after_start({9, 2, 3}), 0);
}

TEST_F(SequenceTest, ComputesTheLastTokenOfAPromptEvenIfItIsCached) {
  EXPECT_EQ(cached_after_start({1, 2, 3}), 2);
  EXPECT_EQ(cached_after_start({1, 2, 3, 4, 5}), 4);
  EXPECT_EQ(cached_after_start({1}), 0);
}

TEST_F(SequenceTest, GivesPagesBack) {
  hold({1, 2, 3, 4, 5, 6});
  pool_.grow(sequence_.block_table(), 3 * kSequencePageSize);
  EXPECT_EQ(pool_.num_free_pages(), 5);
  sequence_.drop_launched();
  EXPECT_EQ(pool_.num_free_pages(), 6) << "five tokens are cached";
  sequence_.release_cache();
  EXPECT_EQ(pool_.num_free_pages(), 8);
  EXPECT_EQ(sequence_.num_cached(), 0);
  EXPECT_EQ(sequence_.num_uncomputed(), 6);
}

TEST_F(SequenceTest, AwaitsATokenFromTheLaunchOfItsLastOneOn) {
  sequence_.start(std::vector<TokenId>{1, 2, 3});
  EXPECT_FALSE(sequence_.awaits_token());
  EXPECT_EQ(sequence_.num_uncomputed(), 3);
  sequence_.launch(2, 0);
  EXPECT_EQ(sequence_.num_uncomputed(), 1);
  EXPECT_FALSE(sequence_.awaits_token());
  sequence_.launch(3, 7);
  EXPECT_TRUE(sequence_.awaits_token());
  EXPECT_EQ(sequence_.draw_index(), 7);
  EXPECT_EQ(sequence_.num_uncomputed(), 1) << "the one to come";
  sequence_.append(4);
  EXPECT_FALSE(sequence_.awaits_token());
  EXPECT_EQ(sequence_.num_uncomputed(), 1);
}

// Others may hold the pages with which it began. What it would write to is its own, and nobody
// finds it any more.
TEST_F(SequenceTest, NeverWritesToAPageThatOthersHold) {
  hold({1, 2, 3, 4, 5, 6, 7, 8, 9});
  Sequence other(pool_);
  for (const int32_t page : sequence_.block_table()) pool_.keep(page);
  other.start(std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  other.adopt(sequence_.block_table(), std::vector<PageName>{1, 2});
  EXPECT_EQ(other.num_cached(), 8);
  EXPECT_EQ(pool_.num_free_pages(), 6);
  other.start(std::vector<TokenId>{1, 2, 3, 4, 5, 6, 0});
  EXPECT_EQ(other.num_cached(), 4) << "the second page is not written to";
  EXPECT_EQ(std::ssize(other.block_table()), 1);
  EXPECT_EQ(other.page_names(), std::vector<PageName>{1});
  std::vector<int32_t> lost;
  pool_.set_on_lost([&](int32_t page) { lost.push_back(page); });
  sequence_.start(std::vector<TokenId>{1, 2, 3, 4, 5, 6, 0});
  EXPECT_EQ(sequence_.num_cached(), 6);
  EXPECT_EQ(lost, std::vector<int32_t>{sequence_.block_table()[1]});
}

TEST_F(SequenceTest, GivesAllPagesBackWhenItIsDestroyed) {
  {
    Sequence other(pool_);
    pool_.grow(other.block_table(), 10);
    EXPECT_EQ(pool_.num_free_pages(), 5);
  }
  EXPECT_EQ(pool_.num_free_pages(), 8);
}

}  // namespace
}  // namespace tessera
