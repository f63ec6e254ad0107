// In which order the requests of a batch are begun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/batch/order.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

BatchItem item(int64_t max_tokens) { return {.request_digest = 1, .max_tokens = max_tokens}; }

TEST(BatchOrder, LongestAnswersFirstOthersAsInTheFile) {
  const BatchItem items[] = {item(5), item(70), item(5), item(400), item(70)};
  EXPECT_THAT(longest_first(items, 0), ElementsAre(3, 1, 4, 0, 2));
  EXPECT_THAT(longest_first({}, 0), IsEmpty());
}

TEST(BatchOrder, WhoDoesNotSayHasWhatHoldsForAll) {
  const BatchItem items[] = {item(0), item(70), item(400), item(0)};
  EXPECT_THAT(longest_first(items, 100), ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(longest_first(items, 0), ElementsAre(0, 3, 2, 1));
}

}  // namespace
}  // namespace tessera
