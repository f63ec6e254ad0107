// Whole models against transformers: small folders that differ in one feature or one family each,
// on every device, with every way of cutting the work into pages, chunks and batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "kernels/cuda_status.h"
#include "tests/golden/golden_data.h"

namespace tessera {
namespace {

struct GoldenModel {
  const char* name;
  int64_t num_layers = 2;
  int64_t context_size = 0;  // tokens to load it with, of which its RoPE depends; 0: any
};

// The folders of tests/golden/data, in the order of golden_models.py.
constexpr GoldenModel kModels[] = {
    {"gqa_d64"},
    {"mha_d80"},
    {"gqa_d128"},
    {"tied"},
    {"llama3_rope"},
    {"linear_rope"},
    {"rope_parameters"},
    {"sharded"},
    {"sliding_window"},
    {"one_kernel"},
    {"qwen3"},
    {"llama_biases"},
    {"llama_yarn"},
    {.name = "llama_dynamic", .context_size = 134},
    {"mistral_nemo"},
    {"ministral"},
    {"ministral3"},
    {"mistral3"},
    {"qwen2"},
    {.name = "qwen2_window", .num_layers = 3},
    {"qwen3_one_kernel"},
    {"gemma2"},
    {"gemma3_text"},
    {.name = "gemma3", .num_layers = 3},
    {.name = "phi3_short", .context_size = 160},
    {.name = "phi3_long", .context_size = 256},
    {"smollm3"},
    {"olmo2"},
    {"olmo2_one_kernel"},
    {"phi3_one_kernel"},
    {.name = "olmo3", .num_layers = 4},
    {"granite"},
    {"glm4"},
    {"glm"},
    {"cohere"},
    {.name = "cohere2", .num_layers = 3},
    {.name = "exaone4", .num_layers = 4},
    {"seed_oss"},
    {"llama_stretched"},
    {"cohere_qk_norm"},
    {"llama_padded"},
    {"glm4_padded"},
    {"qwen3_padded_one_kernel"},
    {"olmo2_padded_one_kernel"},
    {"glm4_one_kernel"},
};

struct GoldenCase {
  GoldenModel model;
  DeviceChoice device = DeviceChoice::kCpu;
  DType dtype = DType::kFloat32;  // of activations

  std::string name() const {
    const bool cpu = device == DeviceChoice::kCpu;
    return concat(model.name, cpu ? "_cpu" : concat("_cuda_", to_string(dtype)));
  }
};

void PrintTo(const GoldenCase& golden_case, std::ostream* stream) { *stream << golden_case.name(); }

std::vector<GoldenCase> all_cases() {
  std::vector<GoldenCase> cases;
  for (const GoldenModel& model : kModels) {
    cases.push_back({model, DeviceChoice::kCpu, DType::kFloat32});
    cases.push_back({model, DeviceChoice::kCuda, DType::kBFloat16});
    cases.push_back({model, DeviceChoice::kCuda, DType::kFloat16});
  }
  return cases;
}

double root_mean_square(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

class GoldenTest : public testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (!on_cpu() && status.num_devices == 0) GTEST_SKIP() << status.problem;
    golden_ = read_golden(GetParam().model.name);
  }

  bool on_cpu() const { return GetParam().device == DeviceChoice::kCpu; }
  const GoldenRun& run() const { return golden_.runs.front(); }

  EngineOptions options() const {
    EngineOptions options;
    options.model = golden_folder(GetParam().model.name);
    options.context_size = GetParam().model.context_size;
    options.device = GetParam().device;
    if (!on_cpu()) options.compute_dtype = GetParam().dtype;
    options.num_threads = 1;
    return options;
  }

  static SamplingParams greedy(const GoldenRun& run) {
    SamplingParams params;
    params.max_tokens = static_cast<int64_t>(run.tokens.size()) - run.prompt_length;
    params.ignore_eos = true;  // the golden answers have no end token, others may
    return params;
  }

