#include "model_loaders/sharded_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

ShardedIndex index_of(const std::string& text) {
  const TemporaryFolder folder;
  return read_sharded_index(folder.write("model.safetensors.index.json", text));
}

std::string index_error(const std::string& text) {
  return thrown_error([&] { index_of(text); }).message;
}

TEST(ShardedIndex, MapsTensorsToFiles) {
  const ShardedIndex index = index_of(R"({"metadata": {"total_size": 24},
      "weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"}})");
  EXPECT_THAT(index.files, ElementsAre("a.safetensors", "b.safetensors"));
  EXPECT_EQ(index.file_index_of.at("x"), 1u);
  EXPECT_EQ(index.file_index_of.at("y"), 0u);
  EXPECT_EQ(index.file_index_of.at("z"), 1u);
  EXPECT_EQ(index.total_size_bytes, 24.0);
}

TEST(ShardedIndex, NeedsNoTotalSize) {
  EXPECT_EQ(index_of(R"({"weight_map": {"x": "b.safetensors"}})").total_size_bytes, std::nullopt);
  EXPECT_EQ(
      index_of(R"({"metadata": null, "weight_map": {"x": "b.safetensors"}})").total_size_bytes,
      std::nullopt);
}

TEST(ShardedIndex, RefusesUnsafeFileNames) {
  for (const char* const name :
       {"../../etc/passwd", "/etc/passwd", "a/b.safetensors", "../x.safetensors", "..", "",
        "a\\u0000b.safetensors", ".safetensors", "%2e%2e/x.safetensors", "model.bin",
        "a\\\\b.safetensors", "-x.safetensors"}) {
    EXPECT_THAT(index_error(concat(R"({"weight_map": {"x": ")", name, "\"}}")),
                HasSubstr("unsafe file name in index: '"))
        << name;
  }
}

TEST(ShardedIndex, RefusesMalformedFiles) {
  EXPECT_THAT(index_error("not json"), HasSubstr("invalid JSON at byte"));
  EXPECT_THAT(index_error("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(index_error("{}"), HasSubstr("has no weight_map"));
  EXPECT_THAT(index_error(R"({"weight_map": []})"), HasSubstr("weight_map must be an object"));
  EXPECT_THAT(index_error(R"({"weight_map": {}})"), HasSubstr("weight_map is empty"));
  EXPECT_THAT(index_error(R"({"weight_map": {"x": 1}})"),
              HasSubstr("weight_map.x must be a string, got 1"));
  EXPECT_THAT(index_error(R"({"weight_map": {"x": "a.safetensors", "x": "b.safetensors"}})"),
              HasSubstr("duplicate key 'x'"));
}

TEST(ShardedIndex, LimitsTheNumberOfFiles) {
  std::string map;
  for (int i = 0; i < 513; ++i) {
    map += concat(i > 0 ? "," : "", '"', i, "\":\"", i, ".safetensors\"");
  }
  EXPECT_THAT(index_error(concat(R"({"weight_map": {)", map, "}}")),
              HasSubstr("weight_map names 513 files, at most 512 are read"));
}

}  // namespace
}  // namespace tessera
