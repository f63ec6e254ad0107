// Which caches are given up when pages are short.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/serving/generation_loop.h"
#include "tests/engine/serving/generation_loop_fixture.h"

namespace tessera {
namespace {

class IdleCachesTest : public GenerationLoopTest, public testing::WithParamInterface<bool> {};

// Of seven, the second is used again, the fourth is destroyed, the sixth runs and the seventh waits
// with what it has.
TEST_P(IdleCachesTest, GoInTheOrderInWhichTheyWereUsedLast) {
  make_loop(/*runs_ahead=*/GetParam(), {.max_tokens = 64, .max_sequences = 1, .context_size = 100});
  std::vector<Sequence*> sequences;
  for (int i = 0; i < 7; ++i) sequences.push_back(&submit("a", {.max_tokens = 1}));
  finish();
  for (const size_t used : {size_t{1}, size_t{5}, size_t{6}}) {
    loop_->submit(*sequences[used], tokens_of("ab"), {.max_tokens = used == 1 ? 1 : 8}, {});
    loop_->step();
  }
  loop_->destroy(*std::exchange(sequences[3], nullptr));
  const auto holders = [&] {
    std::string numbers;
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (sequences[i] != nullptr && !sequences[i]->block_table().empty()) {
        numbers += std::to_string(i + 1);
      }
    }
    return numbers;
  };
  EXPECT_EQ(holders(), "123567");
  for (const char* const left : {"23567", "2567", "267", "67", "6"}) {
    EXPECT_TRUE(loop_->release_oldest_unused_cache());
    EXPECT_EQ(holders(), left);
  }
  EXPECT_FALSE(loop_->release_oldest_unused_cache());
  finish();
  EXPECT_EQ(holders(), "67");
  EXPECT_TRUE(loop_->release_oldest_unused_cache());
  EXPECT_EQ(holders(), "7");
}

INSTANTIATE_TEST_SUITE_P(, IdleCachesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "ahead" : "plain"; });

}  // namespace
}  // namespace tessera
