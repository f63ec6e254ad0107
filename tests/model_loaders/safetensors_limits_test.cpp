// Headers as large as the format allows: refused in bounded time and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model_loaders/safetensors.h"
#include "model_loaders/safetensors_header.h"
#include "tests/model_loaders/safetensors_builder.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"
#include "tests/sanitized.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// "VmHWM" or "VmRSS" of this process.
uint64_t memory_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  throw std::runtime_error("no " + field + " in /proc/self/status");
}

// Forgets the peak that earlier tests reached.
void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

void expect_cheap_refusal(const std::string& path, const std::string& message) {
  reset_peak_memory();
  const uint64_t before_bytes = memory_bytes("VmRSS");
  const ThrownError error = thrown_error([&] { read_safetensors_header(FileReader(path), 0); });
  EXPECT_THAT(error.message, HasSubstr(message));
  if (kIsSanitized) return;
  EXPECT_LT(error.cpu_seconds, 1.0);
  EXPECT_LT(memory_bytes("VmHWM") - before_bytes, uint64_t{200} << 20);
}

// Streams `count` pieces as header so that the test itself needs no memory for it.
template <typename Piece>
std::string write_header(const TemporaryFolder& folder, size_t count, const Piece& piece) {
  const std::string path = folder.path("model.safetensors");
  std::ofstream file(path, std::ios::binary);
  file << length_prefix(0) << "{";
  for (size_t i = 0; i < count; ++i) file << (i > 0 ? "," : "") << piece(i);
  file << "}";
  const auto header_bytes = static_cast<uint64_t>(file.tellp()) - 8;
  file.seekp(0) << length_prefix(header_bytes);
  return path;
}

std::string empty_tensor(size_t i) {
  return concat('"', i, R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})");
}

TEST(SafetensorsLimits, RefusesMillionsOfEmptyTensors) {
  const TemporaryFolder folder;
  expect_cheap_refusal(write_header(folder, 1'500'000, [](size_t i) { return empty_tensor(i); }),
                       "more than 100000 tensors");
}

TEST(SafetensorsLimits, RefusesTooManyMetadataKeys) {
  const TemporaryFolder folder;
  expect_cheap_refusal(
      write_header(
          folder, 200'000,
          [](size_t i) { return concat(i == 0 ? R"("__metadata__":{")" : "\"", i, R"(":"")"); }),
      "more than 100000 keys in __metadata__");
}

TEST(SafetensorsLimits, RefusesOneHugeString) {
  const TemporaryFolder folder;
  expect_cheap_refusal(
      write_header(folder, 1,
                   [](size_t) { return concat('"', std::string(99'000'000, 'x'), "\":{}"); }),
      "is longer than 16777216 bytes");
}

TEST(SafetensorsLimits, AcceptsTheLargestNumberOfTensors) {
  const TemporaryFolder folder;
  const std::string path =
      write_header(folder, kMaxTensorsPerFile, [](size_t i) { return empty_tensor(i); });
  EXPECT_EQ(read_safetensors_header(FileReader(path), 0).size(), kMaxTensorsPerFile);
}

}  // namespace
}  // namespace tessera
