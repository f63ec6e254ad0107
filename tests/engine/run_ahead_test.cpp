// Answers do not depend on whether the next step is launched before the tokens of the one before
// are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "engine/engine.h"
#include "kernels/cuda_status.h"
#include "tests/engine/model_fixture.h"
#include "tests/engine/reciting_model.h"

namespace tessera {
namespace {

EngineOptions options_on(DeviceChoice device, const ModelFixture& model) {
  EngineOptions options = model.options();
  options.device = device;
  return options;
}

void make_reciting(const ModelFixture& model) {
  HostWeights weights = model.read_weights();
  make_reciting(weights, alphabet_texts());
  model.write_weights(weights);
}

// A test on the CPU and on a GPU.
class DeviceTest : public testing::TestWithParam<DeviceChoice> {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (!on_cpu() && status.num_devices == 0) GTEST_SKIP() << status.problem;
  }
  static bool on_cpu() { return GetParam() == DeviceChoice::kCpu; }
};

std::string device_name(const testing::TestParamInfo<DeviceChoice>& info) {
  return info.param == DeviceChoice::kCpu ? "cpu" : "cuda";
}

// What a caller sees of one answer.
struct Seen {
  std::vector<std::string> events;  // callbacks but is_cancelled, in order
  std::vector<TokenId> tokens;
  std::string text;
  std::string reason;

  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* stream) {
  *stream << seen.reason << " after " << seen.tokens.size() << " tokens, " << seen.events.size()
          << " events: " << seen.text;
}

struct AskedAnswer {
  std::vector<TokenId> prompt;
  SamplingParams params;
  int64_t first_step = 0;          // before which it is submitted
  size_t cancelled_after = 0;      // texts; 0: never
  bool is_destroyed = false;       // instead of being cancelled
  std::vector<TokenId> next_turn;  // follows the answer in the same sequence; empty: none
};

// A request on its way, and its next turn.
struct RecordingClient {
  explicit RecordingClient(Engine& engine) : sequence(engine.create_sequence()) {}

  void submit(Engine& engine, const AskedAnswer& request, const std::vector<TokenId>& prompt) {
    seen.emplace_back();
    num_texts = 0;
    const GenerationCallbacks callbacks = {.on_text =
                                               [this](std::string_view text) {
                                                 ++num_texts;
                                                 seen.back().events.emplace_back(text);
                                               },
                                           .on_prefill =
                                               [this](int64_t done, int64_t total) {
                                                 // How a prompt is cut depends on who comes when.
                                                 if (done == total)
                                                   seen.back().events.emplace_back("prompt read");
                                               },
                                           .is_cancelled =
                                               [this, &request] {
                                                 return !request.is_destroyed &&
                                                        request.cancelled_after > 0 &&
                                                        num_texts >= request.cancelled_after;
                                               }};
    engine.submit(*sequence, prompt, request.params, callbacks);
    last_prompt = prompt;
    is_running = true;
  }

  // Takes the answer if it is there.
  void look(Engine& engine, const AskedAnswer& request) {
    if (!is_running) return;
    if (request.is_destroyed && num_texts >= request.cancelled_after) {
      seen.back().reason = "destroyed";
      sequence.reset();
      is_running = false;
      return;
    }
    if (!engine.is_finished(*sequence)) return;
    const GenerationResult& result = engine.result(*sequence);
    seen.back().tokens = result.tokens;
    seen.back().text = result.text;
    seen.back().reason = concat(static_cast<int>(result.stop_reason));
    is_running = false;
    if (seen.size() > 1 || request.next_turn.empty()) return;
    std::vector<TokenId> prompt = last_prompt;
    prompt.insert(prompt.end(), result.tokens.begin(), result.tokens.end());
    prompt.insert(prompt.end(), request.next_turn.begin(), request.next_turn.end());
    submit(engine, request, prompt);
  }

  SequencePtr sequence;
  std::vector<Seen> seen;  // per turn
  std::vector<TokenId> last_prompt;
  size_t num_texts = 0;
  bool is_running = false;
};

std::vector<std::vector<Seen>> run(const EngineOptions& options,
                                   const std::vector<AskedAnswer>& requests) {
  const auto engine = Engine::load(options);
  std::vector<std::unique_ptr<RecordingClient>> clients;
  for (size_t i = 0; i < requests.size(); ++i) {
    clients.push_back(std::make_unique<RecordingClient>(*engine));
  }
  const auto is_busy = [](const auto& client) { return client->is_running; };
  int64_t num_submitted = 0;
  for (int64_t step = 0;
       num_submitted < std::ssize(requests) || std::ranges::any_of(clients, is_busy); ++step) {
    CHECK(step < 10000, "the requests never end");
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].first_step != step) continue;
      clients[i]->submit(*engine, requests[i], requests[i].prompt);
      ++num_submitted;
    }
    engine->step();
    for (size_t i = 0; i < requests.size(); ++i) clients[i]->look(*engine, requests[i]);
  }
  std::vector<std::vector<Seen>> seen;
  for (const auto& client : clients) seen.push_back(client->seen);
  return seen;
}

