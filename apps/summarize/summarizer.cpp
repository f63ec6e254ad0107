#include "apps/summarize/summarizer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "apps/answer/answer.h"
#include "apps/process/signals.h"
#include "apps/summarize/calls.h"
#include "apps/summarize/cost.h"
#include "apps/summarize/merges.h"
#include "apps/summarize/plan_line.h"

namespace tessera {
namespace {

// A limit in words needs room for them: about one and a half tokens each, and punctuation.
constexpr int64_t kTokensOfWord = 2;

// With an empty line between any two; some may have said nothing.
std::string joined_answers(const Report& report, const std::vector<size_t>& calls) {
  std::string text;
  for (const size_t call : calls) {
    const std::string& answer = report.calls[call].answer;
    if (!text.empty() && !answer.empty()) text += "\n\n";
    text += answer;
  }
  return text;
}

// Where none has an answer there is no summary.
void require_an_answer(const Report& report) {
  const auto failed =
      std::ranges::find_if(report.calls, [](const CallRecord& call) { return call.has_failed(); });
  const bool has_answer =
      std::ranges::any_of(report.calls, [](const CallRecord& call) { return call.is_complete(); });
  if (failed != report.calls.end() && !has_answer) throw Error(failed->problem());
}

}  // namespace

SamplingOptions summary_sampling(const SummarizeOptions& options) {
  SamplingOptions wanted = options.sampling;
  const int64_t words_tokens = options.instruction.words * kTokensOfWord;
  if (!wanted.max_tokens) wanted.max_tokens = std::max(kUsualAnswerTokens, words_tokens);
  return wanted;
}

void limit_answers(SamplingParams& params, int64_t max_tokens) {
  params.max_tokens = max_tokens;
  params.min_tokens = std::min(params.min_tokens, max_tokens);
}

Summarizer::Summarizer(Engine& engine, const SummarizeOptions& options, const StatsFile& stats,
                       const Console& console)
    : engine_(engine),
      options_(options),
      stats_(stats),
      console_(console),
      prompts_(engine, options, console),
      wanted_params_(resolve_sampling(summary_sampling(options), engine.default_sampling())),
      params_(wanted_params_) {}

Report Summarizer::summarize(std::vector<Document> documents) {
  Report report;
  report.documents = map_documents(engine_, prompts_, std::move(documents), console_);
  report.instruction = options_.instruction.text();
  report.plan = plan_summary(engine_, prompts_, options_, wanted_params_, report.documents);
  report.params = params_ = wanted_params_;
  console_.say(plan_line(engine_, options_.engine, report.documents, report.plan));
  const auto start = std::chrono::steady_clock::now();
  try {
    if (report.plan.kind == SummaryPlan::Kind::kChunks) {
      read_in_chunks(report);
    } else {
      read_at_once(report);
    }
  } catch (const Interrupted&) {  // while a prompt was made; parts may have been read before
    if (report.calls.empty()) throw;
  }
  require_an_answer(report);
  report.was_interrupted = is_interrupted();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

void Summarizer::read_at_once(Report& report) {
  const std::vector<Slice>& slices = report.plan.calls.front();
  const std::vector<TokenId> prompt = prompts_.encode(joined_text(report.documents, slices));
  if (!options_.streams()) return run(report, {{.slices = slices}}, {prompt}, "reading");
  const SequencePtr sequence = engine_.create_sequence();
  Answer answer = stream_answer(engine_, *sequence, prompt, params_,
                                {.shows_thinking = options_.thinking.is_shown}, console_);
  const bool is_only_thought = answer.text.answer.empty() && !answer.text.thinking.empty();
  report.calls.push_back({.slices = slices,
                          .result = std::move(answer.result),
                          .answer = std::move(answer.text.answer),
                          .is_only_thought = is_only_thought});
}

void Summarizer::read_in_chunks(Report& report) {
  limit_answers(params_, report.plan.answer_tokens);
  std::vector<CallRecord> calls;
  std::vector<std::vector<TokenId>> prompts;
  for (const std::vector<Slice>& slices : report.plan.calls) {
    prompts.push_back(prompts_.encode(joined_text(report.documents, slices)));
    calls.push_back({.slices = slices});
  }
  run(report, std::move(calls), prompts, "reading");
  std::vector<size_t> open = report.unmerged_calls();
  for (int64_t round = 1; open.size() > 1 && report.is_merged && !is_interrupted(); ++round) {
    open = merge_round(report, open, round);
  }
}

std::vector<Range> Summarizer::find_groups(Report& report, const std::vector<size_t>& open) const {
  std::vector<int64_t> tokens;
  for (const size_t call : open) {
    tokens.push_back(text_tokens(report.calls[call].answer) + kJoinTokens);
  }
  std::vector<Range> groups = merge_groups(tokens, report.plan.room_tokens);
  report.is_merged = groups_fit(groups, tokens, report.plan.room_tokens);
  return groups;
}

std::vector<size_t> Summarizer::merge_round(Report& report, const std::vector<size_t>& open,
                                            int64_t round) {
  const std::vector<Range> groups = find_groups(report, open);
  if (!report.is_merged) return open;
  std::vector<CallRecord> merges;
  std::vector<std::vector<TokenId>> prompts;
  std::vector<size_t> next;
  for (const Range& group : groups) {
    const std::vector<size_t> members(open.begin() + group.begin, open.begin() + group.end);
    const bool is_alone = members.size() == 1;
    next.push_back(is_alone ? members.front() : report.calls.size() + merges.size());
    if (is_alone) continue;
    prompts.push_back(prompts_.encode(joined_answers(report, members)));
    merges.push_back({.round = round, .merged = members});
  }
  run(report, std::move(merges), prompts, "merging");
  const auto first_of_round = report.calls.end() - static_cast<std::ptrdiff_t>(prompts.size());
  report.is_merged = std::none_of(first_of_round, report.calls.end(),
                                  [](const CallRecord& call) { return call.has_failed(); });
  return next;
}

void Summarizer::run(Report& report, std::vector<CallRecord> calls,
                     const std::vector<std::vector<TokenId>>& prompts, const std::string& label) {
  std::vector<GenerationResult> results = run_calls(engine_, prompts, params_, label, console_);
  for (size_t index = 0; index < calls.size(); ++index) {
    CallRecord& call = calls[index];
    call.result = std::move(results[index]);
    ThoughtAndAnswer text =
        split_thinking(call.result.text, thinking_start(engine_.tokenizer(), prompts[index]));
    call.answer = std::move(text.answer);
    call.is_only_thought = call.answer.empty() && !text.thinking.empty();
    report.calls.push_back(std::move(call));
  }
}

int64_t Summarizer::text_tokens(const std::string& text) const {
  return static_cast<int64_t>(engine_.tokenizer().encode(text, /*at_start=*/false).size());
}

void Summarizer::tell(const Report& report) const {
  for (const std::string& line : loss_lines(report)) console_.say(line);
  const GenerationResult& first = report.calls.front().result;
  if (report.calls.size() == 1) {
    return tell_answer_cost(engine_, options_.engine, first, params_, left_out_json(report), stats_,
                            console_);
  }
  console_.say_dim(cost_line(report));
  nlohmann::ordered_json object = engine_json(engine_, options_.engine);
  object.update(cost_json(report));
  stats_.write(object);
}

}  // namespace tessera
