#include "apps/chat/commands.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "apps/chat/kept_kv.h"
#include "apps/chat/typed_path.h"
#include "apps/options/sampling_json.h"
#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

using Handler = ChatOutcome (*)(ChatSession& session, const std::string& argument);

struct ChatCommand {
  std::array<std::string_view, 3> names;  // the first is the one in /help
  std::string_view argument;              // what it takes, "" when nothing
  std::string_view help;
  Handler run;
};

constexpr std::string_view kFileArgument = "FILE";
constexpr std::string_view kStatsSetting = "stats";
constexpr std::string_view kThinkSetting = "think";
constexpr size_t kSettingColumns = 18;  // the longest name

ChatOutcome leave(ChatSession&, const std::string&) { return ChatOutcome::kLeave; }

std::string text_of_clearing(const Conversation& conversation) {
  const bool has_system = !conversation.system().empty();
  if (conversation.document().empty()) {
    return has_system ? "cleared; the system message stays" : "cleared";
  }
  return has_system ? "cleared; the system message and the document of --kv stay"
                    : "cleared; the document of --kv stays";
}

ChatOutcome clear(ChatSession& session, const std::string&) {
  session.conversation().clear();
  session.console().say(text_of_clearing(session.conversation()));
  return ChatOutcome::kContinue;
}

ChatOutcome regenerate(ChatSession& session, const std::string&) {
  session.answer_again();
  return ChatOutcome::kContinue;
}

ChatOutcome undo(ChatSession& session, const std::string&) {
  CHECK(session.conversation().undo(), "there is nothing to take back");
  session.console().say("took back the last exchange");
  return ChatOutcome::kContinue;
}

ChatOutcome set_system(ChatSession& session, const std::string& text) {
  session.conversation().set_system(
      checked_utf8(text, "the system message", session.invalid_utf8()));
  session.console().say(text.empty() ? "no system message" : "system message set");
  return ChatOutcome::kContinue;
}

// Without a value a switch is turned on.
bool is_on(std::string_view name, std::string_view value) {
  CHECK(value.empty() || value == "on" || value == "off", name, " must be on or off, got '", value,
        "'");
  return value != "off";
}

ChatOutcome set_stats(ChatSession& session, std::string_view value) {
  session.show_stats(is_on(kStatsSetting, value));
  session.console().say(session.shows_stats() ? "statistics after each answer"
                                              : "no statistics after answers");
  return ChatOutcome::kContinue;
}

ChatOutcome set_think(ChatSession& session, std::string_view value) {
  const bool thinks = is_on(kThinkSetting, value);
  session.set_thinking(thinks);
  if (session.thinks() == thinks) {
    session.console().say(thinks ? "the model thinks before it answers"
                                 : "the model answers without thinking first");
  }
  return ChatOutcome::kContinue;
}

const char* on_or_off(bool is_on) { return is_on ? "on" : "off"; }

std::string thinking_text(const ChatSession& session) {
  const std::optional<bool> thinks = session.thinks();
  return thinks ? on_or_off(*thinks) : "as the model does";
}

ChatOutcome list_settings(ChatSession& session) {
  nlohmann::ordered_json values = sampling_json(session.sampling());
  values["seed"] = session.sampling().seed;
  const auto tell = [&session](std::string name, const std::string& value) {
    name.resize(std::max<size_t>(name.size(), kSettingColumns), ' ');
    session.console().tell(name + ' ' + value);
  };
  for (const SamplingField& field : sampling_fields()) {
    tell(std::string(field.name), values.at(std::string(field.name)).dump());
  }
  tell(std::string(kStatsSetting), on_or_off(session.shows_stats()));
  tell(std::string(kThinkSetting), thinking_text(session));
  return ChatOutcome::kContinue;
}

ChatOutcome set_parameter(ChatSession& session, const std::string& argument) {
  if (argument.empty()) return list_settings(session);
  const size_t space = argument.find_first_of(" \t");
  const std::string name = argument.substr(0, space);
  const std::string value =
      space == std::string::npos ? "" : std::string(trimmed(argument.substr(space)));
  if (name == kStatsSetting) return set_stats(session, value);
  if (name == kThinkSetting) return set_think(session, value);
  const SamplingField* field = find_sampling_field(name);
  if (field == nullptr || value.empty()) {
    std::string names;
    for (const std::string_view known : setting_names()) names += concat(' ', known);
    throw Error(field == nullptr ? concat("no parameter is called '", name, "'")
                                 : concat(name, " needs a value"),
                "/set KEY VALUE, where KEY is one of" + names);
  }
  session.set_sampling(*field, value);
  return ChatOutcome::kContinue;
}

