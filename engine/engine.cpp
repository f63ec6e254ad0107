#include "engine/engine.h"

#include "engine/engine_impl.h"

namespace tessera {

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

std::unique_ptr<Engine> Engine::load(const EngineOptions& options, const LoadProgress& progress) {
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(options, progress)));
}

const ModelFolder& Engine::folder() const { return impl_->folder; }
const Tokenizer& Engine::tokenizer() const { return *impl_->tokenizer; }
const MemoryPlan& Engine::memory_plan() const { return impl_->plan; }
const LoadTimings& Engine::load_timings() const { return impl_->timings; }
std::string Engine::device_description() const {
  return impl_->runner->backend().device().description();
}
DeviceType Engine::device() const { return impl_->runner->backend().device().type(); }
int64_t Engine::context_size() const { return impl_->plan.limits.context_size; }
const std::vector<TokenId>& Engine::stop_tokens() const { return impl_->stop_tokens; }

const ChatTemplate& Engine::chat_template() const {
  if (!impl_->chat_template) throw Error(impl_->chat_template_problem);
  return *impl_->chat_template;
}

SamplingParams Engine::default_sampling() const {
  return tessera::default_sampling(impl_->folder.generation);
}

TextLimit Engine::text_limit() const { return impl_->text_limit(); }

std::vector<TokenId> Engine::encode_text(std::string_view text,
                                         const EncodeProgress& progress) const {
  text_limit().check("the prompt", text.size());
  return impl_->tokenizer->encode_prompt(text, progress);
}

std::vector<TokenId> Engine::encode_chat(std::span<const Message> messages,
                                         const ChatInputs& inputs,
                                         const EncodeProgress& progress) const {
  text_limit().check("the conversation", content_bytes(messages));
  // What was short may have become long: tools, arguments, the template's own text.
  const std::vector<Segment> segments = chat_template().render(messages, inputs, progress);
  uint64_t bytes = 0;
  for (const Segment& segment : segments) {
    if (segment.kind == Segment::Kind::kText) bytes += segment.content.size();
  }
  text_limit().check("the conversation", bytes);
  return encode_segments(*impl_->tokenizer, segments, progress);
}

ContextDemand Engine::context_demand(std::span<const TokenId> prompt,
                                     const SamplingParams& params) const {
  return {.prompt_tokens = static_cast<int64_t>(prompt.size()),
          .answer_tokens = reserved_tokens(params),
          .context_size = context_size()};
}

SequencePtr Engine::create_sequence() {
  return {&impl_->loop->create_sequence(), SequenceDeleter{&*impl_->loop}};
}

void SequenceDeleter::operator()(Sequence* sequence) const { loop->destroy(*sequence); }

GenerationResult Engine::generate(Sequence& sequence, std::span<const TokenId> prompt,
                                  const SamplingParams& params,
                                  const GenerationCallbacks& callbacks) {
  submit(sequence, prompt, params, callbacks);
  try {
    while (!is_finished(sequence)) step();
  } catch (...) {
    impl_->loop->abandon(sequence);  // whose callbacks may not outlive this call
    throw;
  }
  return result(sequence);
}

void Engine::submit(Sequence& sequence, std::span<const TokenId> prompt,
                    const SamplingParams& params, const GenerationCallbacks& callbacks) {
  impl_->submit(sequence, prompt, params, callbacks);
}

bool Engine::step() { return impl_->loop->step(); }

void Engine::cancel(const Sequence& sequence) { impl_->loop->cancel(sequence); }

ServingStatistics Engine::statistics() const { return impl_->loop->statistics(); }

bool Engine::is_finished(const Sequence& sequence) const {
  const Generation* const generation = impl_->loop->generation(sequence);
  return generation != nullptr && generation->is_finished();
}

const GenerationResult& Engine::result(const Sequence& sequence) const {
  static const GenerationResult kNone;
  const Generation* const generation = impl_->loop->generation(sequence);
  return generation != nullptr ? generation->result() : kNone;
}

void Engine::load_kv(const KvFile& file, const LoadProgress& progress) {
  impl_->load_kv(file, progress);
}

int64_t Engine::save_kv(std::span<const TokenId> prompt, const KvFileOrigin& origin,
                        const ByteSink& write, const LoadProgress& progress) const {
  return impl_->save_kv(prompt, origin, write, progress);
}

std::vector<float> Engine::prompt_logits(std::span<const TokenId> prompt,
                                         const StopQuestion& should_stop) {
  return impl_->prompt_logits(prompt, should_stop);
}

uint64_t Engine::weight_bytes_per_token() const { return impl_->runner->weight_bytes_per_token(); }

uint64_t Engine::allocated_bytes() const { return impl_->runner->allocated_bytes(); }

}  // namespace tessera
