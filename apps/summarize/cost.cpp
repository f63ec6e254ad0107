#include "apps/summarize/cost.h"

#include <algorithm>

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

std::string interrupted_line(const Report& report) {
  const auto num_read = std::ranges::count_if(
      report.calls, [](const CallRecord& call) { return call.round == 0 && call.is_complete(); });
  return concat("interrupted: ", num_read, " of ", counted(report.plan.calls.size(), "part"),
                " had been read", num_read > 0 ? "; their summaries are kept as they are" : "");
}

std::string cut_line(const Report& report) {
  const int64_t answer_tokens = report.plan.answer_tokens;
  if (report.calls.size() == 1) {
    return concat("the summary was cut at ",
                  counted(report.calls.front().result.tokens.size(), "token"), "; -n allows more");
  }
  return concat(report.num_cut(), " of ", report.calls.size(), " summaries were cut at ",
                answer_tokens, " tokens; -n allows more");
}

std::string gap_line(const Report& report, const Slice& gap) {
  return concat("left out: tokens ", gap.tokens.begin, " to ", gap.tokens.end, " of ",
                printable(report.documents[gap.document].name), " (",
                counted(gap.tokens.size(), "token"), ", bytes ", gap.bytes.begin, " to ",
                gap.bytes.end, ")");
}

}  // namespace

std::string cost_line(const Report& report) {
  const TokenCounts counts = count_tokens(report);
  return concat(counted(report.calls.size(), "call"), " | prompt ", counts.prompt, " tok",
                counts.cached > 0 ? concat(" (", counts.cached, " cached)") : "", " | gen ",
                counts.generated, " tok | ", fixed(report.seconds, 1), " s");
}

nlohmann::ordered_json cost_json(const Report& report) {
  const TokenCounts counts = count_tokens(report);
  return {{"calls", report.calls.size()},
          {"complete", report.is_complete},
          {"merged", report.is_merged},
          {"cut_answers", report.num_cut()},
          {"prompt_tokens", counts.prompt},
          {"cached_prompt_tokens", counts.cached},
          {"computed_prompt_tokens", counts.computed},
          {"completion_tokens", counts.generated},
          {"seconds", report.seconds}};
}

std::vector<std::string> loss_lines(const Report& report) {
  std::vector<std::string> lines;
  const bool is_in_parts = report.plan.kind == SummaryPlan::Kind::kChunks;
  if (!report.is_complete && is_in_parts) lines.push_back(interrupted_line(report));
  if (!report.is_merged) {
    lines.push_back(concat(counted(report.unmerged_calls().size(), "summary", "summaries"),
                           " became too long to be merged, and follow one after the other"));
  }
  if (report.num_cut() > 0) lines.push_back(cut_line(report));
  if (!report.is_complete) return lines;
  for (const Slice& gap : left_out(report)) lines.push_back(gap_line(report, gap));
  return lines;
}

}  // namespace tessera