  // The root mean square of the error that 16-bit rounding should leave in the logits, as a
  // fraction of theirs. On its way through a layer a token is rounded ten times (norm, qkv, rotated
  // query, key, value, probabilities, attention, norm, gate and up, their product) and twice
  // outside (weights stored wider, last norm). Independent relative errors of at most the unit
  // roundoff u add up to u sqrt(n) or less, which leaves room for the softmax, whose scores
  // amplify. Simulated on the CPU, exactly these roundings leave 0.7 to 1.1 times this; PyTorch,
  // which also rounds the residual stream and the logits, 1.1 to 1.8 times.
  double expected_error() const {
    const double unit_roundoff = GetParam().dtype == DType::kBFloat16 ? 0x1p-8 : 0x1p-11;
    const auto num_layers = static_cast<double>(GetParam().model.num_layers);
    return unit_roundoff * std::sqrt(10.0 * num_layers + 2.0);
  }

  void expect_golden_logits(Engine& engine) const {
    const std::vector<float> logits = engine.prompt_logits(run().tokens);
    const auto vocab_size = static_cast<size_t>(golden_.vocab_size);
    ASSERT_EQ(logits.size(), run().tokens.size() * vocab_size);

    std::vector<float> errors;
    for (size_t row = 0; row < run().logit_positions.size(); ++row) {
      const auto position = static_cast<size_t>(run().logit_positions[row]);
      for (size_t token = 0; token < vocab_size; ++token) {
        errors.push_back(logits[position * vocab_size + token] -
                         run().logits[row * vocab_size + token]);
      }
    }
    ASSERT_TRUE(std::isfinite(root_mean_square(errors)));
    const auto worst = std::ranges::max_element(errors, {}, [](float e) { return std::abs(e); });
    const auto row = static_cast<size_t>(worst - errors.begin()) / vocab_size;
    SCOPED_TRACE(concat("worst at position ", run().logit_positions[row]));
    if (on_cpu()) {
      EXPECT_LE(std::abs(*worst), 1e-4 * run().scale);
      return;
    }
    const double expected = expected_error() * root_mean_square(run().logits);
    EXPECT_LE(root_mean_square(errors), 2.0 * expected);
    EXPECT_LE(std::abs(*worst), 15.0 * expected);  // of 7,000 errors; simulated: 3.6 to 8.5
  }

  // Two tokens closer than this, as a fraction of the largest logit, may change places. PyTorch's
  // worst case on these models is 5.6 times the expected error.
  double near_tie() const {
    if (on_cpu()) return 2e-4;  // both may be off by the 1e-4 of the logits test
    return 8.0 * expected_error() * root_mean_square(run().logits) / run().scale;
  }

  // The answer is the golden one, up to the first near tie that fell the other way.
  void expect_golden_answer(const std::vector<TokenId>& answer, const GoldenRun& run) const {
    const std::vector<TokenId> expected = run.answer();
    ASSERT_EQ(answer.size(), expected.size());
    const size_t step =
        static_cast<size_t>(std::ranges::mismatch(answer, expected).in1 - answer.begin());
    if (step == answer.size()) return;
    const float margin = run.margins[static_cast<size_t>(run.prompt_length) + step - 1];
    EXPECT_LT(margin, near_tie()) << "step " << step << " gave " << answer[step] << ", expected "
                                  << expected[step];
  }

  void expect_golden(const EngineOptions& options) const {
    const auto engine = Engine::load(options);
    expect_golden_logits(*engine);
    const auto sequence = engine->create_sequence();
    expect_golden_answer(engine->generate(*sequence, run().prompt(), greedy(run())).tokens, run());
  }

  // The token after the first `length` tokens of the run is the golden one or a near tie.
  void expect_golden_token(Engine& engine, Sequence& sequence, int64_t length) const {
    SamplingParams one_token;
    one_token.max_tokens = 1;
    one_token.ignore_eos = true;
    const auto result = engine.generate(sequence, run().prefix(length), one_token);
    ASSERT_EQ(result.tokens.size(), 1u) << "after " << length << " tokens";
    const auto last = static_cast<size_t>(length - 1);
    if (result.tokens[0] != run().top_tokens[last]) {
      EXPECT_LT(run().margins[last], near_tie())
          << "after " << length << " tokens came " << result.tokens[0] << ", expected "
          << run().top_tokens[last];
    }
  }

