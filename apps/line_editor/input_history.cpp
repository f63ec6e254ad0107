#include "apps/line_editor/input_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "apps/files/atomic_file.h"
#include "apps/files/text_input.h"
#include "apps/process/environment.h"
#include "apps/terminal/output.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

constexpr size_t kMaxEntries = 1000;
constexpr size_t kMaxFileEntryBytes = 64 << 10;
// What one says to a model is nobody else's to read.
constexpr auto kOwnerOnly =
    std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
// What libedit, which older versions used, wrote at the top of its files.
constexpr std::string_view kOldHeading = "_HiStOrY_V2_";

// An entry as a line of the file: control characters and backslashes are spelled \ooo in octal.
std::string encode(std::string_view text) {
  std::string line;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte != '\\' && byte != 0x7f) {
      line += character;
    } else {
      line += {'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + (byte >> 3 & 7)),
               static_cast<char>('0' + (byte & 7))};
    }
  }
  return line + '\n';
}

bool is_octal(std::string_view digits) {
  return digits.size() == 3 && digits.find_first_not_of("01234567") == std::string_view::npos;
}

std::string decode(std::string_view line) {
  std::string text;
  for (size_t at = 0; at < line.size(); ++at) {
    const std::string_view digits = line.substr(at + 1).substr(0, 3);
    if (line[at] == '\\' && is_octal(digits)) {
      text += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
      at += 3;
    } else {
      text += line[at];
    }
  }
  return text;
}

void append_line(const std::string& path, std::string_view line) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                        static_cast<mode_t>(kOwnerOnly));
  if (file < 0) return;
  try {
    write_all(file, line, path);
  } catch (const Error&) {  // the chat goes on without it
  }
  close(file);
}

}  // namespace

InputHistory::InputHistory(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) load();
  stop_browsing();
}

void InputHistory::load() {
  std::error_code problem;
  const auto type = std::filesystem::status(path_, problem).type();
  if (type == std::filesystem::file_type::not_found) return;
  // Opening a named pipe would wait for somebody at its other end.
  if (type != std::filesystem::file_type::regular) {
    path_.clear();
    return;
  }
  std::ifstream file(path_);
  size_t num_lines = 0;
  for (std::string line; std::getline(file, line); ++num_lines) {
    if (line.empty() || line == kOldHeading) continue;
    entries_.push_back(replace_invalid_utf8(decode(line)));
    if (entries_.size() > kMaxEntries) entries_.pop_front();
  }
  if (num_lines <= kMaxEntries) return;
  std::string kept;
  for (const std::string& entry : entries_) kept += encode(entry);
  try {
    replace_file(path_, kept);
  } catch (const Error&) {  // it stays long
  }
  std::error_code ignored;
  std::filesystem::permissions(path_, kOwnerOnly, ignored);
}

void InputHistory::add(const std::string& text) {
  if (push(text) && !path_.empty() && text.size() <= kMaxFileEntryBytes) {
    append_line(path_, encode(text));
  }
}

void InputHistory::add_draft(const std::string& draft) {
  const std::string& text = is_browsing() ? draft_ : draft;
  if (is_blank(text)) return stop_browsing();
  push(text);
}

bool InputHistory::push(const std::string& text) {
  const bool is_new = entries_.empty() || entries_.back() != text;
  if (is_new) entries_.push_back(text);
  if (entries_.size() > kMaxEntries) entries_.pop_front();
  stop_browsing();
  return is_new;
}

std::optional<std::string> InputHistory::previous(const std::string& draft) {
  if (position_ == 0) return std::nullopt;
  if (!is_browsing()) draft_ = draft;
  return entries_[--position_];
}

std::optional<std::string> InputHistory::next() {
  if (!is_browsing()) return std::nullopt;
  ++position_;
  return is_browsing() ? entries_[position_] : draft_;
}

std::string default_history_path() {
  const std::string_view state = environment("XDG_STATE_HOME");
  const std::string_view home = environment("HOME");
  std::filesystem::path folder;
  if (!state.empty()) {
    folder = state;
  } else if (!home.empty()) {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return "";
  }
  folder /= "tessera";
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  return problem ? "" : (folder / "history").string();
}

}  // namespace tessera
