#include "apps/answer/stats.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "apps/answer/load_report.h"
#include "apps/options/sampling_json.h"
#include "apps/terminal/human_units.h"
#include "apps/terminal/output.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

// 0 below two tokens. Halfway through, the sequence holds its prompt and half of the answer.
double decode_bytes_per_second(const Engine& engine, const GenerationResult& result) {
  const auto generated = static_cast<int64_t>(result.tokens.size());
  const uint64_t bytes = decode_step_bytes(engine, 1, result.prompt_tokens + generated / 2);
  return static_cast<double>(bytes) * result.decode_tokens_per_second();
}

// " 95.1 tok/s"; nothing where nothing has been timed.
std::string rate_text(double tokens_per_second) {
  return tokens_per_second > 0.0 ? concat(' ', fixed(tokens_per_second, 1), " tok/s") : "";
}

}  // namespace

uint64_t decode_step_bytes(const Engine& engine, int64_t num_sequences, int64_t context_length) {
  return engine.weight_bytes_per_token() +
         static_cast<uint64_t>(num_sequences * context_length) *
             static_cast<uint64_t>(engine.memory_plan().kv_bytes_per_token);
}

std::string stats_line(const Engine& engine, const GenerationResult& result,
                       const SamplingParams& params) {
  const auto generated = static_cast<int64_t>(result.tokens.size());
  const int64_t held = result.cached_prompt_tokens + result.computed_prompt_tokens;
  const double read_rate = decode_bytes_per_second(engine, result);
  std::string line =
      concat("prompt ", result.is_prompt_computed() ? "" : concat(held, " of "),
             result.prompt_tokens, " tok", rate_text(result.prefill_tokens_per_second()), " | gen ",
             generated, " tok", rate_text(result.decode_tokens_per_second()),
             read_rate > 0.0 ? concat(' ', fixed(read_rate / 1e9, 1), " GB/s") : "", " | ttft ",
             result.is_prompt_computed() ? concat(fixed(result.prefill_seconds, 2), " s") : "-",
             " | kv ", held + generated, '/', engine.context_size());
  if (result.drafted_tokens > 0) {
    line += concat(" | drafts ", result.accepted_tokens, " of ", result.drafted_tokens);
  }
  if (params.temperature != 0.0) line += concat(" | seed ", params.seed);
  return line;
}

OrderedJson engine_json(const Engine& engine, const EngineOptions& options) {
  const bool on_cpu = engine.device() == DeviceType::kCpu;
  const DType dtype = on_cpu ? DType::kFloat32 : options.compute_dtype;
  return {{"version", TESSERA_VERSION},
          {"model", engine.folder().path},
          {"device", engine.device_description()},
          {"dtype", to_string(dtype)},
          {"context_size", engine.context_size()},
          {"weights_bytes", engine.memory_plan().weights_bytes},
          {"kv_dtype", to_string(stored_dtype(options.kv_dtype, dtype))},
          {"kv_bytes", engine.memory_plan().kv_bytes},
          {"allocated_bytes", engine.allocated_bytes()},
          {"peak_resident_bytes", peak_resident_bytes()},
          {"load_seconds", engine.load_timings().total_seconds},
          {"load_phases", load_json(engine.load_timings())}};
}

OrderedJson stats_json(const Engine& engine, const EngineOptions& options,
                       const GenerationResult& result, const SamplingParams& params) {
  OrderedJson object = engine_json(engine, options);
  object["seed"] = params.seed;
  object["sampling"] = sampling_json(params);
  object["prompt_tokens"] = result.prompt_tokens;
  object["cached_prompt_tokens"] = result.cached_prompt_tokens;
  object["computed_prompt_tokens"] = result.computed_prompt_tokens;
  object["completion_tokens"] = result.tokens.size();
  object["drafted_tokens"] = result.drafted_tokens;
  object["accepted_tokens"] = result.accepted_tokens;
  object["finish_reason"] = finish_reason(result.stop_reason);
  object["ttft_seconds"] = nullptr;
  if (result.is_prompt_computed()) object["ttft_seconds"] = result.prefill_seconds;
  object["decode_seconds"] = result.decode_seconds;
  object["prefill_tokens_per_second"] = result.prefill_tokens_per_second();
  object["decode_tokens_per_second"] = result.decode_tokens_per_second();
  object["decode_bytes_per_second"] = decode_bytes_per_second(engine, result);
  return object;
}

OrderedJson left_out_json(const LeftOut& left_out) {
  return {{"begin", left_out.begin}, {"tokens", left_out.count}};
}

uint64_t peak_resident_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

StatsFile::StatsFile(const std::string& path) : path_(path) {
  if (path == "-") {
    descriptor_ = STDOUT_FILENO;
  } else if (!path.empty()) {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    CHECK(descriptor_ >= 0, path, ": ", std::strerror(errno));
  }
}

StatsFile::~StatsFile() {
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

void StatsFile::write(const OrderedJson& object) const {
  if (descriptor_ < 0) return;
  // In ASCII, because control characters beyond it may stand in names of folders.
  const std::string text =
      object.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
  write_all(descriptor_, text + "\n", path_ == "-" ? "standard output" : path_);
}

}  // namespace tessera