class RandomRequests {
 public:
  RandomRequests(uint64_t seed, bool is_greedy) : generator_(seed), is_greedy_(is_greedy) {}

  std::vector<AskedAnswer> draw() {
    std::vector<AskedAnswer> requests(static_cast<size_t>(between(1, 6)));
    for (AskedAnswer& request : requests) {
      request.prompt = tokens(between(1, 60));
      request.params.temperature = is_greedy_ || chance(2) ? 0.0 : 1.0;
      request.params.seed = static_cast<uint64_t>(between(0, 1000));
      request.params.max_tokens = chance(4) ? between(1, 2) : between(3, 60);
      if (chance(4)) request.params.frequency_penalty = 0.5;
      for (int64_t i = chance(2) ? 5 : 0; i > 0; --i) {
        request.params.stop.emplace_back(1, static_cast<char>(between('0', 'z')));
      }
      request.first_step = chance(2) ? 0 : between(0, 30);
      if (chance(3)) request.cancelled_after = static_cast<size_t>(between(1, 10));
      request.is_destroyed = request.cancelled_after > 0 && chance(3);
      if (chance(2)) request.next_turn = tokens(between(1, 20));
    }
    return requests;
  }

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator_);
  }
  bool chance(int64_t one_in) { return between(1, one_in) == 1; }

 private:
  std::vector<TokenId> tokens(int64_t count) {
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < count; ++i) {
      tokens.push_back(byte_token(static_cast<char>(between('0', 'z'))));
    }
    return tokens;
  }

  std::mt19937_64 generator_;
  bool is_greedy_;
};

class RunAheadRequestsTest : public DeviceTest {};

// Requests come and go. On the CPU they meet a model whose attention matters; on a GPU, where the
// last bits of logits depend on a sequence's company, one whose logits are exact integers.
TEST_P(RunAheadRequestsTest, SeeTheSame) {
  const ModelFixture model;
  if (!on_cpu()) make_reciting(model);
  // Enough of 320 tokens to end some answers early and some late.
  model.edit("config.json", R"("eos_token_id": 2)",
             R"("eos_token_id": [2, 40, 80, 120, 160, 200, 240, 280, 300, 310])");
  std::set<std::string> reasons;
  const uint64_t num_seeds = on_cpu() ? 60 : 20;  // loading takes longer on a GPU
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    SCOPED_TRACE(concat("seed ", seed));
    RandomRequests random(seed, !on_cpu());
    EngineOptions options = options_on(GetParam(), model);
    options.page_size = 16;
    options.context_size = 208;  // the longest two turns, so that old caches have to make room
    options.prefill_chunk = random.chance(2) ? 16 : 2048;
    options.max_sequences = random.between(1, 4);
    const std::vector<AskedAnswer> requests = random.draw();
    options.run_ahead = RunAhead::kNever;
    const auto plain = run(options, requests);
    options.run_ahead = RunAhead::kAlways;
    EXPECT_EQ(run(options, requests), plain);
    for (const auto& turns : plain) {
      for (const Seen& seen : turns) reasons.insert(seen.reason);
    }
  }
  EXPECT_EQ(reasons.size(), 5u) << testing::PrintToString(reasons);
}

INSTANTIATE_TEST_SUITE_P(, RunAheadRequestsTest,
                         testing::Values(DeviceChoice::kCpu, DeviceChoice::kCuda), device_name);

// The alphabet in one sequence and digits in another, always ahead.
class RunAheadTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    make_reciting(model_);
    engine_ = load(RunAhead::kAlways);
  }

  std::unique_ptr<Engine> load(RunAhead run_ahead) const {
    EngineOptions options = options_on(GetParam(), model_);
    options.max_sequences = 2;
    options.run_ahead = run_ahead;
    return Engine::load(options);
  }

  void finish() const {
    while (engine_->step()) {
    }
  }

  ModelFixture model_;
  std::unique_ptr<Engine> engine_;
};