  Golden golden_;
};

TEST_P(GoldenTest, LogitsMatch) { expect_golden_logits(*Engine::load(options())); }

TEST_P(GoldenTest, GreedyAnswersMatch) {
  const auto engine = Engine::load(options());
  for (const GoldenRun& run : golden_.runs) {
    const auto sequence = engine->create_sequence();
    const auto result = engine->generate(*sequence, run.prompt(), greedy(run));
    EXPECT_EQ(result.stop_reason, StopReason::kMaxTokens);
    expect_golden_answer(result.tokens, run);
  }
}

// Every step of decoding starts from the golden tokens, so one near tie does not hide the rest.
TEST_P(GoldenTest, EveryDecodeStepMatches) {
  const auto engine = Engine::load(options());
  const auto sequence = engine->create_sequence();
  const auto num_tokens = static_cast<int64_t>(run().tokens.size());
  for (int64_t length = run().prompt_length; length < num_tokens; ++length) {
    expect_golden_token(*engine, *sequence, length);
  }
}

TEST_P(GoldenTest, PageSizeDoesNotMatter) {
  for (const int64_t page_size : {16, 64, 128}) {
    SCOPED_TRACE(concat("page size ", page_size));
    EngineOptions changed = options();
    changed.page_size = page_size;
    expect_golden(changed);
  }
}

TEST_P(GoldenTest, RunningAheadDoesNotMatter) {
  for (const RunAhead run_ahead : {RunAhead::kAlways, RunAhead::kNever}) {
    SCOPED_TRACE(run_ahead == RunAhead::kAlways ? "ahead" : "not ahead");
    EngineOptions changed = options();
    changed.page_size = 16;
    changed.run_ahead = run_ahead;
    expect_golden(changed);
  }
}

TEST_P(GoldenTest, PrefillChunkDoesNotMatter) {
  for (const int64_t prefill_chunk : {1, 7, 63, 64, 65, 4096}) {
    SCOPED_TRACE(concat("prefill chunk ", prefill_chunk));
    EngineOptions changed = options();
    changed.prefill_chunk = prefill_chunk;
    expect_golden(changed);
  }
}

TEST_P(GoldenTest, PromptsAroundAPageMatch) {
  for (const int64_t page_size : {16, 64, 128}) {
    SCOPED_TRACE(concat("page size ", page_size));
    EngineOptions changed = options();
    changed.page_size = page_size;
    const auto engine = Engine::load(changed);
    for (const int64_t length : {page_size - 1, page_size, page_size + 1}) {
      const auto fresh = engine->create_sequence();
      expect_golden_token(*engine, *fresh, length);
    }
  }
}

// Prompts of different lengths prefill and decode in the same steps, some waiting for their turn.
TEST_P(GoldenTest, CompanyDoesNotMatter) {
  struct Case {
    int64_t max_sequences, prefill_chunk;
    RunAhead run_ahead;
  };
  for (const auto& [max_sequences, prefill_chunk, run_ahead] : {Case{4, 2048, RunAhead::kAlways},
                                                                {4, 2048, RunAhead::kNever},
                                                                {4, 16, RunAhead::kNever},
                                                                {2, 2048, RunAhead::kAlways},
                                                                {2, 2048, RunAhead::kNever}}) {
    SCOPED_TRACE(concat(max_sequences, " sequences, prefill chunk ", prefill_chunk));
    SCOPED_TRACE(run_ahead == RunAhead::kAlways ? "ahead" : "not ahead");
    EngineOptions changed = options();
    changed.max_sequences = max_sequences;
    changed.prefill_chunk = prefill_chunk;
    changed.run_ahead = run_ahead;
    const auto engine = Engine::load(changed);
    std::vector<SequencePtr> sequences;
    for (const GoldenRun& run : golden_.runs) {
      sequences.push_back(engine->create_sequence());
      engine->submit(*sequences.back(), run.prompt(), greedy(run));
    }
    while (engine->step()) {
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      SCOPED_TRACE(concat("run ", i));
      ASSERT_TRUE(engine->is_finished(*sequences[i]));
      expect_golden_answer(engine->result(*sequences[i]).tokens, golden_.runs[i]);
    }
  }
}

// The same numbers, not only the same tokens, however the prompt is cut; and the same tokens alone
// and in company.
TEST_P(GoldenTest, BatchInvariantResultsAreTheSameBitByBit) {
  EngineOptions invariant = options();
  invariant.batch_invariant = true;
  std::vector<float> logits;
  std::vector<std::vector<TokenId>> answers;
  for (const int64_t prefill_chunk : {2048, 1, 7, 65}) {
    SCOPED_TRACE(concat("prefill chunk ", prefill_chunk));
    EngineOptions changed = invariant;
    changed.prefill_chunk = prefill_chunk;
    changed.max_sequences = prefill_chunk == 7 ? 3 : 1;
    const auto engine = Engine::load(changed);
    const std::vector<float> these = engine->prompt_logits(run().tokens);
    if (logits.empty()) {
      expect_golden_logits(*engine);
      logits = these;
    }
    EXPECT_TRUE(these == logits);

    std::vector<SequencePtr> sequences;
    for (const GoldenRun& run : golden_.runs) {
      sequences.push_back(engine->create_sequence());
      engine->submit(*sequences.back(), run.prompt(), greedy(run));
    }
    while (engine->step()) {
    }
    std::vector<std::vector<TokenId>> these_answers;
    for (const SequencePtr& sequence : sequences) {
      these_answers.push_back(engine->result(*sequence).tokens);
    }
    if (answers.empty()) answers = these_answers;
    EXPECT_TRUE(these_answers == answers);
  }
}

TEST_P(GoldenTest, CachedPrefixIsReused) {
  const auto engine = Engine::load(options());
  const auto sequence = engine->create_sequence();
  SamplingParams few_tokens;
  few_tokens.max_tokens = 8;
  engine->generate(*sequence, run().prefix(40), few_tokens);

  auto result = engine->generate(*sequence, run().prompt(), greedy(run()));
  EXPECT_GE(result.cached_prompt_tokens, 40);
  expect_golden_answer(result.tokens, run());

  result = engine->generate(*sequence, run().prompt(), greedy(run()));
  EXPECT_EQ(result.cached_prompt_tokens, run().prompt_length - 1);
  expect_golden_answer(result.tokens, run());

  // Another prompt shares no more than the first token.
  const GoldenRun& other = golden_.runs[2];
  result = engine->generate(*sequence, other.prompt(), greedy(other));
  EXPECT_LE(result.cached_prompt_tokens, 1);
  expect_golden_answer(result.tokens, other);
}

TEST_P(GoldenTest, SameSeedGivesSameTokens) {
  SamplingParams params = greedy(run());
  params.temperature = 1.0;
  params.top_p = 0.95;
  const auto sample = [&](const EngineOptions& options, uint64_t seed) {
    params.seed = seed;
    const auto engine = Engine::load(options);
    const auto sequence = engine->create_sequence();
    return engine->generate(*sequence, run().prompt(), params).tokens;
  };
  const std::vector<TokenId> tokens = sample(options(), 7);
  EXPECT_EQ(sample(options(), 7), tokens);
  EXPECT_NE(sample(options(), 8), tokens);
  if (!on_cpu()) return;  // 16-bit rounding may differ between page sizes, and so may a draw
  EngineOptions changed = options();
  changed.page_size = 16;
  changed.num_threads = 2;
  EXPECT_EQ(sample(changed, 7), tokens);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(all_cases()),
                         [](const auto& param) { return param.param.name(); });

}  // namespace
}  // namespace tessera
