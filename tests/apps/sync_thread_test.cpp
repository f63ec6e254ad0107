#include "apps/batch/sync_thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace tessera {
namespace {

TEST(SyncThread, MakesAllDurableThatWasWritten) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    SyncThread sync(fileno(file), 5);
    EXPECT_EQ(sync.durable_bytes(), 5u);
    for (uint64_t end = 6; end <= 100; ++end) sync.note_written(end);
    sync.wait();
    EXPECT_EQ(sync.durable_bytes(), 100u);
    EXPECT_EQ(sync.error(), 0);
    sync.wait();  // there is nothing to wait for
    sync.note_written(101);
  }  // ends with work to do
  std::fclose(file);
}

TEST(SyncThread, TellsThatTheDiskRefused) {
  SyncThread sync(-1, 5);
  sync.note_written(10);
  sync.wait();
  EXPECT_EQ(sync.error(), EBADF);
  EXPECT_EQ(sync.durable_bytes(), 5u);
  sync.note_written(20);
  sync.wait();
  EXPECT_EQ(sync.durable_bytes(), 5u);
}

}  // namespace
}  // namespace tessera
