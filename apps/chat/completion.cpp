#include "apps/chat/completion.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/chat/commands.h"
#include "apps/process/environment.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

Completions complete_name(std::string_view begun, const std::vector<std::string_view>& names) {
  Completions found = {begun.size(), {}};
  for (const std::string_view name : names) {
    if (name.starts_with(begun)) found.candidates.emplace_back(name);
  }
  if (found.candidates.size() == 1) found.candidates[0] += ' ';
  return found;
}

// "KEY" or "KEY VALUE", of which some values are words.
Completions complete_setting(std::string_view begun) {
  const size_t space = begun.find(' ');
  if (space == std::string_view::npos) return complete_name(begun, setting_names());
  if (!is_switch(begun.substr(0, space))) return {};
  return complete_name(begun.substr(std::min(begun.find_first_not_of(' ', space), begun.size())),
                       {"on", "off"});
}

Completions complete_branch(std::string_view begun, const Branches& branches) {
  std::vector<std::string_view> names;
  for (const auto& [name, branch] : branches.all()) names.push_back(name);
  return complete_name(begun, names);
}

// Names that cannot be typed cannot be offered.
bool is_typable(const std::string& name) {
  return !find_invalid_utf8(name) && escape_control_characters(name) == name &&
         name.find('\n') == std::string::npos;
}

// A file or, with a final "/", a folder that begins with `begun`, which may begin with a quote.
// Hidden ones must be asked for.
Completions complete_file(std::string_view begun) {
  const bool is_quoted = begun.starts_with('"') || begun.starts_with('\'');
  const std::string quote(begun.substr(0, is_quoted ? 1 : 0));
  const std::string_view path = begun.substr(quote.size());
  const size_t slash = path.rfind('/');
  const std::string folder(path.substr(0, slash == std::string_view::npos ? 0 : slash + 1));
  const std::string_view start = path.substr(folder.size());
  Completions found = {begun.size(), {}};
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : with_home(folder), problem), end;
  for (; !problem && entry != end; entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(start) || !is_typable(name)) continue;
    if (name.starts_with('.') && start.empty()) continue;
    std::error_code ignored;
    const bool is_folder = entry->is_directory(ignored);
    found.candidates.push_back(concat(quote, folder, name, is_folder ? "/" : quote));
  }
  std::sort(found.candidates.begin(), found.candidates.end());
  return found;
}

}  // namespace

Completions complete_chat_command(std::string_view before_cursor, const Branches& branches) {
  if (!before_cursor.starts_with('/') || before_cursor.find('\n') != std::string_view::npos) {
    return {};
  }
  const size_t space = before_cursor.find(' ');
  if (space == std::string_view::npos) return complete_name(before_cursor, chat_command_names());
  const std::string_view argument = before_cursor.substr(
      std::min(before_cursor.find_first_not_of(' ', space), before_cursor.size()));
  const std::string_view command = before_cursor.substr(0, space);
  if (takes_file(command)) return complete_file(argument);
  if (command == "/set") return complete_setting(argument);
  if (command == "/branch") return complete_branch(argument, branches);
  return {};
}

}  // namespace tessera
