#include "apps/answer/stats.h"

#include <sys/resource.h>

#include "apps/answer/load_report.h"
#include "apps/options/sampling_json.h"
#include "apps/terminal/human_units.h"

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

// "1234 tok 812.3 tok/s", or with what had been there: "3881 tok (3840 cached, 41 computed at
// ...)".
std::string prompt_text(const GenerationResult& result) {
  const std::string rate = rate_text(result.prefill_tokens_per_second());
  const std::string tokens = concat(result.prompt_tokens, " tok");
  if (result.cached_prompt_tokens == 0) return tokens + rate;
  return concat(tokens, " (", result.cached_prompt_tokens, " cached, ",
                result.computed_prompt_tokens, " computed", rate.empty() ? "" : " at", rate, ')');
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
  std::string line = concat(
      "prompt ", result.is_prompt_computed() ? "" : concat(held, " of "), prompt_text(result),
      " | gen ", generated, " tok", rate_text(result.decode_tokens_per_second()),
      read_rate > 0.0 ? concat(' ', fixed(read_rate / 1e9, 1), " GB/s") : "", " | ttft ",
      result.is_prompt_computed() ? concat(fixed(result.prefill_seconds, 2), " s") : "-", " | kv ",
      held + generated, '/', engine.context_size());
  if (result.drafted_tokens > 0) {
    line += concat(" | drafts ", result.accepted_tokens, " of ", result.drafted_tokens);
  }
  return line + seed_text(params);
}

std::string seed_text(const SamplingParams& params) {
  return params.temperature != 0.0 ? concat(" | seed ", params.seed) : "";
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
  OrderedJson list = OrderedJson::array();
  for (const Range& range : left_out.ranges) {
    list.push_back({{"begin", range.begin}, {"tokens", range.size()}});
  }
  return list;
}

uint64_t peak_resident_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

StatsFile::StatsFile(const std::string& path)
    : file_(path.empty() ? nullptr : std::make_unique<LateReplacement>(path)) {}

void StatsFile::write(const OrderedJson& object) const {
  if (!file_) return;
  // In ASCII, because control characters beyond it may stand in names of folders.
  file_->write(object.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace) +
               "\n");
}

}  // namespace tessera
