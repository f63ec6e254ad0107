#include "engine/model/recorded_steps.h"

#include <algorithm>
#include <utility>

namespace tessera {

RecordedSteps::Form RecordedSteps::form_of(const ForwardBatch& batch) {
  Form form = {.token_ids = batch.token_ids,
               .positions = batch.positions,
               .kv_slots = batch.kv_slots,
               .sampled_rows = batch.sampled_rows,
               .attention = batch.attention};
  // These grow with every token. Operations take them for checks and for prompts alone.
  form.attention.max_context_length = 0;
  form.attention.num_decode_keys = 0;
  return form;
}

RecordedSteps::Step& RecordedSteps::find(const Form& form) {
  const auto found = std::ranges::find(steps_, form, &Step::form);
  if (found != steps_.end()) {
    std::rotate(steps_.begin(), found, found + 1);
    return steps_.front();
  }
  if (steps_.size() == kMaxSteps) steps_.pop_back();
  return steps_.emplace_front(Step{.form = form, .recording = nullptr});
}

void RecordedSteps::run(const ForwardBatch& batch, const std::function<void()>& launch) {
  const bool has_decodes_alone = batch.attention.num_decodes == batch.attention.num_sequences;
  if (!has_decodes_alone || batch.sampled_rows.dim(0) != batch.token_ids.dim(0)) return launch();
  Step& step = find(form_of(batch));
  if (++step.num_runs == kRecordedRun) step.recording = device_.record(launch);
  if (step.recording == nullptr) return launch();
  step.recording->launch();
}

}  // namespace tessera
