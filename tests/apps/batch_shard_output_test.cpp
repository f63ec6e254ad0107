#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "apps/batch/devices/shard_output.h"

namespace tessera {
namespace {

namespace filesystem = std::filesystem;

// A line of an answer whose text is `text`.
std::string answer_line(const std::string& custom_id, const std::string& text) {
  const nlohmann::ordered_json body = {
      {"choices", {{{"index", 0}, {"text", text}, {"finish_reason", "stop"}}}},
      {"usage", {{"prompt_tokens", 3}, {"completion_tokens", 5}}}};
  const nlohmann::ordered_json record = {
      {"custom_id", custom_id}, {"response", {{"body", body}}}, {"error", nullptr}};
  return record.dump() + "\n";
}

class ShardOutputTest : public testing::Test {
 protected:
  ShardOutputTest() : path_(testing::TempDir() + "/shard-output-" + std::to_string(getpid())) {
    filesystem::remove(path_);
  }
  ~ShardOutputTest() override { filesystem::remove(path_); }

  void append(const std::string& text) {
    std::ofstream(path_, std::ios::app | std::ios::binary) << text;
  }

  std::string path_;
};

TEST_F(ShardOutputTest, LinesAreCountedWhenTheyAreWhole) {
  ShardOutput output(path_);
  EXPECT_EQ(output.update().answered, 0);
  const std::string line = answer_line("a", "x");
  for (const char character : line) {
    EXPECT_EQ(output.update().answered, 0);
    append(std::string(1, character));
  }
  EXPECT_EQ(output.update().answered, 1);
  // Longer than what is read at once.
  append(answer_line("b", std::string(200'000, 'x')) + line.substr(0, 9));
  EXPECT_EQ(output.update().answered, 2);
  append(line.substr(9));
  EXPECT_EQ(output.update().answered, 3);
  EXPECT_EQ(output.update().generated_tokens, 15);
}

TEST_F(ShardOutputTest, ATornLineGivesWayToAnother) {
  append(answer_line("a", "x"));
  const uint64_t whole_bytes = filesystem::file_size(path_);
  append(answer_line("b", std::string(200, 'x')).substr(0, 150));
  ShardOutput output(path_);
  EXPECT_EQ(output.update().answered, 1);
  // What a resumed run does, between two looks: the file is longer afterwards than it was.
  filesystem::resize_file(path_, whole_bytes);
  append(answer_line("c", std::string(300, 'y')) + answer_line("d", "z"));
  EXPECT_EQ(output.update().answered, 3);
}

TEST_F(ShardOutputTest, AFileThatWasShortenedIsReadAgain) {
  append(answer_line("a", "x") + answer_line("b", "x"));
  ShardOutput output(path_);
  EXPECT_EQ(output.update().answered, 2);
  filesystem::resize_file(path_, 0);
  append(answer_line("c", "x"));
  EXPECT_EQ(output.update().answered, 1);
}

TEST_F(ShardOutputTest, WhatIsToBeReplacedIsLeftOut) {
  append(answer_line("a", "x") + answer_line("b", "x"));
  ShardOutput output(path_);
  output.ignore_present();
  EXPECT_EQ(output.update().answered, 0);
  filesystem::remove(path_);
  append(answer_line("c", "x"));
  EXPECT_EQ(output.update().answered, 1);
}

TEST_F(ShardOutputTest, AnEmptyFileIsWrittenTo) {
  append("");
  ShardOutput output(path_);
  output.ignore_present();
  append(answer_line("a", "x"));
  EXPECT_EQ(output.update().answered, 1);
}

}  // namespace
}  // namespace tessera
