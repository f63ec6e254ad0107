// Building an engine from a model folder.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>

#include "engine/engine_impl.h"
#include "engine/lap_clock.h"
#include "engine/longer_context.h"
#include "engine/make_backend.h"
#include "engine/model/kernel_config.h"
#include "engine/model/kernel_limits.h"
#include "engine/model/plan_memory.h"
#include "engine/model/sampling_lists.h"
#include "engine/text/stop_tokens.h"
#include "model_loaders/weight_inventory.h"

namespace tessera {

// Two things take long and need nothing of each other: starting the device and reading the folder,
// then reading the weights and warming up. Each pair runs side by side.
Engine::Impl::Impl(const EngineOptions& options, const LoadProgress& progress) {
  LapClock total;
  LapClock phase;
  folder = read_model_folder(options);
  for (const std::string& warning : folder.warnings) spdlog::warn("{}", warning);
  auto device = std::async([&options] { return make_backend(options); });
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  const WeightInventory inventory =
      take_weight_inventory(checkpoint, folder.config, options.allow_unknown_weights);
  for (const std::string& part : inventory.skipped) spdlog::info("skipped: {}", part);
  for (const std::string& warning : inventory.warnings) spdlog::warn("{}", warning);
  const auto begin_phase = [&] {
    if (progress) progress(0, checkpoint.total_bytes());
  };
  begin_phase();
  read_text_files(options);
  begin_phase();
  timings.open_seconds = phase.lap();
  std::unique_ptr<Backend> backend = device.get();
  spdlog::info("{}", backend->device().description());
  timings.device_seconds = phase.lap();
  allocate(options, checkpoint, std::move(backend));
  begin_phase();
  timings.allocate_seconds = phase.lap();

  std::future<void> warm;
  if (runner->backend().device().needs_warm_up()) {
    warm = std::async([this] { runner->warm_up(); });
  }
  timings.file_bytes = runner->read_weights(checkpoint, options.check_weights, progress);
  timings.weights_seconds = phase.lap();
  if (warm.valid()) warm.get();
  runner->choose_kv_scales(checkpoint, [&] {
    if (progress) progress(checkpoint.total_bytes(), checkpoint.total_bytes());
    return false;
  });
  timings.warm_up_seconds = phase.lap();
  timings.total_seconds = total.lap();
  spdlog::info("load: {}", timings.text());
}

void Engine::Impl::read_text_files(const EngineOptions& options) {
  tokenizer = Tokenizer::load(folder);
  try {
    chat_template =
        ChatTemplate::choose(options.chat_template, folder, *tokenizer, options.template_arguments);
  } catch (const Error& problem) {
    // What was asked for must be there; without a template of its own a model still goes on texts.
    if (!options.chat_template.empty() || !options.template_arguments.empty()) throw;
    chat_template_problem = problem;
  }
  stop_tokens = collect_stop_tokens(folder, *tokenizer, chat_template ? &*chat_template : nullptr);
  CHECK(stop_tokens.size() <= kMaxBarredTokens, folder.path, ": ", stop_tokens.size(),
        " tokens end an answer, at most ", kMaxBarredTokens, " are supported");
  if (stop_tokens.empty()) {
    spdlog::warn("no end-of-sequence token is known: answers stop only at --max-tokens");
  }
}

namespace {

// A step's tokens arrive in one download.
static_assert(std::max(kMaxSequencesLimits.high, kDraftedStepTokens) * sizeof(int32_t) <=
              kMaxStartedDownloadBytes);

DraftCosts draft_costs(const EngineOptions& options, bool is_asynchronous, bool in_one_kernel) {
  if (options.prompt_lookup == PromptLookupChoice::kAlways) return {};
  if (in_one_kernel) return kOneKernelDraftCosts;
  return is_asynchronous ? kCudaDraftCosts : kCpuDraftCosts;
}

}  // namespace

void Engine::Impl::allocate(const EngineOptions& options, const Checkpoint& checkpoint,
                            std::unique_ptr<Backend> backend) {
  computed_config = kernel_config(folder.config, wanted_sizes(options), *backend);
  const std::string padding = padding_description(computed_config);
  if (!padding.empty()) spdlog::info("filled up with zeros: {}", padding);
  plan = plan_memory(computed_config, wanted_sizes(options),
                     backend->fused_operations(computed_config.block),
                     ModelWeights::size_bytes(computed_config, checkpoint, backend->operations()));
  longer_context = tessera::longer_context(options, folder, plan.limits.context_size);
  spdlog::info("memory\n{}", plan.table());
  spdlog::info("attention: {}", backend->operations().attention_description(
                                    kernel_limits(plan.limits, computed_config)));
  const bool is_asynchronous = backend->device().is_asynchronous();
  const bool runs_ahead = options.run_ahead == RunAhead::kAlways ||
                          (options.run_ahead == RunAhead::kWhereItHelps && is_asynchronous);
  runner.emplace(computed_config, checkpoint, plan, tokenizer->size(), std::move(backend));
  const std::string& problem = runner->fused_decoder_problem();
  spdlog::info("decode: {}",
               problem.empty() ? "small steps in one kernel" : "no step in one kernel, " + problem);
  pages.emplace(plan.num_pages, plan.page_size);
  loop.emplace(*runner, *pages, *tokenizer,
               LoopOptions{.limits = plan.limits,
                           .stop_tokens = stop_tokens,
                           .runs_ahead = runs_ahead,
                           .prefix_cache = options.prefix_cache,
                           .draft_costs = draft_costs(options, is_asynchronous,
                                                      runner->drafts_in_one_kernel())});
}

}  // namespace tessera
