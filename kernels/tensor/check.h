// The one error type of tessera and the checks that throw it.
//
// An Error's message is written for the person at the terminal: it names the file or the option and
// gives the numbers. `hint`, when present, says what to do about it. The place in the source that
// threw is kept apart and shown only in verbose output.
#pragma once

#include <concepts>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string hint = {},
                 std::source_location where = std::source_location::current())
      : std::runtime_error(message), hint_(std::move(hint)), where_(where) {}

  const std::string& hint() const { return hint_; }
  const std::source_location& where() const { return where_; }

 private:
  std::string hint_;
  std::source_location where_;
};

// Joins its arguments with operator<<.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

// "1 byte", "2 bytes": `count` and the word for what is counted, `singular` for 1, else `plural`,
// which is `singular` with an "s" unless given.
template <std::integral Count>
std::string counted(Count count, std::string_view singular, std::string_view plural = {}) {
  if (count == 1) return concat(count, ' ', singular);
  return plural.empty() ? concat(count, ' ', singular, 's') : concat(count, ' ', plural);
}

}  // namespace tessera

// Throws Error with the joined parts when `condition` is false. On in every build type: a check
// that a release build drops guards nothing.
#define CHECK(condition, ...)                                 \
  do {                                                        \
    if (!(condition)) [[unlikely]] {                          \
      throw ::tessera::Error(::tessera::concat(__VA_ARGS__)); \
    }                                                         \
  } while (false)
