// tessera tokenize: what a model reads in place of a text, without loading its weights.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/answer/answer.h"
#include "apps/batch/request.h"
#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"
#include "apps/terminal/terminal.h"

namespace tessera {
namespace {

enum class Form : uint8_t { kIds, kPieces, kJson, kRendered };

struct TokenizeOptions {
  EngineOptions engine;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;
  std::optional<std::string> text;
  std::string file;
  std::string chat_file;
  bool no_bos = false;
  Form form = Form::kIds;
};

// Any text is worth tokenising, also an empty one.
std::string read_plain_text(const TokenizeOptions& options, const Console& console) {
  if (options.text && *options.text != "-") {
    return checked_utf8(*options.text, "--prompt", options.invalid_utf8);
  }
  const std::string path = options.file.empty() ? "-" : options.file;
  say_how_typing_ends(path, console);
  return read_text(path, options.invalid_utf8);
}

std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.content;
  return text;
}

// Prints in blocks and looks for a signal before each. A text of millions of tokens, which takes
// seconds to write, is never held as a whole.
class BlockPrinter {
 public:
  void add(std::string_view text) {
    block_ += text;
    if (block_.size() >= kBlockBytes) finish();
  }
  void finish() {
    throw_if_interrupted();
    print(block_);
    block_.clear();
  }

 private:
  static constexpr size_t kBlockBytes = 256 << 10;
  std::string block_;
};

template <typename TextOf>
void add_joined(const std::vector<TokenId>& tokens, std::string_view separator,
                const TextOf& text_of, BlockPrinter& printer) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) printer.add(separator);
    printer.add(text_of(tokens[i]));
  }
}

std::string id_text(TokenId token) { return std::to_string(token); }

void add_pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens,
                BlockPrinter& printer) {
  for (const TokenId token : tokens) {
    printer.add(id_text(token) + '\t' + printable(tokenizer.piece(token)) + '\n');
  }
}

void add_json(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens,
              BlockPrinter& printer) {
  const auto quoted_piece = [&](TokenId token) {
    return nlohmann::json(tokenizer.piece(token))
        .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  };
  printer.add("{\"ids\":[");
  add_joined(tokens, ",", id_text, printer);
  printer.add("],\"pieces\":[");
  add_joined(tokens, ",", quoted_piece, printer);
  printer.add(concat("],\"count\":", tokens.size(), "}\n"));
}

// Behind the special tokens that the model's prompts begin with.
auto prefix_end(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  const auto [in_tokens, in_prefix] = std::ranges::mismatch(tokens, tokenizer.prompt_prefix());
  const bool has_bos = !tokens.empty() && tokens.front() == tokenizer.bos_token();
  return std::max(in_tokens, tokens.begin() + (has_bos ? 1 : 0));
}

void print_tokens(const Tokenizer& tokenizer, std::vector<TokenId> tokens,
                  const TokenizeOptions& options) {
  if (options.no_bos) tokens.erase(tokens.begin(), prefix_end(tokenizer, tokens));
  BlockPrinter printer;
  if (options.form == Form::kPieces) {
    add_pieces(tokenizer, tokens, printer);
  } else if (options.form == Form::kJson) {
    add_json(tokenizer, tokens, printer);
  } else {
    add_joined(tokens, " ", id_text, printer);
    printer.add("\n");
  }
  printer.finish();
}

// What the command line names, read before the model's files are: typing ends soon, a mistake is
// told at once.
struct Input {
  std::string text;
  std::optional<BatchRequest> chat;
};

Input read_input(const TokenizeOptions& options, const Console& console) {
  if (options.chat_file.empty()) {
    return {.text = read_plain_text(options, console), .chat = std::nullopt};
  }
  say_how_typing_ends(options.chat_file, console);
  const std::string json = read_text(options.chat_file, options.invalid_utf8);
  return {.text = "", .chat = parse_chat(json, input_name(options.chat_file))};
}

