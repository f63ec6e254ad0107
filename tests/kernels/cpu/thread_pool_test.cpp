#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <vector>

namespace tessera {
namespace {

constexpr double kLong = 1e6;   // nanoseconds: an item worth a thread
constexpr double kShort = 1.0;  // an item of which thousands are not

class ThreadPoolTest : public testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 16));

TEST_P(ThreadPoolTest, RunsEveryItemOnce) {
  for (const int64_t count : {0, 1, 2, 3, 31, 1000, 100000}) {
    for (const double nanoseconds : {0.0, kShort, 100.0, kLong}) {
      std::vector<int> runs(static_cast<size_t>(count));
      pool_.for_each(count, nanoseconds, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
      EXPECT_EQ(runs, std::vector<int>(runs.size(), 1)) << count << " of " << nanoseconds << " ns";
    }
  }
}

// Workers that come late to one loop must not disturb the next.
TEST_P(ThreadPoolTest, RunsLoopAfterLoop) {
  std::vector<int64_t> sums(7);
  for (int64_t loop = 0; loop < 20000; ++loop) {
    const int64_t count = 2 + loop % 6;
    pool_.for_each(count, kLong, [&](int64_t i) { sums[static_cast<size_t>(i)] += loop; });
  }
  EXPECT_EQ(sums[0], 20000 * 19999 / 2);
  EXPECT_EQ(sums[1], sums[0]);
}

// Loops of every size one after the other, some of which fail: no item is lost, none is run twice
// and no failure reaches another loop.
TEST_P(ThreadPoolTest, RunsTinyLoopsOfEverySizeAmongFailures) {
  std::vector<int> runs;
  for (int64_t loop = 0; loop < 20000; ++loop) {
    const int64_t count = loop % 97;
    runs.assign(static_cast<size_t>(count), 0);
    const int64_t failing = loop % 5 == 0 ? loop % 89 : -1;
    const auto body = [&](int64_t i) {
      ++runs[static_cast<size_t>(i)];
      if (i == failing) throw loop;
    };
    try {
      pool_.for_each(count, loop % 2 == 0 ? kLong : 300.0, body);
      ASSERT_TRUE(failing < 0 || failing >= count) << "loop " << loop;
      ASSERT_EQ(runs, std::vector<int>(runs.size(), 1)) << "loop " << loop;
    } catch (int64_t thrown) {
      ASSERT_EQ(thrown, loop);
      for (const int number : runs) ASSERT_LE(number, 1) << "loop " << loop;
    }
  }
}

TEST_P(ThreadPoolTest, NumbersThreads) {
  std::vector<int> threads(1000);
  pool_.for_each(1000, kLong,
                 [&](int64_t i, int thread) { threads[static_cast<size_t>(i)] = thread; });
  for (const int thread : threads) {
    EXPECT_GE(thread, 0);
    EXPECT_LT(thread, GetParam());
  }
}

TEST_P(ThreadPoolTest, DoesShortLoopsOnTheCallingThread) {
  std::set<std::thread::id> ids;
  pool_.for_each(1000, kShort, [&](int64_t) { ids.insert(std::this_thread::get_id()); });
  EXPECT_EQ(ids, std::set{std::this_thread::get_id()});
}

TEST_P(ThreadPoolTest, PassesExceptionsOnAndGoesOnWorking) {
  for (const double nanoseconds : {kShort, kLong}) {
    EXPECT_THROW(pool_.for_each(100, nanoseconds,
                                [](int64_t i) {
                                  if (i % 10 == 3) throw std::runtime_error("an item failed");
                                }),
                 std::runtime_error);
    int64_t last = 0;
    pool_.for_each(1, nanoseconds, [&](int64_t i) { last = i + 1; });
    EXPECT_EQ(last, 1);
    std::atomic<int> runs = 0;
    pool_.for_each(100, nanoseconds, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

// Items long enough that the question is asked between any two of them.
void sleep_past_the_next_question() { std::this_thread::sleep_for(std::chrono::milliseconds(11)); }

TEST_P(ThreadPoolTest, StopsWithinALoopAndGoesOnWorking) {
  int questions = 0;
  pool_.set_stop_question([&] { return ++questions == 3; });
  std::atomic<int> runs = 0;
  const auto body = [&](int64_t) {
    ++runs;
    sleep_past_the_next_question();
  };
  EXPECT_THROW(pool_.for_each(1000, kLong, body), Stopped);
  EXPECT_EQ(questions, 3);
  EXPECT_GE(runs, 2);
  EXPECT_LT(runs, 1000);
  runs = 0;
  pool_.for_each(20, kLong, body);
  EXPECT_EQ(runs, 20);
}

TEST_P(ThreadPoolTest, StopsBetweenShortLoops) {
  bool is_unwanted = false;
  pool_.set_stop_question([&] { return is_unwanted; });
  pool_.for_each(1, kShort, [](int64_t) { sleep_past_the_next_question(); });
  is_unwanted = true;
  EXPECT_THROW(pool_.for_each(1, kShort, [](int64_t) { FAIL() << "ran"; }), Stopped);
  pool_.set_stop_question({});
  int runs = 0;
  pool_.for_each(1, kShort, [&](int64_t) { ++runs; });
  EXPECT_EQ(runs, 1);
}

// A caller's question may look at what only its thread may touch, and may throw.
TEST_P(ThreadPoolTest, AsksOnTheCallingThread) {
  const auto caller = std::this_thread::get_id();
  bool asked_elsewhere = false;
  int questions = 0;
  pool_.set_stop_question([&]() -> bool {
    asked_elsewhere = asked_elsewhere || std::this_thread::get_id() != caller;
    if (++questions == 5) throw std::runtime_error("no answer");
    return false;
  });
  EXPECT_THROW(pool_.for_each(1000, kLong, [](int64_t) { sleep_past_the_next_question(); }),
               std::runtime_error);
  EXPECT_FALSE(asked_elsewhere);
}

// A thread may do many items without asking only while they are short together.
TEST(ThreadPool, AsksAfterAFewLongItems) {
  ThreadPool pool(1);
  int questions = 0;
  pool.set_stop_question([&] { return ++questions == 2; });
  int runs = 0;
  const auto body = [&](int64_t) {
    ++runs;
    sleep_past_the_next_question();
  };
  EXPECT_THROW(pool.for_each(320, kLong, body), Stopped);
  EXPECT_LE(runs, 2);
}

// Both items wait for each other, so both threads must have one.
TEST(ThreadPool, SharesLongLoops) {
  ThreadPool pool(2);
  for (const auto pause : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)}) {
    std::this_thread::sleep_for(pause);  // long enough for the worker to sleep
    std::atomic<int> begun = 0;
    pool.for_each(2, kLong, [&](int64_t) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 2);
  }
}

// How many of two threads get one of two items, each of which waits for the other to begin, though
// not for ever.
size_t threads_that_share(ThreadPool& pool, double item_nanoseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::atomic<int> begun = 0;
  std::vector<int> threads(2);
  pool.for_each(2, item_nanoseconds, [&](int64_t i, int thread) {
    threads[static_cast<size_t>(i)] = thread;
    ++begun;
    while (begun < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  return std::set<int>(threads.begin(), threads.end()).size();
}

// The products of a small model take a few microseconds each; that is ten times what sharing costs.
TEST(ThreadPool, SharesLoopsOfMicroseconds) {
  ThreadPool pool(2);
  EXPECT_EQ(threads_that_share(pool, 4e3), 2u);
}

// A thread finds in its core's cache what it read in the loop before, unless another is slower.
TEST(ThreadPool, BeginsWithTheSameItemsEveryTime) {
  ThreadPool pool(2);
  for (int loop = 0; loop < 100; ++loop) {
    std::atomic<int> begun = 0;
    std::vector<int> first(2, -1);
    pool.for_each(1000, kLong, [&](int64_t i, int thread) {
      int& mine = first[static_cast<size_t>(thread)];
      if (mine >= 0) return;
      mine = static_cast<int>(i);
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
    EXPECT_EQ(first, (std::vector<int>{0, 500}));
  }
}

}  // namespace
}  // namespace tessera
