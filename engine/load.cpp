// Building an engine from a model folder, and describing one without its weights.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>

#include "engine/engine_impl.h"
#include "model_loaders/weight_inventory.h"

namespace tessera {

DeviceType chosen_device(const EngineOptions& options) {
  const bool on_cpu = options.device == DeviceChoice::kCpu ||
                      (options.device == DeviceChoice::kAuto && cuda_status().num_devices == 0);
  return on_cpu ? DeviceType::kCpu : DeviceType::kCuda;
}

std::unique_ptr<Backend> make_backend(const EngineOptions& options) {
  if (chosen_device(options) == DeviceType::kCuda) {
    return make_cuda_backend(options.cuda_index, options.compute_dtype, options.attention);
  }
  if (options.device == DeviceChoice::kAuto) {
    const CudaStatus status = cuda_status();
    if (status.built) spdlog::info("{}, using CPU", status.problem);
  }
  return make_cpu_backend(options.num_threads);
}

std::vector<TokenId> collect_stop_tokens(const ModelFolder& folder, const Tokenizer& tokenizer,
                                         const ChatTemplate* chat_template) {
  std::vector<TokenId> tokens;
  const auto add = [&](int64_t id, std::string_view source) {
    CHECK(id >= 0 && id < folder.config.vocab_size, folder.path, "/", source, ": eos_token_id ", id,
          " is outside the vocabulary of ", folder.config.vocab_size);
    tokens.push_back(static_cast<TokenId>(id));
  };
  for (const int64_t id : folder.generation.eos_token_ids) add(id, "generation_config.json");
  for (const int64_t id : folder.config.eos_token_ids) add(id, "config.json");
  if (const auto eos = tokenizer.eos_token()) add(*eos, "tokenizer.model");
  if (chat_template != nullptr) {
    for (const TokenId id : chat_template->stop_tokens(tokenizer)) tokens.push_back(id);
  }
  std::ranges::sort(tokens);
  tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
  return tokens;
}

ChatTemplate choose_chat_template(const EngineOptions& options, const ModelFolder& folder) {
  return options.chat_template.empty() ? ChatTemplate::for_folder(folder)
                                       : ChatTemplate::by_name(options.chat_template);
}

// Two things take long and need nothing of each other: starting the device and reading the folder,
// then reading the weights and warming up. Each pair runs side by side.
Engine::Impl::Impl(const EngineOptions& options, const LoadProgress& progress) {
  LapClock total;
  LapClock phase;
  folder = read_model_folder(options);
  for (const std::string& warning : folder.warnings) spdlog::warn("{}", warning);
  auto device = std::async([&options] { return make_backend(options); });
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  for (const std::string& warning :
       check_weight_inventory(checkpoint, folder.config, options.allow_unknown_weights)) {
    spdlog::warn("{}", warning);
  }
  const auto begin_phase = [&] {
    if (progress) progress(0, checkpoint.total_bytes());
  };
  begin_phase();
  read_text_files(options);
  begin_phase();
  timings.open_seconds = phase.lap();
  backend = device.get();
  spdlog::info("{}", backend->device().description());
  timings.device_seconds = phase.lap();
  allocate(options, checkpoint);
  begin_phase();
  timings.allocate_seconds = phase.lap();

  std::future<void> warm;
  if (backend->device().needs_warm_up()) warm = std::async([this] { warm_up(); });
  timings.file_bytes =
      weights->read(checkpoint, backend->device(), options.check_weights, progress);
  timings.weights_seconds = phase.lap();
  if (warm.valid()) warm.get();
  timings.warm_up_seconds = phase.lap();
  timings.total_seconds = total.lap();
  spdlog::info("load: {}", timings.text());
}

void Engine::Impl::read_text_files(const EngineOptions& options) {
  tokenizer = Tokenizer::load(folder);
  if (!options.chat_template.empty()) {
    chat_template = choose_chat_template(options, folder);
  } else {
    try {
      chat_template = choose_chat_template(options, folder);
    } catch (const Error& problem) {
      chat_template_problem = problem;
    }
  }
  stop_tokens = collect_stop_tokens(folder, *tokenizer, chat_template ? &*chat_template : nullptr);
  if (stop_tokens.empty()) {
    spdlog::warn("no end-of-sequence token is known: answers stop only at --max-tokens");
  }
}

void Engine::Impl::allocate(const EngineOptions& options, const Checkpoint& checkpoint) {
  plan = plan_memory(folder.config, options, backend->operations(),
                     ModelWeights::size_bytes(folder.config, checkpoint, backend->operations()));
  spdlog::info("memory\n{}", plan.table());
  limits = step_limits(folder.config, options, backend->device().type(), plan.context_size);
  spdlog::info("attention: {}", backend->operations().attention_description(limits));
  weights.emplace(folder.config, checkpoint, backend->operations());
  cache.emplace(folder.config, plan.num_pages, plan.page_size, backend->operations());
  activation_buffer = backend->device().allocate(plan.activation_bytes, "the activations");
  Arena arena(activation_buffer);
  activations.emplace(arena, folder.config, limits, plan.page_size, backend->operations());
  scheduler.emplace(SchedulerLimits{.max_tokens = limits.max_tokens,
                                    .max_sequences = limits.max_sequences,
                                    .context_size = plan.context_size},
                    *cache, [this] { return release_oldest_unused_cache(); });
  runs_ahead =
      options.run_ahead == RunAhead::kAlways ||
      (options.run_ahead == RunAhead::kWhereItHelps && backend->device().is_asynchronous());
  transformer.emplace(folder.config, *weights, *cache, *activations, *backend);
  const std::string problem = transformer->use_fused_decoder();
  spdlog::info("decode: {}",
               problem.empty() ? "small steps in one kernel" : "no step in one kernel, " + problem);
}

ModelDescription describe_model(const EngineOptions& options) {
  ModelDescription description;
  description.folder = read_model_folder(options);
  const ModelFolder& folder = description.folder;
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  description.warnings = folder.warnings;
  std::ranges::copy(
      check_weight_inventory(checkpoint, folder.config, options.allow_unknown_weights),
      std::back_inserter(description.warnings));
  for (const auto& [name, entry] : checkpoint.tensors()) {
    description.tensors.push_back(entry);
    description.num_parameters += entry.shape.num_elements();
  }
  description.weights_bytes_on_disk = checkpoint.total_bytes();

  const auto tokenizer = Tokenizer::load(folder);
  description.tokenizer_size = tokenizer->size();
  description.bos_token = tokenizer->bos_token();
  std::optional<ChatTemplate> chat_template;
  try {
    chat_template = choose_chat_template(options, folder);
    description.chat_template = chat_template->name();
  } catch (const Error& problem) {
    description.chat_template_problem = problem.what();
  }
  description.eos_tokens =
      collect_stop_tokens(folder, *tokenizer, chat_template ? &*chat_template : nullptr);

  const auto backend = make_backend(options);
  description.device = backend->device().description();
  try {
    description.memory_plan =
        plan_memory(folder.config, options, backend->operations(),
                    ModelWeights::size_bytes(folder.config, checkpoint, backend->operations()));
  } catch (const Error& problem) {
    description.memory_problem = problem.what();
  }
  return description;
}

}  // namespace tessera
