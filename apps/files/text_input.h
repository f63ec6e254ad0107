// Prompts and documents from files, standard input and the command line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "apps/terminal/console.h"
#include "engine/text/text_limit.h"

namespace tessera {

// What to do with bytes that are not UTF-8.
enum class InvalidUtf8 : uint8_t {
  kRefuse,        // with a hint at --replace-invalid
  kReplace,       // by U+FFFD
  kAlwaysRefuse,  // the command has no --replace-invalid
};

// What messages call the file `path`, which may be "-".
std::string input_name(const std::string& path);

// Where `path` is "-" and somebody has to type it: says how that ends.
void say_how_typing_ends(const std::string& path, const Console& console);

// The text of the file `path`, or of standard input when it is "-", without a byte order mark and
// without one final newline. Throws Error with path and reason: missing, a directory, unreadable,
// binary, not UTF-8 (byte offset); Interrupted on Ctrl-C.
std::string read_text(const std::string& path, InvalidUtf8 policy);

struct FileText {
  std::string text;
  size_t offset_bytes = 0;  // in the file: of a byte order mark
};

// The same for a text that becomes a prompt. Says how typing ends, shows progress, and throws
// PromptTooLong as soon as it is known to be too long: a file before it is read. Only long texts
// ask for the limit.
FileText read_prompt_text(const std::string& path, InvalidUtf8 policy,
                          const std::function<TextLimit()>& find_limit, const Console& console);

// `text` if it is UTF-8. Otherwise throws Error naming `name` and the byte offset, or replaces.
// Throws Interrupted on Ctrl-C.
std::string checked_utf8(std::string text, std::string_view name, InvalidUtf8 policy);

// Bytes of the mark at the beginning of `text`, the first of a file or of standard input, that says
// "UTF-8" and is no part of it; 0 where there is none.
size_t byte_order_mark_size(std::string_view text);

// True when there is nothing but white space.
bool is_blank(std::string_view text);

// Throws Error naming the file that `text` was read from when there is nothing else in it.
void require_text(std::string_view text, const std::string& path);

// `text` without white space at either end.
std::string_view trimmed(std::string_view text);

}  // namespace tessera
