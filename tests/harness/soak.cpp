// soak MODEL [--minutes N] [--device cpu|cuda] ...: keeps an engine at full load and asks it the
// same question every minute.
//
// The load is random requests, more than run at the same time: long and short, greedy and sampled,
// with penalties, log-probabilities, shared prefixes and cancellations. Each minute it is let run
// dry, a probe is answered alone, and a line says what memory is in use. Ends with status 1 when an
// answer to the probe differs from the first one, when pages of the KV cache stay held, or when at
// the end more memory of host or device is in use than after the first quarter of the run. A
// device's memory is that of all programs on it. On a CPU pages of the KV cache take memory when
// they are first used, so give it few (--max-pages).
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "kernels/backend.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr TokenId kFirstId = 3;  // behind the ids that most tokenizers keep for themselves
constexpr int64_t kSharedPrefix = 300;
constexpr int64_t kProbePrompt = 600;
constexpr int64_t kProbeAnswer = 200;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Bytes of this process in physical memory.
double resident_bytes() {
  int64_t size = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE));
}

struct Memory {
  double host = 0.0;
  double device = 0.0;  // in use on the whole device
};

class Soak {
 public:
  Soak(const EngineOptions& options, int64_t longest_prompt, int64_t longest_answer)
      : engine_(Engine::load(options)),
        longest_prompt_(longest_prompt),
        longest_answer_(longest_answer) {
    // The engine shows no device, so the device is asked through another backend.
    if (engine_->device() == DeviceType::kCuda) {
      backend_ = make_cuda_backend(options.cuda_index, options.compute_dtype);
    }
    prefix_ = random_tokens(kSharedPrefix);
    probe_ = random_tokens(kProbePrompt);
  }

  Engine& engine() { return *engine_; }

  Memory memory() const {
    Memory memory{.host = resident_bytes()};
    if (backend_ != nullptr) {
      const DeviceMemory device = backend_->device().memory();
      memory.device = static_cast<double>(device.total_bytes - device.free_bytes);
    }
    return memory;
  }

  std::vector<TokenId> answer_probe() {
    const SequencePtr sequence = engine_->create_sequence();
    return engine_->generate(*sequence, probe_, {.max_tokens = kProbeAnswer, .ignore_eos = true})
        .tokens;
  }

  // Runs requests until `end`, then those that are left.
  void run_until(Clock::time_point end) {
    const int64_t most = engine_->memory_plan().limits.max_sequences * 5 / 4 + 1;
    for (bool has_more = true; has_more;) {
      while (Clock::now() < end && std::ssize(running_) < most) add_request();
      has_more = engine_->step();
      if (!running_.empty() && random_() % 16 == 0) {
        engine_->cancel(*running_[random_() % running_.size()]);
      }
      num_requests_ += static_cast<int64_t>(std::erase_if(
          running_, [&](const SequencePtr& sequence) { return engine_->is_finished(*sequence); }));
    }
  }

  int64_t num_requests() const { return num_requests_; }

 private:
  int64_t below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random_); }

  std::vector<TokenId> random_tokens(int64_t count) {
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < count; ++i) {
      tokens.push_back(
          static_cast<TokenId>(kFirstId + below(engine_->tokenizer().size() - kFirstId)));
    }
    return tokens;
  }

  SamplingParams random_params() {
    SamplingParams params{.max_tokens = 1 + below(longest_answer_), .ignore_eos = below(4) != 0};
    if (below(2) == 0) {
      params.temperature = 0.8;
      params.top_p = below(2) == 0 ? 0.95 : 1.0;
      params.top_k = below(2) == 0 ? 40 : 0;
      params.seed = random_();
    }
    if (below(8) == 0) params.repetition_penalty = 1.1;
    if (below(16) == 0) params.top_logprobs = below(4);
    return params;
  }

  void add_request() {
    std::vector<TokenId> prompt = random_tokens(1 + below(longest_prompt_));
    if (below(4) == 0) prompt.insert(prompt.begin(), prefix_.begin(), prefix_.end());
    running_.push_back(engine_->create_sequence());
    engine_->submit(*running_.back(), prompt, random_params());
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Backend> backend_;  // null on the CPU
  int64_t longest_prompt_;
  int64_t longest_answer_;
  std::mt19937_64 random_{1};
  std::vector<TokenId> prefix_, probe_;
  std::vector<SequencePtr> running_;
  int64_t num_requests_ = 0;
};

