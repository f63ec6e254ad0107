#include "apps/summarize/plan.h"

#include <algorithm>

#include "apps/options/sampling_options.h"
#include "apps/summarize/chunks.h"
#include "engine/engine.h"

namespace tessera {
namespace {

// Longer chunks are read no faster, as attention grows with their length, and models find less in
// them.
constexpr int64_t kUsualChunkTokens = 8192;
constexpr int64_t kUsualOverlapTokens = 64;
// Shorter ones are not worth a call.
constexpr int64_t kLeastChunkTokens = 64;
// A text by itself may have some more tokens than it has within the document: its first word, what
// the template puts beside it.
constexpr int64_t kSeamTokens = 16;
constexpr int64_t kLeastAnswerTokens = 16;
// Of what the instruction leaves, where nobody asked for more.
constexpr int64_t kAnswerPart = 4;

int64_t count_tokens(std::span<const MappedDocument> documents) {
  int64_t tokens = 0;
  for (const MappedDocument& document : documents) tokens += document.map.num_tokens();
  return tokens;
}

int64_t header_tokens(std::span<const MappedDocument> documents) {
  int64_t tokens = 0;
  for (const MappedDocument& document : documents) tokens += document.header_tokens;
  return tokens;
}

std::vector<Slice> whole_slices(std::span<const MappedDocument> documents) {
  std::vector<Slice> slices;
  for (const MappedDocument& document : documents) {
    slices.push_back(whole_slice(document, slices.size()));
  }
  return slices;
}

// What all plans have in common.
SummaryPlan plan_head(std::span<const MappedDocument> documents, const PlanRequest& request) {
  const int64_t frame = request.frame_tokens + kSeamTokens;
  return {.document_tokens = count_tokens(documents),
          .context_size = request.context_size,
          .answer_tokens = request.answer_tokens,
          .frame_tokens = frame,
          .room_tokens = request.context_size - frame - request.answer_tokens,
          .was_asked_to_chunk = request.chunk};
}

bool fits(const PlanRequest& request) {
  return request.whole_prompt_tokens > 0 &&
         request.whole_prompt_tokens + request.answer_tokens <= request.context_size;
}

// A document is never cut silently: it fits or the person is told what would.
void refuse(const SummaryPlan& plan, const PlanRequest& request,
            std::span<const MappedDocument> documents) {
  const int64_t prompt = request.whole_prompt_tokens > 0
                             ? request.whole_prompt_tokens
                             : plan.document_tokens + plan.frame_tokens + header_tokens(documents);
  const int64_t needed = prompt + request.answer_tokens;
  throw Error(
      concat("the document does not fit: ", counted(prompt, "token"), " + ", request.answer_tokens,
             " reserved for the summary = ", needed, ", the context holds ", request.context_size),
      needed <= request.model_context_size
          ? concat("-c ", needed, " would hold it, if memory allows")
          : concat("this model holds at most ", counted(request.model_context_size, "token"),
                   "; --on-overflow chunk reads it in parts, a model with a longer context "
                   "at once"));
}

void require_room(const SummaryPlan& plan, int64_t needed, const char* what) {
  if (plan.room_tokens >= needed) return;
  throw Error(
      concat("no room for ", what, ": of a context of ", counted(plan.context_size, "token"), ", ",
             plan.frame_tokens, " for the instruction and ", plan.answer_tokens,
             " reserved for the summary leave ", std::max<int64_t>(plan.room_tokens, 0), ", ",
             needed, " are needed"),
      "ask for a shorter summary (-n), or take a longer context (-c)");
}

SummaryPlan plan_one_pass(SummaryPlan plan, std::span<const MappedDocument> documents) {
  plan.calls = {whole_slices(documents)};
  return plan;
}

SummaryPlan plan_without_middle(SummaryPlan plan, std::span<const MappedDocument> documents) {
  plan.kind = SummaryPlan::Kind::kMiddle;
  plan.room_tokens -= header_tokens(documents) + kSeamTokens;  // the mark of the gap
  require_room(plan, kLeastChunkTokens, "the beginning and the end of the document");
  plan.calls = {plan_middle(documents, plan.room_tokens)};
  return plan;
}

void plan_answers(SummaryPlan& plan, const PlanRequest& request) {
  if (request.has_answer_wish) return;
  const int64_t available = request.context_size - plan.frame_tokens;
  const int64_t wanted = std::max(request.answer_tokens, kUsualAnswerTokens);
  plan.answer_tokens = std::min(wanted, std::max(available / kAnswerPart, kLeastAnswerTokens));
  plan.room_tokens = available - plan.answer_tokens;
}

SummaryPlan plan_in_chunks(SummaryPlan plan, std::span<const MappedDocument> documents,
                           const PlanRequest& request) {
  plan.kind = SummaryPlan::Kind::kChunks;
  plan_answers(plan, request);
  const int64_t wanted = request.chunk_tokens > 0 ? request.chunk_tokens : kUsualChunkTokens;
  for (size_t index = 0; index < documents.size(); ++index) {
    const int64_t room = plan.room_tokens - documents[index].header_tokens;
    require_room(plan, kLeastChunkTokens + documents[index].header_tokens,
                 "a part of the document");
    ChunkLimits limits = {.max_tokens = std::min(wanted, room)};
    limits.overlap_tokens = std::min(request.overlap.value_or(kUsualOverlapTokens),
                                     limits.max_tokens / (request.overlap ? 4 : 16));
    plan.overlap_tokens = std::max(plan.overlap_tokens, limits.overlap_tokens);
    for (const Slice& chunk : plan_chunks(documents[index], index, limits)) {
      plan.chunk_tokens = std::max(plan.chunk_tokens, chunk.tokens.size());
      plan.calls.push_back({chunk});
    }
  }
  if (plan.calls.size() == 1) return plan;
  const int64_t text_tokens = plan.answer_tokens + kJoinTokens;
  require_room(plan, 2 * text_tokens, "two summaries to merge");
  plan.merges =
      count_merges(static_cast<int64_t>(plan.calls.size()), text_tokens, plan.room_tokens);
  return plan;
}

}  // namespace

int64_t SummaryPlan::prompt_tokens() const {
  int64_t tokens = num_calls() * frame_tokens;
  for (const std::vector<Slice>& slices : calls) {
    for (const Slice& slice : slices) tokens += slice.tokens.size();
  }
  return tokens + (merges.calls > 0 ? static_cast<int64_t>(calls.size()) * answer_tokens : 0);
}

SummaryPlan make_plan(std::span<const MappedDocument> documents, const PlanRequest& request) {
  SummaryPlan plan = plan_head(documents, request);
  if (request.chunk) return plan_in_chunks(std::move(plan), documents, request);
  if (fits(request)) return plan_one_pass(std::move(plan), documents);
  if (request.on_overflow == OnOverflow::kError) refuse(plan, request, documents);
  if (request.on_overflow == OnOverflow::kMiddle) {
    return plan_without_middle(std::move(plan), documents);
  }
  return plan_in_chunks(std::move(plan), documents, request);
}

}  // namespace tessera