ChatOutcome show(ChatSession& session, const std::string&) {
  const SamplingParams& params = session.sampling();
  const Engine& engine = session.engine();
  const Console& console = session.console();
  console.tell("model        " + engine.folder().path);
  console.tell("device       " + engine.device_description());
  console.tell(concat("context      ", engine.context_size(), " tokens"));
  const std::string system = session.conversation().system();
  console.tell("system       " + (system.empty() ? "none" : system));
  console.tell(concat("messages     ", session.conversation().messages().size()));
  console.tell(concat("sampling     temperature ", params.temperature, ", top_k ", params.top_k,
                      ", top_p ", params.top_p, ", min_p ", params.min_p, ", seed ", params.seed));
  const std::string looked_at = params.penalty_window == 0
                                    ? "all tokens"
                                    : concat("the last ", counted(params.penalty_window, "token"));
  console.tell(concat("penalties    repetition ", params.repetition_penalty, ", presence ",
                      params.presence_penalty, ", frequency ", params.frequency_penalty, ", over ",
                      looked_at));
  console.tell("think        " + thinking_text(session));
  console.tell(concat("stats        ", on_or_off(session.shows_stats())));
  console.tell("max_tokens   " + (params.max_tokens == 0 ? "until the context is full"
                                                         : std::to_string(params.max_tokens)));
  console.tell(concat("min_tokens   ", params.min_tokens));
  return ChatOutcome::kContinue;
}

ChatOutcome show_stats(ChatSession& session, const std::string&) {
  const Engine& engine = session.engine();
  session.console().tell(session.last_stats().value_or("no answer yet"));
  session.console().tell(concat("load ", engine.load_timings().text(), " | memory ",
                                human_bytes(engine.allocated_bytes())));
  return ChatOutcome::kContinue;
}

ChatOutcome read_file(ChatSession& session, const std::string& path) {
  const std::string text =
      read_prompt_text(
          path, session.invalid_utf8(), [&session] { return session.engine().text_limit(); },
          session.console())
          .text;
  require_text(text, path);
  session.ask(text);
  return ChatOutcome::kContinue;
}

ChatOutcome save(ChatSession& session, const std::string& path) {
  session.conversation().save(path);
  session.console().say("saved to " + path);
  save_kv_beside(session, path);
  return ChatOutcome::kContinue;
}

ChatOutcome load(ChatSession& session, const std::string& path) {
  Conversation loaded = Conversation::load(path, session.invalid_utf8());
  const std::string document = session.conversation().document();
  const bool drops_document = !document.empty() && document != loaded.document();
  session.conversation() = std::move(loaded);
  session.console().say(concat(
      "loaded ", counted(session.conversation().messages().size(), "message"), " from ", path,
      drops_document ? "; the document of --kv is no part of them and was dropped" : ""));
  load_kv_beside(session, path);
  return ChatOutcome::kContinue;
}

void list_branches(ChatSession& session) {
  Branches& branches = session.branches();
  for (const auto& [name, branch] : branches.all()) {
    session.console().tell(concat(name == branches.name() ? "* " : "  ", name, "  ",
                                  counted(branch.conversation.messages().size(), "message")));
  }
}

ChatOutcome branch(ChatSession& session, const std::string& name) {
  if (name.empty()) {
    list_branches(session);
    return ChatOutcome::kContinue;
  }
  CHECK(name.find_first_of(" \t") == std::string::npos, "the name of a branch is one word, got '",
        name, "'");
  const bool is_new = session.branches().enter(name);
  session.console().say(concat(is_new ? "a new branch " : "on branch ", name, ", ",
                               counted(session.conversation().messages().size(), "message")));
  return ChatOutcome::kContinue;
}

ChatOutcome show_help(ChatSession& session, const std::string&);