int run_tokenize(const TokenizeOptions& options, const Console& console) {
  const Input input = read_input(options, console);
  const ModelFolder folder = read_model_folder(options.engine);
  for (const std::string& warning : folder.warnings) spdlog::warn("{}", warning);
  const std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(folder);
  ProgressBar bar(console, "tokenising");
  if (!input.chat) {
    print_tokens(*tokenizer, tokenizer->encode_prompt(input.text, interruptible(bar)), options);
    return kExitOk;
  }
  const auto chat_template = ChatTemplate::choose(options.engine.chat_template, folder, *tokenizer,
                                                  options.engine.template_arguments);
  const std::vector<Message>& messages = input.chat->messages;
  const ChatInputs& inputs = input.chat->inputs;
  if (options.form == Form::kRendered) {
    const std::vector<Segment> segments =
        chat_template.render(messages, inputs, interruptible(bar));
    print_generated(text_of(segments) + "\n");
  } else {
    print_tokens(*tokenizer, chat_template.encode(*tokenizer, messages, inputs, interruptible(bar)),
                 options);
  }
  return kExitOk;
}

void add_input_options(CLI::App& command, TokenizeOptions& options) {
  constexpr const char* kGroup = "Input";
  CLI::Option* text = command.add_option("-p,--prompt", options.text, "the text; - for stdin");
  text->option_text("TEXT")->group(kGroup);
  CLI::Option* file =
      command.add_option("-f,--file", options.file, "the text from a file; - for stdin");
  file->option_text("FILE")->excludes(text)->group(kGroup);
  command
      .add_option("--chat", options.chat_file,
                  "messages as JSON, put into the model's chat template; - for stdin")
      ->option_text("FILE")
      ->excludes(text)
      ->excludes(file)
      ->group(kGroup);
  add_replace_invalid_option(command, options.invalid_utf8);
}

void add_output_options(CLI::App& command, TokenizeOptions& options) {
  constexpr const char* kGroup = "Output";
  std::vector<CLI::Option*> forms;
  const auto add_form = [&](const char* flag, Form form, const char* help) {
    CLI::Option* const added = command.add_flag_callback(
        flag, [&options, form] { options.form = form; }, help);
    for (CLI::Option* const other : forms) added->excludes(other);
    forms.push_back(added->group(kGroup));
    return added;
  };
  add_form("--ids", Form::kIds, "ids on one line, with spaces between (the default)");
  add_form("--pieces", Form::kPieces, "one token a line: id, tab, piece of the vocabulary");
  add_form("--json", Form::kJson, "an object with ids, pieces and count");
  CLI::Option* const rendered =
      add_form("--render", Form::kRendered, "the text that the template makes");
  rendered->needs("--chat");
  command
      .add_flag("--no-bos", options.no_bos, "leave out the special tokens that prompts begin with")
      ->excludes(rendered)
      ->group(kGroup);
}

}  // namespace

void add_tokenize(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App& command = *app.add_subcommand("tokenize", "show a text or a chat as tokens");
  add_input_options(command, *options);
  add_output_options(command, *options);
  add_text_model_options(command, options->engine);
  add_console_options(command, invocation.console);
  command.footer(
      "Weights are not loaded. Without -p, -f and --chat the text comes from standard input, "
      "unless\n"
      "that is a terminal. One newline at the end of a file is not part of its text. Text never\n"
      "becomes a special token: those of a chat come from its template alone.\n"
      "\n"
      "--chat takes a list of messages, or an object that has one, as the body of a line for "
      "tessera\n"
      "batch and a file of /save in tessera chat:\n"
      "  [{\"role\": \"user\", \"content\": \"Who are you?\"}]\n"
      "\n"
      "Examples:\n"
      "  tessera tokenize -m weights/demo -p \"Once upon a time\"\n"
      "  tessera tokenize -m weights/demo -f story.txt | wc -w\n"
      "  tessera tokenize -m weights/demo --chat messages.json --render\n"
      "  tessera tokenize -m weights/demo --chat messages.json --pieces");
  command.callback([options, &invocation] {
    require_model(options->engine);
    const bool has_input = options->text || !options->file.empty() || !options->chat_file.empty();
    if (!has_input && is_terminal(STDIN_FILENO)) {
      throw UsageError("no text given",
                       "use -p TEXT, -f FILE, --chat FILE, or -p - to type the text");
    }
    invocation.run = [options](const Console& console) { return run_tokenize(*options, console); };
  });
}

}  // namespace tessera
