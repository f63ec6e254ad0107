#include "model_loaders/safe_file_name.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

TEST(SafeFileName, AcceptsShardNames) {
  EXPECT_TRUE(is_safe_file_name("model-00001-of-00003.safetensors"));
  EXPECT_TRUE(is_safe_file_name("a"));
  EXPECT_TRUE(is_safe_file_name("Llama_2.7B-chat"));
}

TEST(SafeFileName, RefusesWhatCouldLeaveTheFolder) {
  for (const std::string_view name :
       {""sv, "."sv, ".."sv, "..x"sv, ".hidden"sv, "-rf"sv, "/etc/passwd"sv, "a/b"sv, "a\\b"sv,
        "%2e%2e"sv, "a\0b"sv, "a b"sv, "a\n"sv, "\xc3\xa9"sv}) {
    EXPECT_FALSE(is_safe_file_name(name)) << name;
  }
  EXPECT_TRUE(is_safe_file_name(std::string(255, 'a')));
  EXPECT_FALSE(is_safe_file_name(std::string(256, 'a')));
}

TEST(SafeRelativePath, ChecksEveryPart) {
  EXPECT_TRUE(is_safe_relative_path("main"));
  EXPECT_TRUE(is_safe_relative_path("refs/pr/1"));
  for (const std::string_view path : {"", "/", "a/", "/a", "a//b", "a/../b", "../a", "a/."}) {
    EXPECT_FALSE(is_safe_relative_path(path)) << path;
  }
}

}  // namespace
}  // namespace tessera
