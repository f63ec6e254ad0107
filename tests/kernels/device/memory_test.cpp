#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/device_measurement.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {
namespace {

class MemoryTest : public BackendTest {};

TEST_P(MemoryTest, ReportsFreeWithinTotal) {
  const DeviceMemory memory = device().memory();
  EXPECT_GT(memory.free_bytes, 0u);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
}

TEST_P(MemoryTest, AllocatesAlignedMemoryOfTheDevice) {
  for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{5} << 20}) {
    const Buffer buffer = device().allocate(bytes, "test");
    EXPECT_EQ(buffer.size_bytes(), bytes);
    EXPECT_EQ(buffer.device(), device().id());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % Arena::kAlignment, 0u);
  }
}

TEST_P(MemoryTest, FailureNamesPurposeAndSizes) {
  for (const size_t bytes : {size_t{1} << 50, ~size_t{0} - 1000}) {
    try {
      device().allocate(bytes, "the KV cache");
      FAIL() << "allocated " << bytes << " bytes";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("the KV cache"));
      EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(bytes)));
      EXPECT_THAT(error.what(), testing::HasSubstr("free"));
    }
  }
  // And the backend works on.
  EXPECT_NO_THROW(device().allocate(1024, "test"));
}

TEST_P(MemoryTest, DescribesTheDevice) {
  EXPECT_THAT(device().description(),
              testing::HasSubstr(device().type() == DeviceType::kCpu ? "CPU, 2 threads" : "sm_"));
}

// No memory is slower than 100 MB/s, none reads 100 TB/s.
TEST_P(MemoryTest, MeasuresAPlausibleBandwidth) {
  const double bytes_per_second = backend().make_measurement()->read_bandwidth();
  EXPECT_GT(bytes_per_second, 1e8);
  EXPECT_LT(bytes_per_second, 1e14);
}

FOR_EACH_BACKEND(MemoryTest);

TEST(CpuMemoryTest, DefaultsToTheMachinesCores) {
  EXPECT_THAT(make_cpu_backend(0)->device().description(), testing::StartsWith("CPU, "));
  EXPECT_THAT(make_cpu_backend(1)->device().description(), testing::StartsWith("CPU, 1 thread,"));
}

}  // namespace
}  // namespace tessera
