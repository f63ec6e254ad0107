#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "apps/batch/devices/merge.h"
#include "apps/batch/devices/shard_files.h"
#include "engine/engine.h"

namespace tessera {
namespace {

namespace filesystem = std::filesystem;

TEST(MergeShards, AShardThatHasGoneIsNamedAndTheOthersStay) {
  const filesystem::path folder =
      filesystem::path(testing::TempDir()) / ("merge-" + std::to_string(getpid()));
  filesystem::create_directory(folder);
  const std::string output = folder / "out";
  const std::string there = shard_output_path(output, {.index = 0, .count = 2});
  const std::string gone = shard_output_path(output, {.index = 1, .count = 2});
  std::ofstream(there) << "{}\n";
  try {
    merge_shards({there, gone}, output, /*force=*/false);
    ADD_FAILURE() << "a shard is missing";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(gone + ": No such file or directory"));
  }
  EXPECT_FALSE(filesystem::exists(output));
  EXPECT_EQ(find_shard_outputs(output), std::vector<std::string>{there});
  filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tessera
