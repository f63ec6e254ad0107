// The demo model's greedy answers, as committed in demo_answers.tsv, on every device.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/engine.h"
#include "kernels/cuda_status.h"
#include "tests/golden/golden_data.h"

namespace tessera {
namespace {

class DemoModelTest : public testing::TestWithParam<DeviceChoice> {};

TEST_P(DemoModelTest, GivesTheCommittedAnswers) {
  if (GetParam() == DeviceChoice::kCuda && cuda_status().num_devices == 0) {
    GTEST_SKIP() << cuda_status().problem;
  }
  const auto engine = Engine::load(
      {.model = source_folder() / "weights" / "demo", .device = GetParam(), .context_size = 1024});
  std::ifstream file(source_folder() / "tests" / "golden" / "demo_answers.tsv");
  int num_answers = 0;
  for (std::string line; std::getline(file, line); ++num_answers) {
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    const Message question{Role::kUser, line.substr(0, tab)};
    const SequencePtr sequence = engine->create_sequence();
    const GenerationResult result =
        engine->generate(*sequence, engine->encode_chat({&question, 1}), {});
    EXPECT_EQ(result.text, line.substr(tab + 1)) << question.content;
    EXPECT_EQ(result.stop_reason, StopReason::kEndOfSequence) << question.content;
  }
  EXPECT_EQ(num_answers, 12);
}

INSTANTIATE_TEST_SUITE_P(Devices, DemoModelTest,
                         testing::Values(DeviceChoice::kCpu, DeviceChoice::kCuda),
                         [](const auto& device) {
                           return device.param == DeviceChoice::kCpu ? "cpu" : "cuda";
                         });

}  // namespace
}  // namespace tessera
