#include "apps/summarize/cost.h"

#include <algorithm>
#include <utility>

#include "apps/answer/stats.h"
#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

struct TokenCounts {
  int64_t prompt = 0;
  int64_t cached = 0;
  int64_t computed = 0;
  int64_t generated = 0;
};

TokenCounts count_tokens(const Report& report) {
  TokenCounts counts;
  for (const CallRecord& call : report.calls) {
    counts.prompt += call.result.prompt_tokens;
    counts.cached += call.result.cached_prompt_tokens;
    counts.computed += call.result.computed_prompt_tokens;
    counts.generated += static_cast<int64_t>(call.result.tokens.size());
  }
  return counts;
}

bool is_unfinished(const Report& report) {
  return report.unmerged_calls().size() > 1 ||
         std::ranges::any_of(report.calls,
                             [](const CallRecord& call) { return !call.is_complete(); });
}

std::string interrupted_line(const Report& report) {
  if (report.calls.size() == 1) {
    return report.summary().empty() ? "interrupted before the summary began"
                                    : "interrupted: the summary breaks off";
  }
  const auto num_read = std::ranges::count_if(
      report.calls, [](const CallRecord& call) { return call.round == 0 && call.is_complete(); });
  return concat("interrupted: ", num_read, " of ", counted(report.plan.calls.size(), "part"),
                " had been read", num_read > 0 ? "; their summaries are kept as they are" : "");
}

// What failed, and why the first of it did.
void add_failures(const Report& report, std::vector<std::string>& lines) {
  int64_t num_unread = 0;
  const CallRecord* unread = nullptr;
  for (const CallRecord& call : report.calls) {
    if (!call.has_failed()) continue;
    if (call.round > 0) {
      lines.push_back("a merge failed: " + call.problem());
    } else if (++num_unread == 1) {
      unread = &call;
    }
  }
  if (unread == nullptr) return;
  lines.push_back(concat(num_unread, " of ", counted(report.plan.calls.size(), "part"),
                         " could not be read: ", unread->problem()));
}

std::string unmerged_line(const Report& report) {
  const bool has_failed = std::ranges::any_of(
      report.calls, [](const CallRecord& call) { return call.round > 0 && call.has_failed(); });
  return concat(counted(report.unmerged_calls().size(), "summary", "summaries"),
                has_failed ? " could not be merged" : " became too long to be merged",
                ", and follow one after the other");
}

std::string cut_line(const Report& report) {
  const int64_t answer_tokens = report.plan.answer_tokens;
  if (report.calls.size() == 1) {
    const GenerationResult& result = report.calls.front().result;
    if (result.stop_reason == StopReason::kMaxTokens) return cut_text(std::ssize(result.tokens));
    return concat("the summary was cut at ", counted(result.tokens.size(), "token"),
                  ", where the context was full",
                  report.plan.longer_context.empty()
                      ? ""
                      : concat("; ", report.plan.longer_context, " allows more"));
  }
  return concat(report.num_cut(), " of ", report.calls.size(), " summaries were cut at ",
                answer_tokens, " tokens; -n allows more");
}

std::string gap_line(const Report& report, const Slice& gap) {
  return concat("left out: tokens ", gap.tokens.text(), " of ",
                printable(report.documents[gap.document].name), " (",
                counted(gap.tokens.size(), "token"), ", bytes ", bytes_in_file(report, gap).text(),
                ")");
}

}  // namespace

std::string cut_text(int64_t num_tokens) {
  return concat("the summary was cut at ", counted(num_tokens, "token"), "; -n allows more");
}

std::string cost_line(const Report& report) {
  const TokenCounts counts = count_tokens(report);
  const int64_t read = counts.cached + counts.computed;
  return concat(counted(report.calls.size(), "call"), " | prompt ",
                read < counts.prompt ? concat(read, " of ") : "", counts.prompt, " tok",
                counts.cached > 0 ? concat(" (", counts.cached, " cached)") : "", " | gen ",
                counts.generated, " tok | ", fixed(report.seconds, 1), " s",
                seed_text(report.params));
}

nlohmann::ordered_json cost_json(const Report& report) {
  const TokenCounts counts = count_tokens(report);
  nlohmann::ordered_json object = {{"seed", report.params.seed},
                                   {"calls", report.calls.size()},
                                   {"complete", report.is_complete()},
                                   {"merged", report.is_merged},
                                   {"failed_calls", report.num_failed()},
                                   {"cut_answers", report.num_cut()},
                                   {"prompt_tokens", counts.prompt},
                                   {"cached_prompt_tokens", counts.cached},
                                   {"computed_prompt_tokens", counts.computed},
                                   {"completion_tokens", counts.generated},
                                   {"seconds", report.seconds}};
  nlohmann::ordered_json gaps = left_out_json(report);
  if (!gaps.empty()) object["left_out"] = std::move(gaps);
  return object;
}

std::vector<std::string> loss_lines(const Report& report) {
  std::vector<std::string> lines;
  if (report.was_interrupted && is_unfinished(report)) lines.push_back(interrupted_line(report));
  add_failures(report, lines);
  if (!report.is_merged) lines.push_back(unmerged_line(report));
  if (report.num_cut() > 0) lines.push_back(cut_line(report));
  if (report.was_interrupted) return lines;
  if (report.summary().empty()) lines.push_back("the model said nothing: there is no summary");
  for (const Slice& gap : left_out(report)) lines.push_back(gap_line(report, gap));
  return lines;
}

}  // namespace tessera
