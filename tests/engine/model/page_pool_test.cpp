#include "engine/model/page_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

class PagePoolTest : public testing::Test {
 protected:
  PagePool pool_{/*num_pages=*/5, /*page_size=*/16};
};

TEST_F(PagePoolTest, GrowsByPagesAndGivesThemBack) {
  BlockTable table;
  pool_.grow(table, 1);
  EXPECT_EQ(table.size(), 1u);
  pool_.grow(table, 16);
  EXPECT_EQ(table.size(), 1u);
  pool_.grow(table, 17);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(pool_.num_free_pages(), 3);
  pool_.shrink(table, 16);
  EXPECT_EQ(table.size(), 1u);
  pool_.shrink(table, 0);
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(pool_.num_free_pages(), 5);
}

TEST_F(PagePoolTest, NeverHandsAPageToTwoSequences) {
  BlockTable first, second;
  pool_.grow(first, 33);
  pool_.grow(second, 32);
  std::set<int32_t> pages(first.begin(), first.end());
  pages.insert(second.begin(), second.end());
  EXPECT_EQ(pages.size(), 5u);
  EXPECT_EQ(pool_.num_free_pages(), 0);
}

TEST_F(PagePoolTest, ASharedPageIsFreeWhenItsLastHolderGivesItBack) {
  BlockTable first, second;
  pool_.grow(first, 32);
  pool_.keep(first[0]);
  pool_.share(second, first[0]);
  EXPECT_EQ(pool_.num_holders(first[0]), 2);
  EXPECT_EQ(pool_.num_free_pages(), 3);
  EXPECT_FALSE(pool_.begin_writing(first[0])) << "the other would see it";
  pool_.shrink(first, 0);
  EXPECT_EQ(pool_.num_free_pages(), 4);
  EXPECT_EQ(pool_.num_kept_free_pages(), 0) << "somebody holds it";
  EXPECT_TRUE(pool_.begin_writing(second[0]));
  pool_.shrink(second, 0);
  EXPECT_EQ(pool_.num_free_pages(), 5);
}

TEST_F(PagePoolTest, OnlyKeptPagesCanBeShared) {
  BlockTable first, second;
  pool_.grow(first, 16);
  EXPECT_THROW(pool_.share(second, first[0]), Error);
}

TEST_F(PagePoolTest, KeptPagesAreTakenLastAndTheirLossIsTold) {
  std::vector<int32_t> lost;
  pool_.set_on_lost([&](int32_t page) { lost.push_back(page); });
  BlockTable kept, others;
  pool_.grow(kept, 48);
  const BlockTable pages = kept;
  for (const int32_t page : pages) pool_.keep(page);
  pool_.shrink(kept, 0);
  EXPECT_EQ(pool_.num_kept_free_pages(), 3);
  pool_.grow(others, 32);
  EXPECT_TRUE(lost.empty());
  pool_.share(kept, pages[2]);
  pool_.grow(others, 64);
  EXPECT_EQ(lost, (std::vector<int32_t>{pages[1], pages[0]})) << "the last of a table first";
  EXPECT_EQ(kept, BlockTable{pages[2]}) << "which somebody holds again";
}

TEST_F(PagePoolTest, SlotIsPageTimesSizePlusRow) {
  BlockTable table;
  pool_.grow(table, 40);
  EXPECT_EQ(kv_slot(table, 0, 16), table[0] * 16);
  EXPECT_EQ(kv_slot(table, 15, 16), table[0] * 16 + 15);
  EXPECT_EQ(kv_slot(table, 16, 16), table[1] * 16);
  EXPECT_EQ(kv_slot(table, 39, 16), table[2] * 16 + 7);
}

TEST_F(PagePoolTest, ASlotBeyondTheTableIsRefused) {
  BlockTable table;
  pool_.grow(table, 16);
  EXPECT_THROW(kv_slot(table, 16, 16), Error);
}

TEST_F(PagePoolTest, RefusesMoreThanItHas) {
  BlockTable table;
  try {
    pool_.grow(table, 6 * 16);
    FAIL() << "grew beyond its pages";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("5 free pages, 6 are needed"));
  }
  EXPECT_EQ(pool_.num_free_pages(), 5);
}

}  // namespace
}  // namespace tessera
