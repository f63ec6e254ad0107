// Carrying out a plan: the calls that read the documents, and those that merge what they answer.
#pragma once

#include <string>
#include <vector>

#include "apps/answer/stats.h"
#include "apps/summarize/options.h"
#include "apps/summarize/planning.h"
#include "apps/summarize/prompts.h"
#include "apps/summarize/report.h"
#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

// The sampling that was asked for, with as many tokens as a summary may take where nobody said.
SamplingOptions summary_sampling(const SummarizeOptions& options);

// Ends answers after max_tokens, and asks for no more.
void limit_answers(SamplingParams& params, int64_t max_tokens);

class Summarizer {
 public:
  // All must outlive this.
  Summarizer(Engine& engine, const SummarizeOptions& options, const StatsFile& stats,
             const Console& console);

  // One summary of all documents. Says the plan first; shows the summary while it comes where it is
  // read in one pass and `options` allow it. A signal ends it, stays pending, and leaves what had
  // been answered; Interrupted is thrown only where that is nothing. Throws Error with the numbers
  // where there is no way to read the documents, and when no call could compute its answer.
  Report summarize(std::vector<Document> documents);

  // What the summary does not hold, what it cost, and statistics. For callers who have written the
  // summary: where statistics cannot be written, this throws Error.
  void tell(const Report& report) const;

 private:
  // The one call of a plan without merges.
  void read_at_once(Report& report);
  void read_in_chunks(Report& report);
  // Merges the calls `open`, in their order. Returns which are open then: the same where they are
  // too long to be merged, which the report then says.
  std::vector<size_t> merge_round(Report& report, const std::vector<size_t>& open, int64_t round);
  std::vector<Range> find_groups(Report& report, const std::vector<size_t>& open) const;
  // Computes the prompts of the calls, and adds these to the report with their answers.
  void run(Report& report, std::vector<CallRecord> calls,
           const std::vector<std::vector<TokenId>>& prompts, const std::string& label);
  int64_t text_tokens(const std::string& text) const;

  Engine& engine_;
  const SummarizeOptions& options_;
  const StatsFile& stats_;
  const Console& console_;
  Prompts prompts_;
  SamplingParams wanted_params_;
  SamplingParams params_;  // of the present documents: their plan says how long answers may be
};

}  // namespace tessera
