#include "apps/bench/compare.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/answer/stats.h"
#include "apps/files/text_input.h"
#include "apps/terminal/human_units.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kHint = "--compare needs a file that 'tessera bench --json FILE' wrote";

// Fields of one object of the report; `name` is its place in the document, for messages.
class Fields {
 public:
  Fields(const Json& object, const std::string& path, std::string name)
      : object_(object), path_(path), name_(std::move(name)) {
    if (!object.is_object()) fail(name_.empty() ? "it" : name_, "an object");
  }

  const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(name_ + key, "there");
    return *found;
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(name_ + key, "a text");
    return value.get<std::string>();
  }
  uint64_t count(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number_unsigned()) fail(name_ + key, "a whole number");
    return value.get<uint64_t>();
  }
  double number(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number() || value.get<double>() < 0.0) fail(name_ + key, "a number from 0");
    return value.get<double>();
  }
  Measurement measurement(const char* key) const {
    const Fields fields(at(key), path_, name_ + key + '.');
    const Measurement measurement{fields.number("median"), fields.number("spread")};
    if (measurement.median <= 0.0) fail(name_ + key + ".median", "above 0");
    return measurement;
  }

  [[noreturn]] void fail(const std::string& field, std::string_view expected) const {
    throw Error(concat(path_, ": not a report of tessera bench: ", field, " is not ", expected),
                std::string(kHint));
  }

 private:
  const Json& object_;
  const std::string& path_;
  std::string name_;
};

std::string case_text(const BenchCase& bench_case) {
  return concat("batch ", bench_case.batch_size, ", prompt ", bench_case.prompt_length, ", decode ",
                bench_case.decode_length);
}

bool same_case(const BenchCase& left, const BenchCase& right) {
  return left.batch_size == right.batch_size && left.prompt_length == right.prompt_length &&
         left.decode_length == right.decode_length;
}

// The last part of a path: the same model may lie in another folder or on another machine.
std::string last_part(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

std::string comparison_row(const BenchCase& bench_case, const std::string& what,
                           const Measurement& before, const Measurement& now) {
  const double percent = 100 * (now.median / before.median - 1);
  const Verdict verdict = compare_speeds(before, now);
  return bench_row({std::to_string(bench_case.batch_size), std::to_string(bench_case.prompt_length),
                    std::to_string(bench_case.decode_length), what, measurement_text(before),
                    measurement_text(now), concat(percent < 0 ? "" : "+", fixed(percent, 1), "%"),
                    verdict == Verdict::kFaster   ? "faster"
                    : verdict == Verdict::kSlower ? "slower"
                                                  : "same"});
}

}  // namespace

BenchBaseline read_baseline(const std::string& path, const Console& console) {
  say_how_typing_ends(path, console);
  const Json document = parse_strict_json(read_text(path, InvalidUtf8::kAlwaysRefuse), {path});
  const Fields report(document, path, "");
  BenchBaseline baseline;
  baseline.path = path;
  baseline.model = report.text("model");
  baseline.device = report.text("device");
  baseline.dtype = report.text("dtype");
  baseline.weights_bytes = report.count("weights_bytes");
  CHECK(report.count("repetitions") >= 2, path, ": measured each case ",
        counted(report.count("repetitions"), "time"), "; a spread needs --repetitions 2 or more");
  const Json& results = report.at("results");
  if (!results.is_array() || results.empty()) report.fail("results", "a list of cases");
  for (size_t i = 0; i < results.size(); ++i) {
    const Fields fields(results[i], path, concat("results[", i, "]."));
    BenchResult result;
    result.bench_case = {static_cast<int64_t>(fields.count("batch_size")),
                         static_cast<int64_t>(fields.count("prompt_length")),
                         static_cast<int64_t>(fields.count("decode_length"))};
    result.prefill_tokens_per_second = fields.measurement("prefill_tokens_per_second");
    result.decode_tokens_per_second = fields.measurement("decode_tokens_per_second");
    baseline.results.push_back(result);
  }
  return baseline;
}

void require_comparable(const BenchBaseline& baseline, const Engine& engine,
                        const EngineOptions& options, std::span<const BenchCase> cases) {
  const auto refuse = [&](std::string_view what, const auto& before, const auto& now) {
    throw Error(concat(baseline.path, ": measured ", what, ' ', before, ", this run has ", now));
  };
  const nlohmann::ordered_json now = engine_json(engine, options);
  const std::string model = last_part(engine.folder().path);
  if (last_part(baseline.model) != model) {
    refuse("the model", last_part(baseline.model), model);
  }
  const uint64_t weights_bytes = engine.memory_plan().weights_bytes;
  if (baseline.weights_bytes != weights_bytes) {
    refuse("weights of", counted(baseline.weights_bytes, "byte"), counted(weights_bytes, "byte"));
  }
  if (baseline.device != engine.device_description()) {
    refuse("the device", baseline.device, engine.device_description());
  }
  if (const auto dtype = now["dtype"].get<std::string>(); baseline.dtype != dtype) {
    refuse("the number format", baseline.dtype, dtype);
  }
  for (const BenchCase& bench_case : cases) {
    const bool is_known = std::ranges::any_of(baseline.results, [&](const BenchResult& result) {
      return same_case(result.bench_case, bench_case);
    });
    CHECK(is_known, baseline.path, ": did not measure ", case_text(bench_case), "; its first of ",
          counted(baseline.results.size(), "case"), " is ",
          case_text(baseline.results.front().bench_case));
  }
  for (const BenchResult& result : baseline.results) {
    const bool is_run = std::ranges::any_of(cases, [&](const BenchCase& bench_case) {
      return same_case(result.bench_case, bench_case);
    });
    CHECK(is_run, baseline.path, ": measured ", case_text(result.bench_case),
          ", which this run does not; its first of ", counted(cases.size(), "case"), " is ",
          case_text(cases.front()));
  }
}

std::string comparison_table(const BenchBaseline& baseline, const BenchReport& report) {
  std::string text =
      bench_row({"batch", "prompt", "decode", "tok/s of", "before", "now", "change", "verdict"});
  for (const BenchResult& now : report.results) {
    const auto before = std::ranges::find_if(baseline.results, [&](const BenchResult& result) {
      return same_case(result.bench_case, now.bench_case);
    });
    if (before == baseline.results.end()) continue;
    text += comparison_row(now.bench_case, "prefill", before->prefill_tokens_per_second,
                           now.prefill_tokens_per_second);
    text += comparison_row(now.bench_case, "decode", before->decode_tokens_per_second,
                           now.decode_tokens_per_second);
  }
  return text;
}

Verdict compare_speeds(const Measurement& before, const Measurement& now) {
  const double ratio = now.median / before.median;
  const double change = std::max(ratio, 1.0 / ratio) - 1.0;
  if (change <= std::max(before.spread.value(), now.spread.value())) return Verdict::kSame;
  return ratio > 1.0 ? Verdict::kFaster : Verdict::kSlower;
}

}  // namespace tessera