constexpr const char* kAlphabetAfterA = "BCDEFGHIJKLMNOPQRSTUVWXYZ";

// The one visible sign that a step had been launched before.
TEST_P(RunAheadTest, ALateRequestJoinsTheStepAfterTheNext) {
  for (const auto& [run_ahead, num_steps] : {std::pair{RunAhead::kWhereItHelps, on_cpu() ? 1 : 2},
                                             {RunAhead::kNever, 1},
                                             {RunAhead::kAlways, 2}}) {
    engine_ = load(run_ahead);
    const auto early = engine_->create_sequence();
    const auto late = engine_->create_sequence();
    engine_->submit(*early, byte_tokens("A"), {});
    for (int i = 0; i < 3; ++i) engine_->step();
    engine_->submit(*late, byte_tokens("0"), {.max_tokens = 1});
    int steps = 0;
    for (; !engine_->is_finished(*late); ++steps) engine_->step();
    EXPECT_EQ(steps, num_steps);
    finish();
    EXPECT_EQ(engine_->result(*early).text, kAlphabetAfterA);
    EXPECT_EQ(engine_->result(*late).text, "1");
  }
}

// But for is_cancelled: how often that is asked depends on time.
TEST_P(RunAheadTest, CallbacksComeInTheSameOrder) {
  const auto events = [&](RunAhead run_ahead) {
    engine_ = load(run_ahead);
    std::string events;
    const auto callbacks = [&](char name) {
      return GenerationCallbacks{
          .on_text = [&events, name](std::string_view text) { events += concat(name, text, ' '); },
          .on_prefill = [&events, name](int64_t done,
                                        int64_t) { events += concat(name, done, ' '); }};
    };
    const auto first = engine_->create_sequence();
    const auto second = engine_->create_sequence();
    engine_->submit(*first, byte_tokens("NOP"), {.stop = {"VW"}}, callbacks('a'));
    engine_->submit(*second, byte_tokens("V"), {}, callbacks('b'));
    finish();
    return events;
  };
  EXPECT_EQ(events(RunAhead::kAlways), events(RunAhead::kNever));
}

// The cache counts neither the token that ended the answer nor the one computed after it.
TEST_P(RunAheadTest, TheNextTurnReusesWhatIsValid) {
  const auto sequence = engine_->create_sequence();
  engine_->generate(*sequence, byte_tokens("A"), {.stop = {"F"}});
  const auto result = engine_->generate(*sequence, byte_tokens("ABCDEFGHI"), {.max_tokens = 2});
  EXPECT_EQ(result.cached_prompt_tokens, 5);
  EXPECT_EQ(result.text, "JK");
}

TEST_P(RunAheadTest, ACallbackMaySubmitAndDestroy) {
  const auto first = engine_->create_sequence();
  auto second = engine_->create_sequence();
  const auto third = engine_->create_sequence();
  size_t num_texts = 0;
  const auto on_text = [&](std::string_view) {
    if (++num_texts != 3) return;
    second.reset();
    engine_->submit(*third, byte_tokens("W"), {});
  };
  engine_->submit(*first, byte_tokens("A"), {}, {.on_text = on_text});
  engine_->submit(*second, byte_tokens("0"), {});
  finish();
  EXPECT_EQ(engine_->result(*first).text, kAlphabetAfterA);
  EXPECT_EQ(engine_->result(*third).text, "XYZ");
}

TEST_P(RunAheadTest, LogitsOfAPromptComeBetweenSteps) {
  const std::vector<TokenId> prompt = byte_tokens("0123");
  const std::vector<float> logits = load(RunAhead::kNever)->prompt_logits(prompt);
  const auto sequence = engine_->create_sequence();
  engine_->submit(*sequence, byte_tokens("A"), {});
  for (int i = 0; i < 5; ++i) {
    engine_->step();
    EXPECT_EQ(engine_->prompt_logits(prompt), logits);
  }
  finish();
  EXPECT_EQ(engine_->result(*sequence).text, kAlphabetAfterA);
}

TEST_P(RunAheadTest, AnEngineMayBeDestroyedWhileAStepRuns) {
  auto sequence = engine_->create_sequence();
  engine_->submit(*sequence, byte_tokens("A"), {});
  engine_->step();
  sequence.reset();
  engine_.reset();
}

INSTANTIATE_TEST_SUITE_P(, RunAheadTest, testing::Values(DeviceChoice::kCpu, DeviceChoice::kCuda),
                         device_name);

}  // namespace
}  // namespace tessera
