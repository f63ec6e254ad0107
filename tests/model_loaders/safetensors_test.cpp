#include "model_loaders/safetensors.h"

#include <gtest/gtest.h>

#include "tests/model_loaders/safetensors_builder.h"
#include "tests/model_loaders/temporary_folder.h"

namespace tessera {
namespace {

using std::string_literals::operator""s;

std::vector<TensorEntry> read_header(const std::string& bytes) {
  const TemporaryFolder folder;
  return read_safetensors_header(FileReader(folder.write("model.safetensors", bytes)), 3);
}

TEST(Safetensors, ReadsRowsInTheOrderOfTheirData) {
  const std::string header = R"({"__metadata__": {"format": "pt"},
      "b": {"dtype": "F16", "shape": [3], "data_offsets": [24, 30]},
      "a": {"shape": [2, 3], "data_offsets": [0, 24], "dtype": "F32"},
      "c": {"dtype": "BF16", "shape": [], "data_offsets": [30, 32]}})";
  const std::vector<TensorEntry> rows = read_header(safetensors_file(header, std::string(32, 'x')));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[0].dtype, DType::kFloat32);
  EXPECT_EQ(rows[0].shape, Shape({2, 3}));
  EXPECT_EQ(rows[0].file_index, 3u);
  EXPECT_EQ(rows[0].offset_bytes, 8 + header.size());
  EXPECT_EQ(rows[0].size_bytes, 24u);
  EXPECT_EQ(rows[1].name, "b");
  EXPECT_EQ(rows[1].dtype, DType::kFloat16);
  EXPECT_EQ(rows[1].offset_bytes, 8 + header.size() + 24);
  EXPECT_EQ(rows[2].name, "c");
  EXPECT_EQ(rows[2].dtype, DType::kBFloat16);
  EXPECT_EQ(rows[2].shape, Shape{});
}

TEST(Safetensors, AcceptsUnalignedDataOddHeadersAndPadding) {
  // The ignorable table of one byte moves the next tensor to an odd offset.
  SafetensorsBuilder builder;
  builder.add("x.rotary_emb.inv_freq", "U8", "[1]", "z").add("w", "F32", "[1]", "abcd");
  for (const std::string& header : {builder.header(), " \n\t\r" + builder.header(),
                                    builder.header() + "   ", "  " + builder.header()}) {
    const auto rows = read_header(safetensors_file(header, "zabcd"));
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].name, "w");
    EXPECT_EQ(rows[0].offset_bytes, 8 + header.size() + 1);
  }
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  // Null metadata, escapes in names, zero-sized tensors that share an offset with a real one.
  const auto rows = read_header(safetensors_file(
      R"({"__metadata__": null, "\u0077": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]},
          "empty": {"dtype": "F32", "shape": [0, 7], "data_offsets": [0, 0]},
          "last": {"dtype": "F32", "shape": [0], "data_offsets": [2, 2]}})",
      "ab"));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "empty");
  EXPECT_EQ(rows[1].name, "w");
  EXPECT_EQ(rows[2].name, "last");
}

TEST(Safetensors, AcceptsMoreThan32BitsOfElements) {
  // A sparse file of 8 GiB: the data is never read.
  const TemporaryFolder folder;
  const std::string header =
      R"({"w": {"dtype": "F16", "shape": [65536, 65536], "data_offsets": [0, 8589934592]}})";
  const std::string path = folder.write("model.safetensors", safetensors_file(header));
  std::filesystem::resize_file(path, 8 + header.size() + 8589934592);
  const auto rows = read_safetensors_header(FileReader(path), 0);
  EXPECT_EQ(rows.at(0).shape.num_elements(), int64_t{1} << 32);
}

TEST(Safetensors, ChecksTensorsThatItLeavesOut) {
  EXPECT_TRUE(
      read_header(
          SafetensorsBuilder().add("a.rotary_emb.inv_freq", "F64", "[1]", "12345678").file())
          .empty());
  EXPECT_THROW(
      read_header(SafetensorsBuilder().add("a.rotary_emb.inv_freq", "F64", "[1]", "1234").file()),
      Error);
  EXPECT_THROW(
      read_header(SafetensorsBuilder().add("a.rotary_emb.inv_freq", "F4", "[3]", "12").file()),
      Error);
}

}  // namespace
}  // namespace tessera
