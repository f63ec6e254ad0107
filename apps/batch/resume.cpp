#include "apps/batch/resume.h"

#include "apps/batch/settings.h"
#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

// An answer without a request_id tells nothing.
bool is_changed(const BatchItem& item, const BatchAnswers& answers) {
  const auto answer = answers.requests.find(item.id);
  return answer != answers.requests.end() && answer->second != 0 &&
         answer->second != item.request_digest;
}

}  // namespace

void require_same_requests(BatchInput& input, const Shard& shard, const BatchOutput& output,
                           const Console& console) {
  const BatchAnswers& answers = output.answers();
  size_t num_answered = 0;
  for (const BatchItem& item : input.items()) {
    if (is_changed(item, answers)) {
      throw UsageError(concat(input.name(), ':', item.line_number, ": request \"",
                              custom_id_of(input.read(item)), "\" is not the one that ",
                              output.name(), " answers"),
                       kResumeHint);
    }
    num_answered += answers.contains(item.id) ? 1 : 0;
  }
  const size_t num_others = answers.requests.size() - num_answered;
  if (num_others == 0) return;
  const std::string part = shard.is_whole() ? "" : concat("shard ", shard.text(), " of ");
  console.say(concat(output.name(), " also holds ", counted(num_others, "answer"),
                     " to requests that are not in ", part, input.name()));
}

void read_manifest(BatchManifest& manifest, bool force) {
  try {
    manifest.read();
  } catch (const UsageError&) {
    if (!force) throw;
  }
}

nlohmann::json settle_settings(BatchOptions& options, const Conversation& opening,
                               const BatchOutput& output, BatchManifest& manifest) {
  const bool is_begun = !output.answers().requests.empty();
  if (is_begun) {
    read_manifest(manifest, options.force);
  } else if (output.is_file()) {
    manifest.require_replaceable();
  }
  if (!options.sampling.seed) options.sampling.seed = manifest.seed().value_or(random_seed());
  nlohmann::json settings = batch_settings(options, opening);
  if (is_begun && !options.force) manifest.require_same(settings);
  return settings;
}

}  // namespace tessera
