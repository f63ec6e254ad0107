#include "apps/options/unexpected_argument.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tessera {
namespace {

// Names are similar that differ by so many letters added, left out or replaced, and by no more than
// half of what was typed.
constexpr size_t kMostEdits = 2;
// Where none is, a name is taken for the other whose beginning it is, if it is this long: --max for
// --max-tokens.
constexpr size_t kLeastBeginning = 3;

// What other programs for language models call a thing, without dashes, where tessera's name for it
// is not similar.
struct ForeignName {
  std::string_view theirs;
  std::string_view ours;  // a flag may have a value behind it
};
constexpr ForeignName kForeignCommands[] = {
    {"run", "chat"},       {"complete", "generate"}, {"completion", "generate"},
    {"show", "inspect"},   {"info", "inspect"},      {"summary", "summarize"},
    {"attn", "attention"}, {"help", "--help"},       {"version", "--version"},
};
constexpr ForeignName kForeignFlags[] = {
    {"V", "--version"},
    {"hf", "-m REPO"},
    {"hfr", "-m REPO"},
    {"hf-repo", "-m REPO"},
    {"ngl", "--device cuda"},
    {"n-gpu-layers", "--device cuda"},
    {"gpu-layers", "--device cuda"},
    {"max-new-tokens", "--max-tokens"},
    {"max-length", "--max-tokens"},
    {"num-ctx", "--ctx-size"},
    {"context-length", "--ctx-size"},
    {"t", "--threads"},
    {"do-sample", "--temp"},
    {"sys", "--system"},
    {"reverse-prompt", "--stop"},
    {"ignore-chat-template", "--raw"},
    {"p", "--prompt-lengths"},
    {"n-prompt", "--prompt-lengths"},
    {"n", "--decode-lengths"},
    {"n-gen", "--decode-lengths"},
    {"r", "--repetitions"},
};

// Levenshtein's distance: the fewest letters to add, leave out or replace.
size_t num_edits(std::string_view from, std::string_view to) {
  std::vector<size_t> edits(to.size() + 1);  // from the letters of `from` so far to each beginning
  std::iota(edits.begin(), edits.end(), size_t{0});
  for (const char letter : from) {
    size_t replaced = edits[0]++;
    for (size_t i = 0; i < to.size(); ++i) {
      const size_t same = replaced + (letter == to[i] ? 0 : 1);
      replaced = edits[i + 1];
      edits[i + 1] = std::min({same, edits[i] + 1, replaced + 1});
    }
  }
  return edits.back();
}

bool begins_the_other(std::string_view one, std::string_view other) {
  const size_t length = std::min(one.size(), other.size());
  return length >= kLeastBeginning && one.substr(0, length) == other.substr(0, length);
}

// The name that was probably meant, if there is one.
std::optional<std::string> most_similar(std::string_view typed,
                                        const std::vector<std::string>& names) {
  const auto edits = [&](const std::string& name) { return num_edits(typed, name); };
  auto meant = std::ranges::min_element(names, {}, edits);
  if (meant == names.end()) return std::nullopt;
  if (edits(*meant) > std::min(kMostEdits, typed.size() / 2)) {
    meant = std::ranges::find_if(
        names, [&](const std::string& name) { return begins_the_other(typed, name); });
  }
  return meant == names.end() ? std::nullopt : std::optional(*meant);
}

std::string guess(const std::string& meant) { return concat("perhaps you mean ", meant); }

UsageError no_flag(const std::string& flag, const std::optional<std::string>& meant) {
  return UsageError("there is no flag " + flag, meant ? guess(*meant) : "");
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* inner : command.get_subcommands({})) names.push_back(inner->get_name());
  return names;
}

// Without their dashes.
std::vector<std::string> names_of_flags(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& more = option->get_lnames();
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

bool has_name(const CLI::App& command, std::string_view ours) {
  const std::string name(ours.substr(0, ours.find(' ')));
  if (name.starts_with('-')) return command.get_option_no_throw(name) != nullptr;
  return std::ranges::count(names_of_commands(command), name) > 0;
}

// Ours for the name `typed`, if `command` has it.
std::optional<std::string> translated(const CLI::App& command, std::string_view typed,
                                      std::span<const ForeignName> names) {
  const auto known = std::ranges::find(names, typed, &ForeignName::theirs);
  if (known == names.end() || !has_name(command, known->ours)) return std::nullopt;
  return std::string(known->ours);
}

std::string without_dashes(std::string_view flag) {
  return std::string(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
}

// What `flag`, which `command` does not have, was probably to be.
std::optional<std::string> meant_flag(const CLI::App& command, const std::string& flag) {
  const std::string name = without_dashes(flag);
  if (const auto ours = translated(command, name, kForeignFlags)) return ours;
  if (const auto similar = most_similar(name, names_of_flags(command))) return "--" + *similar;
  const auto commands = command.get_subcommands({});
  const auto owner = std::ranges::find_if(commands, [&flag](const CLI::App* inner) {
    return inner->get_option_no_throw(flag) != nullptr;
  });
  if (owner == commands.end()) return std::nullopt;
  return concat(command.get_name(), ' ', (*owner)->get_name(), ' ', flag);
}

std::optional<std::string> meant_command(const CLI::App& command, const std::string& name) {
  if (const auto ours = translated(command, name, kForeignCommands)) return ours;
  return most_similar(name, names_of_commands(command));
}

std::string flag_that_takes(const CLI::App& command, const std::string& value) {
  std::error_code none;
  if (command.get_option_no_throw("--model") != nullptr &&
      std::filesystem::is_directory(value, none)) {
    return guess("-m " + value);
  }
  return command.get_option_no_throw("--prompt") != nullptr ? guess("-p TEXT") : "";
}

}  // namespace

UsageError unexpected_argument(const CLI::App& command, const std::string& argument) {
  if (argument.starts_with('-')) {
    const std::string flag = argument.substr(0, argument.find('='));
    return no_flag(flag, meant_flag(command, flag));
  }
  const auto meant = meant_command(command, argument);
  if (meant || command.get_parent() == nullptr) {
    return UsageError(concat("there is no command '", argument, "'"), meant ? guess(*meant) : "");
  }
  return UsageError(concat("did not expect '", argument, "'"), flag_that_takes(command, argument));
}

std::optional<UsageError> foreign_joined_flag(const CLI::App& command,
                                              const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const bool has_letters_behind_one_dash =
        argument.size() > 2 && argument.starts_with('-') && !argument.starts_with("--");
    if (!has_letters_behind_one_dash) continue;
    if (const auto ours = translated(command, without_dashes(argument), kForeignFlags)) {
      return no_flag(argument, *ours);
    }
  }
  return std::nullopt;
}

std::string parse_problem(const CLI::ParseError& error) {
  const std::string text = error.what();
  // "--max-tokens: 1 required INT missing"; CLI11 leaves out the name before an empty value.
  if (const size_t at = text.find("1 required "); at != std::string::npos) {
    return concat(text.substr(0, at), "a value is missing");
  }
  // "verbose was given a disallowed flag override"
  if (const size_t at = text.find(" was given a disallowed flag"); at != std::string::npos) {
    return concat("--", text.substr(0, at), " takes no value");
  }
  return text;
}

}  // namespace tessera
