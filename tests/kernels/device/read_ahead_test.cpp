#include "kernels/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

using std::chrono::microseconds;

TEST(ReadAhead, GivesEveryPartOnceAndInOrder) {
  for (const size_t num_slots : {1, 2, 5, 64}) {
    for (const size_t num_threads : {1, 3, 8}) {
      constexpr size_t kNumParts = 200;
      std::vector<size_t> memory(num_slots);
      ReadAhead ahead(kNumParts, {num_slots, num_threads}, [&](size_t part, size_t slot) {
        if (part % 7 == 0) std::this_thread::sleep_for(microseconds(part % 50));
        memory[slot] = part;
      });
      for (size_t part = 0; part < kNumParts; ++part) {
        const size_t slot = ahead.take();
        EXPECT_EQ(slot, part % num_slots);
        EXPECT_EQ(memory[slot], part);
        ahead.release();
      }
    }
  }
}

TEST(ReadAhead, NeverFillsASlotThatIsInUse) {
  constexpr size_t kNumParts = 100, kNumSlots = 8, kHeld = 3;
  std::vector<size_t> memory(kNumSlots);
  ReadAhead ahead(kNumParts, {kNumSlots, 4},
                  [&](size_t part, size_t slot) { memory[slot] = part; });
  for (size_t part = 0; part < kNumParts; ++part) {
    if (part >= kHeld) {
      EXPECT_EQ(memory[(part - kHeld) % kNumSlots], part - kHeld);
      ahead.release();
    }
    ahead.take();
  }
}

TEST(ReadAhead, StaysWithinTheRing) {
  std::atomic<size_t> num_fetched = 0;
  ReadAhead ahead(1000, {4, 2}, [&](size_t, size_t) { ++num_fetched; });
  for (int i = 0; i < 3; ++i) ahead.take();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LE(num_fetched, 4u);
}

TEST(ReadAhead, ThrowsTheFirstFailureInOrder) {
  ReadAhead ahead(50, {16, 8}, [](size_t part, size_t) {
    if (part == 10) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (part >= 10) throw Error(std::to_string(part));
  });
  for (int i = 0; i < 10; ++i) {
    ahead.take();
    ahead.release();
  }
  for (int i = 0; i < 2; ++i) {
    try {
      ahead.take();
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "10");
    }
  }
}

TEST(ReadAhead, MayBeLeftAtAnyTime) {
  for (size_t num_taken = 0; num_taken < 20; ++num_taken) {
    std::atomic<size_t> num_fetched = 0;
    {
      ReadAhead ahead(10'000, {4, 4}, [&](size_t, size_t) { ++num_fetched; });
      for (size_t i = 0; i < num_taken; ++i) {
        ahead.take();
        ahead.release();
      }
    }
    EXPECT_LE(num_fetched, num_taken + 4);
  }
}

TEST(ReadAhead, ChecksHowItIsUsed) {
  const auto fetch = [](size_t, size_t) {};
  EXPECT_THROW(ReadAhead(1, {0, 1}, fetch), Error);
  EXPECT_THROW(ReadAhead(1, {1, 0}, fetch), Error);
  ReadAhead none(0, {1, 1}, fetch);
  EXPECT_THROW(none.take(), Error);
  ReadAhead ahead(2, {1, 1}, fetch);
  EXPECT_THROW(ahead.release(), Error);
  ahead.take();
  EXPECT_THROW(ahead.take(), Error);  // the only slot is in use
}

}  // namespace
}  // namespace tessera
