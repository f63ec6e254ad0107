// Whole models with keys and values in float8_e4m3 beside the same models without: one of every
// feature and family, on every device.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "engine/engine.h"
#include "kernels/cuda_status.h"
#include "tests/golden/golden_data.h"

namespace tessera {
namespace {

struct Fp8Case {
  std::string model;
  DeviceChoice device = DeviceChoice::kCpu;
};

void PrintTo(const Fp8Case& fp8_case, std::ostream* stream) { *stream << fp8_case.model; }

std::vector<Fp8Case> fp8_cases() {
  std::vector<Fp8Case> cases;
  const auto data = source_folder() / "tests" / "golden" / "data";
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (!std::filesystem::exists(entry.path() / "golden.dat")) continue;
    for (const DeviceChoice device : {DeviceChoice::kCpu, DeviceChoice::kCuda}) {
      cases.push_back({entry.path().filename(), device});
    }
  }
  return cases;
}

class Fp8PagesTest : public testing::TestWithParam<Fp8Case> {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (on_cuda() && status.num_devices == 0) GTEST_SKIP() << status.problem;
  }

  static bool on_cuda() { return GetParam().device == DeviceChoice::kCuda; }

  static EngineOptions options(KvDType kv_dtype, int64_t prefill_chunk) {
    EngineOptions options;
    options.model = golden_folder(GetParam().model);
    options.device = GetParam().device;
    options.num_threads = 1;
    options.kv_dtype = kv_dtype;
    options.prefill_chunk = prefill_chunk;
    return options;
  }
};

// Keys and values in e4m3 add two roundings to each layer, by up to 2^-4 each; independent, they
// add up to 2^-4 sqrt(2 num_layers) of the logits or less, which leaves room for the softmax, whose
// scores amplify. Chunks of one token are computed by the kernels that decode. There must be an
// error: without one, pages would not be what was asked for.
TEST_P(Fp8PagesTest, LogitsAreClose) {
  const GoldenRun run = read_golden(GetParam().model).runs.front();
  for (const int64_t prefill_chunk : {2048, 1}) {
    SCOPED_TRACE(concat("prefill chunk ", prefill_chunk));
    const EngineOptions fp8_options = options(KvDType::kFloat8E4M3, prefill_chunk);
    const auto exact = Engine::load(options(KvDType::kActivation, prefill_chunk));
    const ModelConfig& config = exact->folder().config;
    const std::vector<float> expected = exact->prompt_logits(run.tokens);
    const std::vector<float> logits = Engine::load(fp8_options)->prompt_logits(run.tokens);
    ASSERT_EQ(logits.size(), expected.size());
    double squares = 0.0, squared_errors = 0.0;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double error = double{logits[i]} - expected[i];
      squares += double{expected[i]} * expected[i];
      squared_errors += error * error;
    }
    const double error = std::sqrt(squared_errors / squares);
    EXPECT_LE(error, 2.0 * 0x1p-4 * std::sqrt(2.0 * static_cast<double>(config.num_layers)));
    EXPECT_GE(error, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Fp8PagesTest, testing::ValuesIn(fp8_cases()),
                         [](const testing::TestParamInfo<Fp8Case>& info) {
                           const bool is_cpu = info.param.device == DeviceChoice::kCpu;
                           return info.param.model + (is_cpu ? "_cpu" : "_cuda");
                         });

}  // namespace
}  // namespace tessera