// Whether nothing was wrong.
bool soak(Soak& load, double minutes, double round_seconds, double allowed_mib) {
  const std::vector<TokenId> expected = load.answer_probe();
  bool is_right = true;
  Memory settled;
  Memory memory;
  const auto start = Clock::now();
  std::printf("%8s %9s %12s %10s %9s %9s %9s %s\n", "seconds", "requests", "tokens", "tokens/s",
              "preempted", "host MiB", "card MiB", "probe");
  while (seconds_since(start) < minutes * 60.0) {
    const int64_t tokens_before = load.engine().statistics().num_tokens;
    const auto round_start = Clock::now();
    load.run_until(round_start + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(round_seconds)));
    const double round = seconds_since(round_start);
    const ServingStatistics statistics = load.engine().statistics();
    const bool is_same = load.answer_probe() == expected;
    memory = load.memory();
    is_right = is_right && is_same && statistics.held_pages == 0;
    const bool is_settling = seconds_since(start) < minutes * 60.0 / 4.0;
    if (is_settling || settled.host == 0.0) settled = memory;
    std::printf("%8.0f %9lld %12lld %10.0f %9lld %9.0f %9.0f %s%s\n", seconds_since(start),
                static_cast<long long>(load.num_requests()),
                static_cast<long long>(statistics.num_tokens),
                static_cast<double>(statistics.num_tokens - tokens_before) / round,
                static_cast<long long>(statistics.num_preemptions), memory.host / kMiB,
                memory.device / kMiB, is_same ? "same" : "DIFFERENT",
                statistics.held_pages == 0 ? "" : ", PAGES HELD");
    std::fflush(stdout);
  }
  const double host = (memory.host - settled.host) / kMiB;
  const double device = (memory.device - settled.device) / kMiB;
  is_right = is_right && host <= allowed_mib && device <= allowed_mib;
  std::printf("%s: since the first quarter host %+.1f MiB, card %+.1f MiB, %.0f allowed\n",
              is_right ? "passed" : "FAILED", host, device, allowed_mib);
  return is_right;
}

int run(int argc, char** argv) {
  EngineOptions options{.context_size = 4096, .max_sequences = 0};
  double minutes = 20.0;
  double round_seconds = 60.0;
  double allowed_mib = 32.0;
  int64_t longest_prompt = 1500;
  int64_t longest_answer = 400;
  std::string device = "auto";
  CLI::App app("Keeps an engine at full load and looks whether it stays the same.");
  app.add_option("model", options.model, "a model folder")->required();
  app.add_option("--minutes", minutes, "how long")->check(CLI::Range(0.01, 1e5));
  app.add_option("--round", round_seconds, "seconds from one probe to the next")
      ->check(CLI::Range(0.01, 1e5));
  app.add_option("--allowed-mib", allowed_mib, "growth of memory that is no fault");
  app.add_option("--longest-prompt", longest_prompt, "tokens of random prompts, at most")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--longest-answer", longest_answer, "tokens of answers, at most")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-pages", options.max_pages, "KV pages; few force preemption");
  app.add_option("--max-sequences", options.max_sequences, "sequences at once; 0: as suits");
  app.add_flag("--batch-invariant", options.batch_invariant, "the kernels of that flag");
  app.add_option("--device", device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  CLI11_PARSE(app, argc, argv);
  if (device == "cpu") options.device = DeviceChoice::kCpu;
  if (device == "cuda") options.device = DeviceChoice::kCuda;
  spdlog::set_level(spdlog::level::warn);
  Soak load(options, longest_prompt, longest_answer);
  std::printf("%s\n", load.engine().device_description().c_str());
  return soak(load, minutes, round_seconds, allowed_mib) ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  try {
    return tessera::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
