#include "apps/text_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "apps/signals.h"
#include "engine/engine.h"
#include "engine/utf8.h"

namespace tessera {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

// A descriptor to read from, closed unless it is standard input.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : name_(path == "-" ? "standard input" : path),
        descriptor_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    CHECK(descriptor_ >= 0, name_, ": ", std::strerror(errno));
    struct stat status = {};
    if (fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
      close_own();
      throw Error(name_ + ": is a directory, expected a text file");
    }
  }
  ~InputFile() { close_own(); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }

  std::string read_all() const {
    std::string text;
    std::array<char, 65536> block;
    for (;;) {
      const ssize_t count = read(descriptor_, block.data(), block.size());
      if (count == 0) return text;
      if (count < 0) {
        throw_if_interrupted();
        CHECK(errno == EINTR, name_, ": ", std::strerror(errno));
        continue;
      }
      text.append(block.data(), static_cast<size_t>(count));
      CHECK(text.size() <= kMaxTextBytes, name_, ": larger than ", kMaxTextBytes, " bytes");
    }
  }

 private:
  void close_own() {
    if (descriptor_ > STDERR_FILENO) close(descriptor_);
  }

  std::string name_;
  int descriptor_;
};

}  // namespace

std::string read_text(const std::string& path, InvalidUtf8 policy) {
  const InputFile file(path);
  std::string text = file.read_all();
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (text.ends_with('\n')) text.pop_back();
  if (policy == InvalidUtf8::kRefuse && text.find('\0') != std::string::npos) {
    CHECK(!find_invalid_utf8(text), file.name(), ": looks like a binary file, expected UTF-8 text");
  }
  return checked_utf8(std::move(text), file.name(), policy);
}

std::string checked_utf8(std::string text, std::string_view name, InvalidUtf8 policy) {
  const std::optional<size_t> invalid = find_invalid_utf8(text);
  if (!invalid) return text;
  if (policy == InvalidUtf8::kReplace) return replace_invalid_utf8(text);
  throw Error(concat(name, ": not UTF-8 text: invalid byte at offset ", *invalid),
              "--replace-invalid puts U+FFFD in place of such bytes");
}

bool is_blank(std::string_view text) { return trimmed(text).empty(); }

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
}

}  // namespace tessera
