// Drafts change no token of real models: of every family, sampled too, at the ends of answers.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/engine.h"
#include "kernels/cuda_status.h"
#include "tests/engine/model_fixture.h"
#include "tests/engine/reciting_model.h"

namespace tessera {
namespace {

struct LookupCase {
  std::string model;
  DeviceChoice device = DeviceChoice::kCpu;

  std::string name() const { return model + (device == DeviceChoice::kCpu ? "_cpu" : "_cuda"); }
};

void PrintTo(const LookupCase& value, std::ostream* stream) { *stream << value.name(); }

std::vector<LookupCase> all_cases() {
  std::vector<LookupCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(""))) {
    if (!entry.is_directory()) continue;
    for (const DeviceChoice device : {DeviceChoice::kCpu, DeviceChoice::kCuda}) {
      cases.push_back({entry.path().filename().string(), device});
    }
  }
  std::ranges::sort(cases, {}, &LookupCase::name);
  return cases;
}

class PromptLookupModelTest : public testing::TestWithParam<LookupCase> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceChoice::kCuda && cuda_status().num_devices == 0) {
      GTEST_SKIP() << cuda_status().problem;
    }
  }

  // Sums in another order would change logits on a GPU by more than some of these models' margins.
  static std::unique_ptr<Engine> load(PromptLookupChoice choice) {
    return Engine::load({.model = golden_folder(GetParam().model),
                         .device = GetParam().device,
                         .batch_invariant = GetParam().device == DeviceChoice::kCuda,
                         .num_threads = 1,
                         .max_sequences = 2,
                         .page_size = 16,
                         .prompt_lookup = choice});
  }
};

// Prompts that say the same twice and half of it again.
TEST_P(PromptLookupModelTest, AnswersAreThoseWithoutDrafts) {
  const std::unique_ptr<Engine> plain = load(PromptLookupChoice::kNever);
  const std::unique_ptr<Engine> engine = load(PromptLookupChoice::kAlways);
  const Golden golden = GoldenReader(golden_folder(GetParam().model) + "/golden.dat").read();
  for (const int64_t length : {3, 5, 9, 16, 24}) {
    std::vector<TokenId> prompt = golden.runs[0].prefix(length);
    prompt.insert(prompt.end(), prompt.begin(), prompt.end());
    const std::vector<TokenId> half = golden.runs[0].prefix(length / 2 + 1);
    prompt.insert(prompt.end(), half.begin(), half.end());
    for (const double temperature : {0.0, 0.3}) {
      const SamplingParams params = {.temperature = temperature,
                                     .seed = static_cast<uint64_t>(length),
                                     .max_tokens = 60,
                                     .ignore_eos = true};
      const GenerationResult expected = plain->generate(*plain->create_sequence(), prompt, params);
      const GenerationResult result = engine->generate(*engine->create_sequence(), prompt, params);
      EXPECT_EQ(result.tokens, expected.tokens) << "at temperature " << temperature;
      EXPECT_EQ(expected.drafted_tokens, 0);
    }
  }
  EXPECT_GT(engine->statistics().drafted_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(, PromptLookupModelTest, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name(); });

// Makes the model four times as wide, so that a GPU computes its steps in one kernel; its weights
// are repeated.
void widen(const ModelFixture& model, HostWeights& weights) {
  constexpr int64_t kWide = 256;
  model.edit("config.json", R"("hidden_size": 64)", concat(R"("hidden_size": )", kWide));
  model.edit("config.json", R"("intermediate_size": 96)",
             concat(R"("intermediate_size": )", kWide));
  for (auto& [name, weight] : weights) {
    std::vector<int64_t> sizes(weight.shape.dims().begin(), weight.shape.dims().end());
    for (int64_t& size : sizes) {
      if (size == 64 || size == 96) size = kWide;
    }
    weight.shape = Shape(std::span<const int64_t>(sizes));
    const std::vector<float> narrow = std::move(weight.values);
    weight.values.resize(static_cast<size_t>(weight.shape.num_elements()));
    for (size_t i = 0; i < weight.values.size(); ++i) weight.values[i] = narrow[i % narrow.size()];
  }
}

struct EndCase {
  DeviceChoice device;
  bool is_wide;
};

// A model whose answers are known and repeat themselves.
class PromptLookupEndTest : public testing::TestWithParam<EndCase> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceChoice::kCuda && cuda_status().num_devices == 0) {
      GTEST_SKIP() << cuda_status().problem;
    }
    HostWeights weights = model_.read_weights();
    if (GetParam().is_wide) widen(model_, weights);
    make_reciting(weights, alphabet_texts());
    model_.write_weights(weights);
    EngineOptions options = model_.options();
    options.device = GetParam().device;
    options.prompt_lookup = PromptLookupChoice::kAlways;
    engine_ = Engine::load(options);
  }

  GenerationResult answer(std::string_view prompt, const SamplingParams& params) const {
    return engine_->generate(*engine_->create_sequence(), byte_tokens(prompt), params);
  }

  ModelFixture model_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(PromptLookupEndTest, EverythingThatItRepeatsIsAccepted) {
  const GenerationResult result = answer("0123456789012", {.max_tokens = 80});
  EXPECT_EQ(result.text.substr(0, 20), "34567890123456789012");
  EXPECT_EQ(result.tokens.size(), 80u);
  EXPECT_EQ(result.accepted_tokens, result.drafted_tokens);
  EXPECT_EQ(result.accepted_tokens, 69) << "the prompt draws one, and ten steps draw the rest";
}

TEST_P(PromptLookupEndTest, AnswersEndInTheMiddleOfARun) {
  const std::string prompt = "ABCDEFGHIJKLMNOPQRSTUVWXYZ.ABC";
  EXPECT_EQ(answer(prompt, {}).text, "DEFGHIJKLMNOPQRSTUVWXYZ");
  EXPECT_GT(engine_->statistics().accepted_tokens, 10);
  for (int64_t max_tokens = 1; max_tokens < 20; ++max_tokens) {
    EXPECT_EQ(answer(prompt, {.max_tokens = max_tokens}).text,
              prompt.substr(3, static_cast<size_t>(max_tokens)));
  }
  for (size_t size = 3; size < 20; ++size) {
    EXPECT_EQ(answer(prompt, {.stop = {prompt.substr(size, 2)}}).text, prompt.substr(3, size - 3));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PromptLookupEndTest,
    testing::Values(EndCase{DeviceChoice::kCpu, false}, EndCase{DeviceChoice::kCpu, true},
                    EndCase{DeviceChoice::kCuda, false}, EndCase{DeviceChoice::kCuda, true}),
    [](const auto& info) {
      return concat(info.param.is_wide ? "wide" : "narrow",
                    info.param.device == DeviceChoice::kCpu ? "_cpu" : "_cuda");
    });

}  // namespace
}  // namespace tessera