constexpr std::array kCommands = {
    ChatCommand{{"/help", "/?"}, "", "this list", show_help},
    ChatCommand{{"/exit", "/bye", "/quit"}, "", "leave; Ctrl-D does the same", leave},
    ChatCommand{{"/clear", "/reset"}, "", "forget the conversation", clear},
    ChatCommand{{"/regen", "/retry"}, "", "answer the last message again", regenerate},
    ChatCommand{{"/undo"}, "", "take back the last exchange", undo},
    ChatCommand{{"/branch"}, "[NAME]", "go on from here, or there, as another; list them", branch},
    ChatCommand{{"/system"}, "[TEXT]", "set the system message, or remove it", set_system},
    ChatCommand{{"/set"},
                "[KEY VALUE]",
                "change a sampling parameter, stats or think; list them",
                set_parameter},
    ChatCommand{{"/show"}, "", "the model and the parameters", show},
    ChatCommand{{"/stats"}, "", "speed and memory", show_stats},
    ChatCommand{{"/read"}, kFileArgument, "send a file as your message", read_file},
    ChatCommand{{"/save"},
                kFileArgument,
                "save the conversation, replacing FILE; its KV pages as FILE.kv",
                save},
    ChatCommand{{"/load"}, kFileArgument, "load a conversation, with FILE.kv if it fits", load},
};

ChatOutcome show_help(ChatSession& session, const std::string&) {
  for (const ChatCommand& command : kCommands) {
    std::string left = concat(command.names[0], ' ', command.argument);
    left.resize(std::max<size_t>(left.size(), 18), ' ');
    std::string aliases;
    for (const std::string_view name : {command.names[1], command.names[2]}) {
      if (!name.empty()) aliases += concat(aliases.empty() ? " (" : ", ", name);
    }
    if (!aliases.empty()) aliases += ')';
    session.console().tell(concat(left, command.help, aliases));
  }
  session.console().tell("\"\"\"               begins and ends a message of several lines");
  session.console().tell(
      "Alt-Enter         begins a new line; lines pasted together are one message");
  session.console().tell("Ctrl-C            stops the answer");
  return ChatOutcome::kContinue;
}

const ChatCommand* find_command(std::string_view name) {
  for (const ChatCommand& command : kCommands) {
    const auto& names = command.names;
    if (std::find(names.begin(), names.end(), name) != names.end()) return &command;
  }
  return nullptr;
}

// "exit", "bye" or "quit": what people type who have not found the "/" yet.
bool is_bare_exit(std::string_view line) {
  const ChatCommand* command = find_command(concat('/', line));
  return command != nullptr && command->run == leave;
}

}  // namespace

bool is_chat_command(std::string_view line) {
  const std::string_view text = trimmed(line);
  return text.starts_with('/') || is_bare_exit(text);
}

ChatOutcome run_chat_command(ChatSession& session, const std::string& line) {
  const std::string text(trimmed(line));
  if (is_bare_exit(text)) return ChatOutcome::kLeave;
  const size_t space = text.find_first_of(" \t\n");
  const std::string name = text.substr(0, space);
  std::string argument = space == std::string::npos ? "" : std::string(trimmed(text.substr(space)));
  const ChatCommand* command = find_command(name);
  if (command == nullptr) {
    throw Error("unknown command " + name,
                "/help lists the commands; a message that begins with / can be put in \"\"\"");
  }
  const bool takes_path = command->argument == kFileArgument;
  if (takes_path) argument = typed_path(argument);
  const bool is_required = !command->argument.empty() && command->argument[0] != '[';
  CHECK(!is_required || !argument.empty(), name, " needs ", command->argument);
  CHECK(!takes_path || argument != "-", name,
        " needs a file: standard input and output are the chat itself");
  CHECK(!takes_path || argument.find('\0') == std::string::npos, name,
        " needs a file, whose name has no NUL byte");
  CHECK(!command->argument.empty() || argument.empty(), name, " takes no argument, got '", argument,
        "'");
  return command->run(session, argument);
}

std::vector<std::string_view> chat_command_names() {
  std::vector<std::string_view> names;
  for (const ChatCommand& command : kCommands) names.push_back(command.names[0]);
  return names;
}

bool takes_file(std::string_view command) {
  const ChatCommand* found = find_command(command);
  return found != nullptr && found->argument == kFileArgument;
}

bool is_switch(std::string_view setting) {
  return setting == kStatsSetting || setting == kThinkSetting;
}

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  for (const SamplingField& field : sampling_fields()) names.push_back(field.name);
  names.push_back(kStatsSetting);
  names.push_back(kThinkSetting);
  return names;
}

}  // namespace tessera
