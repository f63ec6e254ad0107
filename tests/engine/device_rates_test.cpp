#include "engine/benchmark/device_rates.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

EngineOptions cpu_options() { return {.device = DeviceChoice::kCpu}; }

TEST(DeviceRates, AreThoseOfAComputer) {
  for (const DType weights : {DType::kBFloat16, DType::kFloat16, DType::kFloat32}) {
    const DeviceRates rates = measure_device_rates(cpu_options(), weights);
    for (const double rate :
         {rates.product_operations, rates.attention_operations, rates.read_bytes}) {
      EXPECT_GT(rate, 1e7) << to_string(weights);
      EXPECT_LT(rate, 1e15) << to_string(weights);
    }
  }
}

TEST(DeviceRates, AreNotMeasuredOnceNobodyWaits) {
  EXPECT_THROW(measure_device_rates(cpu_options(), DType::kBFloat16, [] { return true; }), Stopped);
}

}  // namespace
}  // namespace tessera
