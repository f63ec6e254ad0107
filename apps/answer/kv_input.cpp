#include "apps/answer/kv_input.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "apps/answer/answer.h"
#include "apps/terminal/human_units.h"
#include "apps/terminal/progress_bar.h"
#include "engine/lap_clock.h"
#include "engine/model_fingerprint.h"

namespace tessera {
namespace {

constexpr size_t kShownDigits = 12;

void require_own_model(const KvFile& file, const EngineOptions& options) {
  const std::string& theirs = file.header().model_fingerprint;
  const std::string own = model_fingerprint(options);
  if (theirs == own) return;
  throw Error(concat(file.path(), ": was computed by another model (sha256 ",
                     theirs.substr(0, kShownDigits), "..., ", options.model, " has ",
                     own.substr(0, kShownDigits), "...)"),
              "tessera prefill writes one for this model");
}

}  // namespace

KvInput open_kv(const std::string& path, const EngineOptions& options) {
  KvFile file = KvFile::open(path);
  require_own_model(file, options);
  Conversation opening = Conversation::parse(file.text(), path);
  return {std::move(file), std::move(opening)};
}

std::optional<KvInput> open_kv_option(const std::string& path, const EngineOptions& options) {
  if (path.empty()) return std::nullopt;
  KvInput input = open_kv(path, options);
  if (!input.opening.ends_with_question()) return input;
  throw Error(path + ": its conversation ends with a question, and another cannot follow",
              "tessera chat answers it: /load it, then /regen and /save");
}

void load_kv(Engine& engine, const KvFile& file, const Console& console) {
  ProgressBar bar(console, "reading keys and values");
  LapClock clock;
  engine.load_kv(file, interruptible(bar));
  const double seconds = clock.lap();
  const KvFileHeader& header = file.header();
  spdlog::info("{}: {} tokens, {} in {:.3f} s", file.path(), header.num_tokens(),
               human_bytes(header.file_bytes()), seconds);
}

void compare_with_kv(std::span<const TokenId> prompt, const KvFile& file, const Engine& engine,
                     const Console& console) {
  const auto differs = std::ranges::mismatch(file.tokens(), prompt).in1;
  if (differs == file.tokens().end()) return;
  const int64_t page_size = engine.memory_plan().page_size;
  const int64_t shared = (differs - file.tokens().begin()) / page_size * page_size;
  console.say(concat(file.path(), ": the prompt begins with ", shared, " of its ",
                     counted(file.tokens().size(), "token"), ", and is computed from there on"));
}

}  // namespace tessera
