// tessera chat: a conversation on a terminal, or one turn a line from a pipe.
#include <signal.h>

#include <memory>

#include "apps/answer/kv_input.h"
#include "apps/answer/kv_output.h"
#include "apps/chat/commands.h"
#include "apps/chat/completion.h"
#include "apps/chat/session.h"
#include "apps/line_editor/line_editor.h"
#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/options/template_options.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"

namespace tessera {
namespace {

constexpr std::string_view kFence = "\"\"\"";

// Reads on after a line that begins with """ until one ends with it. The end of a pipe ends the
// message, Ctrl-D on a terminal leaves the chat.
InputLine read_to_fence(LineEditor& editor, InputLine line) {
  line.text.erase(0, kFence.size());
  while (!line.text.ends_with(kFence)) {
    InputLine next = editor.read("... ");
    if (next.status == InputLine::Status::kInterrupted) return next;
    if (next.status == InputLine::Status::kEndOfInput) {
      return editor.is_interactive() ? next : line;
    }
    line.text += '\n' + next.text;
    line.is_too_long |= next.is_too_long || line.text.size() > kMaxMessageBytes;
    // Of what is too long only the end is kept, which shows where it ends.
    if (line.is_too_long) line.text = next.text.ends_with(kFence) ? std::string(kFence) : "";
  }
  line.text.resize(line.text.size() - kFence.size());
  return line;
}

// The message between such lines. A fence on a line of its own adds no empty line to it.
InputLine read_fenced(LineEditor& editor, InputLine line) {
  line = read_to_fence(editor, std::move(line));
  if (line.text.starts_with('\n')) line.text.erase(0, 1);
  if (line.text.ends_with('\n')) line.text.pop_back();
  return line;
}

struct Turn {
  InputLine::Status status = InputLine::Status::kLine;
  std::string text;
  bool is_command = false;
  bool is_too_long = false;
};

// Only a line by itself means more than its text: what was pasted with others is a message.
Turn read_turn(LineEditor& editor) {
  InputLine line = editor.read("> ");
  while (line.text.ends_with('\n')) line.text.pop_back();
  const bool is_single = line.text.find('\n') == std::string::npos;
  const bool is_fenced = is_single && line.text.starts_with(kFence);
  if (is_fenced) line = read_fenced(editor, std::move(line));
  if (line.status == InputLine::Status::kLine && !is_blank(line.text)) {
    // The fence stays in the history where the text would otherwise be taken for a command.
    const bool needs_fence = is_fenced && line.text.find('\n') == std::string::npos;
    editor.remember(needs_fence ? concat(kFence, line.text, kFence) : line.text);
  }
  const bool is_command = is_single && !is_fenced && is_chat_command(line.text);
  return {line.status, std::move(line.text), is_command, line.is_too_long};
}

// A Ctrl-C at the prompt of a terminal is answered with how to leave; every other signal leaves.
void handle_interrupt_at_prompt(const LineEditor& editor, const Console& console) {
  if (!editor.is_interactive() || pending_signal() != SIGINT) throw_if_interrupted();
  clear_interrupt();
  console.write("Ctrl-D or /exit leaves\n");
}

// After an answer, the Ctrl-C that stopped it has done its work.
void handle_interrupt_in_answer(const LineEditor& editor) {
  if (editor.is_interactive()) clear_interrupt();
  throw_if_interrupted();
}

ChatOutcome take_turn(ChatSession& session, const Turn& turn) {
  CHECK(!turn.is_too_long, "your message is longer than ", kMaxMessageBytes, " bytes");
  if (turn.is_command) return run_chat_command(session, turn.text);
  if (!is_blank(turn.text)) session.ask(turn.text);
  return ChatOutcome::kContinue;
}

// Returns the exit code.
int converse(ChatSession& session, LineEditor& editor) {
  const Console& console = session.console();
  bool any_turn_failed = false;
  for (ChatOutcome outcome = ChatOutcome::kContinue; outcome == ChatOutcome::kContinue;) {
    const Turn turn = read_turn(editor);
    if (turn.status == InputLine::Status::kEndOfInput) break;
    if (turn.status == InputLine::Status::kInterrupted) {
      handle_interrupt_at_prompt(editor, console);
      continue;
    }
    try {
      outcome = take_turn(session, turn);
    } catch (const OutputError&) {
      throw;
    } catch (const Interrupted&) {
      console.say("stopped");
    } catch (const Error& error) {
      console.report(error);
      any_turn_failed = true;
    }
    handle_interrupt_in_answer(editor);
  }
  return any_turn_failed && !editor.is_interactive() ? kExitItemErrors : kExitOk;
}

void greet(const Engine& engine, const Console& console) {
  console.say(concat(engine.folder().path, " on ", engine.device_description(), ", context ",
                     counted(engine.context_size(), "token")));
  console.say("/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves");
}

int run_chat(ChatOptions& options, const PromptOptions& prompt, const Console& console) {
  options.invalid_utf8 = prompt.invalid_utf8;
  require_separate_files(options.engine,
                         {{"--system-file", prompt.system_file}, {"--kv", options.kv_path}},
                         {{"--stats-json", options.stats_path}});
  resolve_sampling(options.sampling, {});
  const auto kv = open_kv_option(options.kv_path, options.engine);
  const Conversation opening = kv ? kv->opening : Conversation(system_messages(prompt, console));
  const std::unique_ptr<Engine> engine = load_engine(options.engine, console);
  engine->chat_template();  // throws before the person has typed when there is none
  ChatSession session(*engine, options, opening, console);
  if (kv) {
    load_kv(*engine, kv->file, console);
    compare_with_kv(opening_tokens(*engine, opening, session.inputs(), console), kv->file, *engine,
                    console);
  }
  const auto complete = [&session](std::string_view before_cursor) {
    return complete_chat_command(before_cursor, session.branches());
  };
  LineEditor editor(options.keeps_history ? default_history_path() : "", complete, console);
  if (editor.is_interactive()) greet(*engine, console);
  return converse(session, editor);
}

}  // namespace

void add_chat(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ChatOptions>();
  auto prompt = std::make_shared<PromptOptions>();
  CLI::App& command = *app.add_subcommand("chat", "talk with a model");
  add_system_options(command, *prompt);
  add_replace_invalid_option(command, prompt->invalid_utf8);
  add_overflow_option(command, options->on_overflow, /*can_chunk=*/false);
  add_template_option(command, options->engine);
  add_thinking_options(command, options->thinking);
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->engine);
  add_kv_option(command, options->kv_path);
  add_prompt_lookup_option(command, options->engine);
  add_console_options(command, invocation.console);
  command.add_flag("--stats", options->shows_stats, "say after each answer how fast it was");
  add_stats_option(command, options->stats_path);
  command.add_flag_callback(
      "--no-history", [options] { options->keeps_history = false; },
      "neither read nor write the file of messages that were typed, which the up key goes\n"
      "through: $XDG_STATE_HOME/tessera/history, else ~/.local/state/tessera/history");
  command.footer(
      "In the chat, /help lists the commands. What a model thinks before its answer, between\n"
      "<think> and </think>, is shown on a terminal, dimmed; later turns bring it back only where\n"
      "the model's template does. When standard input is not a terminal, every line is a turn and\n"
      "the answers are all that is written to standard output; exit code 3 says that a turn\n"
      "failed.\n"
      "\n"
      "Examples:\n"
      "  tessera chat -m weights/demo\n"
      "  tessera prefill -m weights/demo report.txt -o report.kv\n"
      "  tessera chat -m weights/demo --kv report.kv\n"
      "  tessera chat -m weights/demo --system \"Answer in one sentence.\" --temp 0.7\n"
      "  printf 'Hello!\\nWho are you?\\n' | tessera chat -m weights/demo");
  command.callback([options, prompt, &invocation] {
    require_model(options->engine);
    require_context_choice(options->engine, "a chat has no prompt yet");
    invocation.run = [options, prompt](const Console& console) {
      return run_chat(*options, *prompt, console);
    };
  });
}

}  // namespace tessera
