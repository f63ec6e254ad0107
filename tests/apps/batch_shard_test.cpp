#include <gtest/gtest.h>

#include "apps/batch/shard.h"
#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

TEST(Shard, PartsHoldEveryRequestOnce) {
  constexpr int64_t kCount = 3;
  for (int64_t request = 0; request < 10; ++request) {
    int64_t num_holders = 0;
    for (int64_t index = 0; index < kCount; ++index) {
      num_holders += Shard{.index = index, .count = kCount}.contains(request) ? 1 : 0;
    }
    EXPECT_EQ(num_holders, 1);
  }
  EXPECT_TRUE(Shard().is_whole());
  EXPECT_TRUE(Shard().contains(7));
}

TEST(Shard, IsReadAsItIsWritten) {
  for (const char* text : {"0/1", "0/4", "3/4", "99/100"})
    EXPECT_EQ(parse_shard(text).text(), text);
  for (const char* text : {"", "1", "/", "4/4", "-1/4", "1/4/4", "1.0/4", " 1/4", "1/ 4"}) {
    EXPECT_THROW(parse_shard(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace tessera
