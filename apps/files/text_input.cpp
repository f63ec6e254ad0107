#include "apps/files/text_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "apps/files/foreign_text.h"
#include "apps/process/signals.h"
#include "apps/terminal/progress_bar.h"
#include "apps/terminal/terminal.h"
#include "engine/engine.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
// Reading the limit of a model takes longer than tokenising so much.
constexpr uint64_t kShortTextBytes = 64 << 10;
constexpr size_t kMaxCharacterBytes = 4;  // of UTF-8
constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

// A descriptor to read from, closed unless it is standard input.
class InputFile {
 public:
  // Opening a named pipe does not wait for somebody to write to it.
  explicit InputFile(const std::string& path)
      : name_(input_name(path)),
        descriptor_(path == "-" ? STDIN_FILENO
                                : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    CHECK(descriptor_ >= 0, name_, ": ", std::strerror(errno));
    struct stat status = {};
    if (fstat(descriptor_, &status) != 0) return;
    if (S_ISDIR(status.st_mode)) {
      close_own();
      throw Error(name_ + ": is a directory, expected a text file");
    }
    if (S_ISREG(status.st_mode)) size_bytes_ = static_cast<uint64_t>(status.st_size);
  }
  ~InputFile() { close_own(); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }
  uint64_t size_bytes() const { return size_bytes_; }  // 0 where only reading will tell
  bool is_typed() const { return is_terminal(descriptor_); }

  // What the file begins with; "" where only reading would tell.
  std::string beginning() const {
    std::string block(kTellingBytes, '\0');
    const ssize_t count = size_bytes_ == 0 ? 0 : pread(descriptor_, block.data(), block.size(), 0);
    block.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return block;
  }

  // on_read(bytes read so far) may throw.
  std::string read_all(const std::function<void(uint64_t)>& on_read) const {
    check_size(size_bytes_);
    std::string text;
    std::array<char, 65536> block;
    for (;;) {
      wait_for_input(descriptor_);
      const ssize_t count = read(descriptor_, block.data(), block.size());
      if (count == 0) return text;
      if (count < 0) {
        CHECK(errno == EINTR || errno == EAGAIN, name_, ": ", std::strerror(errno));
        continue;
      }
      text.append(block.data(), static_cast<size_t>(count));
      check_size(text.size());
      on_read(text.size());
    }
  }

 private:
  void check_size(uint64_t bytes) const {
    CHECK(bytes <= kMaxTextBytes, name_, ": larger than ", kMaxTextBytes, " bytes");
  }
  void close_own() {
    if (descriptor_ > STDERR_FILENO) close(descriptor_);
  }

  std::string name_;
  int descriptor_;
  uint64_t size_bytes_ = 0;
};

void refuse_binary(bool is_binary, const std::string& name) {
  CHECK(!is_binary, name, ": looks like a binary file, expected UTF-8 text");
}

// Throws Error when a file that begins so is no text.
void refuse_no_text(const std::string& begin, const std::string& name) {
  refuse_foreign_text(begin, name);
  const std::optional<size_t> invalid = find_invalid_utf8(begin, throw_if_interrupted);
  const bool is_inside = invalid && *invalid + kMaxCharacterBytes <= begin.size();
  refuse_binary(is_inside && begin.find('\0') != std::string::npos, name);
}

// The text of all that was read from `file`.
std::string as_text(std::string text, const InputFile& file, InvalidUtf8 policy) {
  if (policy != InvalidUtf8::kReplace) {
    refuse_foreign_text(std::string_view(text).substr(0, kTellingBytes), file.name());
  }
  text.erase(0, byte_order_mark_size(text));
  if (text.ends_with('\n')) text.pop_back();
  if (policy != InvalidUtf8::kReplace && text.find('\0') != std::string::npos) {
    refuse_binary(find_invalid_utf8(text, throw_if_interrupted).has_value(), file.name());
  }
  return checked_utf8(std::move(text), file.name(), policy);
}

// Compares a growing text with the limit.
class LengthCheck {
 public:
  explicit LengthCheck(const std::function<TextLimit()>& find_limit) : find_limit_(find_limit) {}

  void check(const std::string& name, uint64_t bytes) {
    if (bytes <= kShortTextBytes) return;
    if (!limit_) limit_ = find_limit_();
    limit_->check(name, bytes);
  }

 private:
  const std::function<TextLimit()>& find_limit_;
  std::optional<TextLimit> limit_;
};

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

void say_how_typing_ends(const std::string& path, const Console& console) {
  if (path == "-" && is_terminal(STDIN_FILENO)) {
    console.say("reading from the terminal; end with Ctrl-D");
  }
}

std::string read_text(const std::string& path, InvalidUtf8 policy) {
  const InputFile file(path);
  return as_text(file.read_all([](uint64_t) {}), file, policy);
}

FileText read_prompt_text(const std::string& path, InvalidUtf8 policy,
                          const std::function<TextLimit()>& find_limit, const Console& console) {
  say_how_typing_ends(path, console);
  const InputFile file(path);
  // First: a binary file is not too long but no text.
  if (policy != InvalidUtf8::kReplace) refuse_no_text(file.beginning(), file.name());
  LengthCheck length(find_limit);
  length.check(file.name(), file.size_bytes());
  ProgressBar bar(console, "reading " + escape_control_characters(file.name()));
  const auto on_read = [&](uint64_t bytes) {
    length.check(file.name(), bytes);
    if (!file.is_typed()) bar.update_bytes(bytes, file.size_bytes());
  };
  std::string text = file.read_all(on_read);
  const size_t offset = byte_order_mark_size(text);
  return {as_text(std::move(text), file, policy), offset};
}

std::string checked_utf8(std::string text, std::string_view name, InvalidUtf8 policy) {
  const std::optional<size_t> invalid = find_invalid_utf8(text, throw_if_interrupted);
  if (!invalid) return text;
  if (policy == InvalidUtf8::kReplace) return replace_invalid_utf8(text, throw_if_interrupted);
  throw Error(concat(name, ": not UTF-8 text: invalid byte at offset ", *invalid),
              concat("convert it to UTF-8, for example with iconv",
                     policy == InvalidUtf8::kRefuse
                         ? "; or --replace-invalid puts U+FFFD in place of such bytes"
                         : ""));
}

size_t byte_order_mark_size(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.starts_with(kMark) ? kMark.size() : 0;
}

bool is_blank(std::string_view text) { return trimmed(text).empty(); }

void require_text(std::string_view text, const std::string& path) {
  CHECK(!is_blank(text), input_name(path), ": is empty");
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
}

}  // namespace tessera
