#include "engine/text/tokenizer_json/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "engine/text/tokenizer_json/regex_translation.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {

struct FreePcre {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

namespace {

constexpr size_t kMaxPatternBytes = 64 << 10;
constexpr size_t kJitStackBytes = 32 << 10;
constexpr size_t kMaxJitStackBytes = 8 << 20;

// What a match writes to: one for each thread, since a pattern belongs to all.
struct MatchMemory {
  std::unique_ptr<pcre2_match_data, FreePcre> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_jit_stack, FreePcre> stack{
      pcre2_jit_stack_create(kJitStackBytes, kMaxJitStackBytes, nullptr)};
  std::unique_ptr<pcre2_match_context, FreePcre> context{pcre2_match_context_create(nullptr)};

  MatchMemory() {
    CHECK(data && stack && context, "out of memory for a regular expression");
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

MatchMemory& match_memory() {
  thread_local MatchMemory memory;
  return memory;
}

std::string message_of(int code) {
  PCRE2_UCHAR message[256];
  pcre2_get_error_message(code, message, sizeof(message));
  return reinterpret_cast<const char*>(message);
}

}  // namespace

struct Pattern::Regex {
  std::unique_ptr<pcre2_code, FreePcre> code;
  bool has_machine_code = false;  // where the system lets a process make some
};

Pattern::Pattern(const TokenizerPattern& pattern, const std::string& where)
    : literal_(pattern.text) {
  if (!pattern.is_regex) return;
  CHECK(pattern.text.size() <= kMaxPatternBytes, where, ": the regular expression has ",
        pattern.text.size(), " bytes, more than ", kMaxPatternBytes);
  const std::string translated = translate_regex(pattern.text, where);
  const std::unique_ptr<pcre2_compile_context, FreePcre> context(
      pcre2_compile_context_create(nullptr));
  CHECK(context, "out of memory for a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  regex_ = std::make_unique<Regex>();
  regex_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                   translated.size(), PCRE2_UTF | PCRE2_UCP, &error, &offset,
                                   context.get()));
  CHECK(regex_->code, where, ": the regular expression ", printable(pattern.text),
        " cannot be read: ", message_of(error));
  // PCRE2 10.42's machine code matches "24" of "024" by (?>\d+|\d){2}, which matches nothing.
  const bool has_atomic_group = translated.find("(?>") != std::string::npos;
  regex_->has_machine_code =
      !has_atomic_group && pcre2_jit_compile(regex_->code.get(), PCRE2_JIT_COMPLETE) == 0;
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

std::optional<TextSpan> Pattern::find(std::string_view text, size_t from) const {
  if (regex_) return find_regex(text, from);
  const size_t begin = text.find(literal_, from);
  if (begin == std::string_view::npos) return std::nullopt;
  return TextSpan{begin, begin + literal_.size()};
}

std::optional<TextSpan> Pattern::find_regex(std::string_view text, size_t from) const {
  MatchMemory& memory = match_memory();
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto match = regex_->has_machine_code ? pcre2_jit_match : pcre2_match;
  const int code = match(regex_->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                         memory.data.get(), memory.context.get());
  if (code == PCRE2_ERROR_NOMATCH) return std::nullopt;
  CHECK(code >= 0, "dividing the text into words fails at byte ", from, ": ", message_of(code));
  const size_t* const span = pcre2_get_ovector_pointer(memory.data.get());
  return TextSpan{span[0], span[1]};
}

std::optional<TextSpan> PatternMatches::next() {
  while (from_ <= text_.size()) {
    const auto found = pattern_.find(text_, from_);
    if (!found) break;
    const bool is_empty = found->begin == found->end;
    from_ = found->end;
    if (is_empty) from_ += from_ < text_.size() ? utf8_character_bytes(text_[from_]) : 1;
    // What ends where a match ended and has no characters is no match of its own.
    if (is_empty && last_end_ == found->end) continue;
    last_end_ = found->end;
    return found;
  }
  return std::nullopt;
}

}  // namespace tessera
