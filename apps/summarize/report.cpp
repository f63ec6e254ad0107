#include "apps/summarize/report.h"

#include <algorithm>

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson range_json(const Range& range) { return {range.begin, range.end}; }

OrderedJson slice_json(const Report& report, const Slice& slice) {
  return {{"document", report.documents[slice.document].name},
          {"tokens", range_json(slice.tokens)},
          {"bytes", range_json(bytes_in_file(report, slice))}};
}

OrderedJson documents_json(const Report& report) {
  OrderedJson documents = OrderedJson::array();
  for (const MappedDocument& document : report.documents) {
    documents.push_back({{"name", document.name},
                         {"tokens", document.map.num_tokens()},
                         {"bytes", document.offset_bytes + std::ssize(document.text)}});
  }
  return documents;
}

const char* kind_name(SummaryPlan::Kind kind) {
  switch (kind) {
    case SummaryPlan::Kind::kOnePass:
      return "one_pass";
    case SummaryPlan::Kind::kChunks:
      return "chunks";
    case SummaryPlan::Kind::kMiddle:
      return "middle";
  }
  return "unknown";
}

OrderedJson plan_json(const SummaryPlan& plan) {
  return {{"kind", kind_name(plan.kind)},          {"document_tokens", plan.document_tokens},
          {"context_size", plan.context_size},     {"answer_tokens", plan.answer_tokens},
          {"chunks", plan.calls.size()},           {"chunk_tokens", plan.chunk_tokens},
          {"overlap_tokens", plan.overlap_tokens}, {"merge_rounds", plan.merges.rounds},
          {"merge_calls", plan.merges.calls}};
}

// Only calls that have ended have read what they were given.
OrderedJson coverage_json(const Report& report) {
  OrderedJson coverage = OrderedJson::array();
  for (size_t index = 0; index < report.calls.size(); ++index) {
    if (!report.calls[index].is_complete()) continue;
    for (const Slice& slice : report.calls[index].slices) {
      OrderedJson entry = slice_json(report, slice);
      entry["call"] = index;
      coverage.push_back(std::move(entry));
    }
  }
  return coverage;
}

OrderedJson call_json(const CallRecord& call) {
  OrderedJson json = {{"round", call.round}};
  if (call.round > 0) json["merged"] = call.merged;
  json["prompt_tokens"] = call.result.prompt_tokens;
  json["cached_prompt_tokens"] = call.result.cached_prompt_tokens;
  json["completion_tokens"] = call.result.tokens.size();
  json["finish_reason"] = finish_reason(call.result.stop_reason);
  if (call.has_failed()) json["error"] = call.problem();
  json["text"] = call.answer;
  return json;
}

// The slices of a document that complete calls have read, in order.
std::vector<Slice> read_slices(const Report& report, size_t document) {
  std::vector<Slice> slices;
  for (const CallRecord& call : report.calls) {
    if (!call.is_complete()) continue;
    std::ranges::copy_if(call.slices, std::back_inserter(slices),
                         [&](const Slice& slice) { return slice.document == document; });
  }
  std::ranges::sort(slices, {}, [](const Slice& slice) { return slice.tokens.begin; });
  return slices;
}

// The first call that read something of what `call` says.
size_t first_reader(const std::vector<CallRecord>& calls, size_t call) {
  while (!calls[call].merged.empty()) call = calls[call].merged.front();
  return call;
}

}  // namespace

bool CallRecord::has_failed() const {
  return result.stop_reason == StopReason::kNonFiniteLogits || (is_only_thought && !was_stopped());
}

std::string CallRecord::problem() const {
  if (result.stop_reason == StopReason::kNonFiniteLogits) return result.error;
  return concat("the model was still thinking after ", counted(result.tokens.size(), "token"),
                " (-n allows more, --no-think asks for none)");
}

bool CallRecord::is_cut() const {
  return result.stop_reason == StopReason::kMaxTokens ||
         result.stop_reason == StopReason::kContextFull;
}

std::vector<size_t> Report::unmerged_calls() const {
  std::vector<bool> is_open(calls.size());
  for (size_t index = 0; index < calls.size(); ++index) {
    is_open[index] = calls[index].is_complete();
    if (!is_open[index]) continue;
    for (const size_t part : calls[index].merged) is_open[part] = false;
  }
  std::vector<size_t> open;
  for (size_t index = 0; index < calls.size(); ++index) {
    if (is_open[index]) open.push_back(index);
  }
  std::ranges::sort(open, {}, [this](size_t call) { return first_reader(calls, call); });
  return open;
}

std::string Report::summary() const {
  if (calls.size() == 1) return calls.front().answer;
  std::string text;
  for (const size_t index : unmerged_calls()) {
    if (!text.empty()) text += "\n\n";
    text += calls[index].answer;
  }
  return text;
}

int64_t Report::num_cut() const {
  return std::ranges::count_if(calls, [](const CallRecord& call) { return call.is_cut(); });
}

int64_t Report::num_failed() const {
  return std::ranges::count_if(calls, [](const CallRecord& call) { return call.has_failed(); });
}

Range bytes_in_file(const Report& report, const Slice& slice) {
  const int64_t offset = report.documents[slice.document].offset_bytes;
  return {slice.bytes.begin + offset, slice.bytes.end + offset};
}

std::vector<Slice> left_out(const Report& report) {
  std::vector<Slice> gaps;
  for (size_t index = 0; index < report.documents.size(); ++index) {
    const Slice whole = whole_slice(report.documents[index], index);
    Slice gap = {index, {0, 0}, {0, 0}};
    const auto end_gap = [&](int64_t token, int64_t byte) {
      gap.tokens.end = token;
      gap.bytes.end = byte;
      if (gap.bytes.size() > 0) gaps.push_back(gap);
    };
    for (const Slice& slice : read_slices(report, index)) {
      end_gap(slice.tokens.begin, slice.bytes.begin);
      gap.tokens.begin = std::max(gap.tokens.begin, slice.tokens.end);
      gap.bytes.begin = std::max(gap.bytes.begin, slice.bytes.end);
    }
    end_gap(whole.tokens.end, whole.bytes.end);
  }
  return gaps;
}

OrderedJson left_out_json(const Report& report) {
  OrderedJson gaps = OrderedJson::array();
  if (report.was_interrupted) return gaps;
  for (const Slice& gap : left_out(report)) {
    gaps.push_back({{"document", report.documents[gap.document].name},
                    {"begin", gap.tokens.begin},
                    {"tokens", gap.tokens.size()}});
  }
  return gaps;
}

OrderedJson report_json(const Report& report) {
  OrderedJson json = {{"summary", report.summary()},       {"complete", report.is_complete()},
                      {"instruction", report.instruction}, {"documents", documents_json(report)},
                      {"plan", plan_json(report.plan)},    {"seed", report.params.seed},
                      {"coverage", coverage_json(report)}};
  json["left_out"] = OrderedJson::array();
  for (const Slice& gap : left_out(report)) json["left_out"].push_back(slice_json(report, gap));
  json["calls"] = OrderedJson::array();
  for (const CallRecord& call : report.calls) json["calls"].push_back(call_json(call));
  json["seconds"] = report.seconds;
  return json;
}

}  // namespace tessera
