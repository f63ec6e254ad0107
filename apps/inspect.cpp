// tessera inspect: what a model folder holds and whether it would fit, without loading weights.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/options/commands.h"
#include "apps/options/common_options.h"
#include "apps/process/exit_codes.h"
#include "apps/terminal/human_units.h"
#include "apps/terminal/output.h"
#include "engine/engine.h"
#include "engine/expected_tensors.h"
#include "engine/model_description.h"
#include "engine/model_words.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct InspectOptions {
  EngineOptions engine;
  bool all_tensors = false;
  bool expected_tensors = false;
  bool json = false;
};

// The longest window of a layer; 0 when none has one.
int64_t sliding_window(const ModelConfig& config) {
  int64_t window = 0;
  for (const LayerSpec& layer : config.block.layers) {
    window = std::max(window, layer.sliding_window);
  }
  return window;
}

OrderedJson rope_json(const ModelConfig& config) {
  OrderedJson tables = OrderedJson::array();
  for (const RopeTable& table : config.rope_tables) {
    tables.push_back({{"theta", table.theta},
                      {"scaling", rope_scaling_name(table.scaling.kind)},
                      {"factor", table.scaling.factor},
                      {"attention_factor", table.scaling.attention_factor},
                      {"rotary_dim", config.rotary_dim()}});
  }
  return tables;
}

// What each layer sees and which table it rotates by; null: none.
OrderedJson layers_json(const ModelConfig& config) {
  OrderedJson layers = OrderedJson::array();
  for (const LayerSpec& layer : config.block.layers) {
    layers.push_back(
        {{"sliding_window", layer.sliding_window},
         {"rope_table", layer.rope_table ? OrderedJson(*layer.rope_table) : OrderedJson(nullptr)}});
  }
  return layers;
}

OrderedJson words_json(const ModelWords& words) {
  return {{"blocks", words.blocks},
          {"windows", words.windows},
          {"rope", words.rope},
          {"scalars", words.scalars}};
}

OrderedJson config_json(const ModelConfig& config) {
  // Models that rotate nowhere have no table.
  const RopeTable rope = config.rope_tables.empty() ? RopeTable() : config.rope_tables.front();
  return {{"model_type", config.model_type},
          {"architecture", config.architecture},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.intermediate_size},
          {"num_layers", config.num_layers},
          {"num_heads", config.num_heads},
          {"num_kv_heads", config.num_kv_heads},
          {"head_dim", config.head_dim},
          {"vocab_size", config.vocab_size},
          {"max_position_embeddings", config.max_position_embeddings},
          {"rms_norm_eps", config.rms_norm_eps},
          {"rope_theta", rope.theta},
          {"rope_scaling", rope_scaling_name(rope.scaling.kind)},
          {"rope_scaling_factor", rope.scaling.factor},
          {"rope_tables", rope_json(config)},
          {"sliding_window", sliding_window(config)},
          {"layers", layers_json(config)},
          {"ties_embeddings", config.ties_embeddings},
          {"words", words_json(describe_blocks(config))}};
}

OrderedJson tensors_json(const std::vector<TensorEntry>& tensors) {
  OrderedJson list = OrderedJson::array();
  for (const TensorEntry& tensor : tensors) {
    OrderedJson shape = OrderedJson::array();
    for (const int64_t dimension : tensor.shape.dims()) shape.push_back(dimension);
    list.push_back({{"name", tensor.name},
                    {"dtype", to_string(tensor.dtype)},
                    {"shape", shape},
                    {"bytes", tensor.size_bytes}});
  }
  return list;
}

OrderedJson memory_json(const ModelDescription& model) {
  if (!model.memory_plan) return {{"problem", model.memory_problem}};
  const MemoryPlan& plan = *model.memory_plan;
  return {{"weights_bytes", plan.weights_bytes},
          {"kv_dtype", plan.limits.kv_dtype == KvDType::kFloat8E4M3 ? "fp8" : "auto"},
          {"kv_bytes", plan.kv_bytes},
          {"kv_bytes_per_token", plan.kv_bytes_per_token},
          {"activation_bytes", plan.activation_bytes},
          {"total_bytes", plan.total_bytes()},
          {"free_bytes", plan.free_bytes},
          {"used_bytes", plan.used_bytes},
          {"context_size", plan.limits.context_size},
          {"page_size", plan.page_size},
          {"num_pages", plan.num_pages}};
}

OrderedJson description_json(const ModelDescription& model, bool all_tensors) {
  const auto& bos = model.bos_token;
  OrderedJson object = {{"path", model.folder.path},
                        {"config", config_json(model.folder.config)},
                        {"num_parameters", model.num_parameters},
                        {"num_tensors", model.tensors.size()},
                        {"skipped", model.skipped},
                        {"weights_bytes_on_disk", model.weights_bytes_on_disk},
                        {"tokenizer_size", model.tokenizer_size},
                        {"bos_token", bos ? OrderedJson(*bos) : OrderedJson(nullptr)},
                        {"eos_tokens", model.eos_tokens},
                        {"chat_template", model.chat_template},
                        {"chat_template_problem", model.chat_template_problem},
                        {"device", model.device},
                        {"memory", memory_json(model)},
                        {"warnings", model.warnings},
                        {"problems", OrderedJson::array()}};
  for (const Error& problem : model.problems) object["problems"].push_back(problem.what());
  if (all_tensors) object["tensors"] = tensors_json(model.tensors);
  return object;
}

std::string config_text(const ModelConfig& config) {
  const ModelWords words = describe_blocks(config);
  std::string text =
      concat("architecture   ", config.architecture, " (", config.model_type, ")\n",  //
             "layers         ", config.num_layers, "\n",                              //
             "hidden size    ", config.hidden_size, ", feed-forward ", config.intermediate_size,
             "\n", "heads          ", config.num_heads, ", KV heads ", config.num_kv_heads,
             ", head dim ", config.head_dim, "\n",  //
             "vocabulary     ", config.vocab_size, config.ties_embeddings ? ", tied" : "", "\n",
             "context        ", counted(config.max_position_embeddings, "token"),
             config.stretch ? concat(", trained for ", config.stretch->trained_context) : "",
             "\n",  //
             "blocks         ", words.blocks, "\n");
  const auto add_line = [&](std::string_view label, const std::string& line) {
    text += concat(label, std::string(15 - label.size(), ' '), line, '\n');
  };
  if (!words.windows.empty()) add_line("windows", words.windows);
  for (const std::string& line : words.rope) add_line("RoPE", line);
  for (const std::string& line : words.scalars) add_line("scalars", line);
  return text;
}

std::string tensors_text(const ModelDescription& model, bool all_tensors) {
  if (model.tensors.empty()) return "";
  struct Sum {
    int64_t count = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string_view, Sum> sum_by_dtype;
  std::string list;
  for (const TensorEntry& tensor : model.tensors) {
    Sum& sum = sum_by_dtype[to_string(tensor.dtype)];
    ++sum.count;
    sum.bytes += tensor.size_bytes;
    if (!all_tensors) continue;
    list += concat("  ", tensor.name, "  ", to_string(tensor.dtype), ' ', tensor.shape, "  ",
                   human_bytes(tensor.size_bytes), '\n');
  }
  std::string text = concat("parameters     ", human_count(model.num_parameters),
                            model.lacks_weight_files ? ", without the files that are missing" : "",
                            "\ntensors        ", model.tensors.size());
  for (const auto& [dtype, sum] : sum_by_dtype) {
    text += concat(", ", sum.count, " ", dtype, " (", human_bytes(sum.bytes), ")");
  }
  text += '\n';
  for (const std::string& line : model.skipped) text += "skipped        " + line + '\n';
  return text + list;
}

std::string tokens_text(const ModelDescription& model) {
  if (model.tokenizer_size == 0) return "";
  std::string text = concat("tokenizer      ", counted(model.tokenizer_size, "piece"), ", BOS ");
  text += model.bos_token ? std::to_string(*model.bos_token) : "none";
  text += ", ends at";
  for (const TokenId token : model.eos_tokens) text += concat(' ', token);
  if (model.eos_tokens.empty()) text += " --max-tokens only";
  const std::string& problem = model.chat_template_problem;
  return text + "\nchat template  " +
         (model.chat_template.empty() ? "none: " + problem : model.chat_template) + "\n";
}

std::string memory_text(const ModelDescription& model) {
  std::string text = "device         " + model.device + "\n";
  if (!model.memory_plan) return text + "memory         " + model.memory_problem + "\n";
  const MemoryPlan& plan = *model.memory_plan;
  text += concat("memory         context ", counted(plan.limits.context_size, "token"), ", ",
                 human_bytes(plan.kv_bytes_per_token), " of KV cache a token\n", plan.table());
  return text.ends_with('\n') ? text : text + "\n";
}

// A line for each tensor that config.json asks for.
std::string expected_tensors_text(const std::vector<ExpectedTensor>& tensors, bool as_json) {
  std::string text;
  for (const ExpectedTensor& tensor : tensors) {
    text += as_json ? OrderedJson{{"name", tensor.name}, {"shape", tensor.shape}}.dump()
                    : concat(tensor.name, ' ', Shape(tensor.shape));
    text += '\n';
  }
  return text;
}

int show_expected_tensors(const InspectOptions& options, const Console& console) {
  std::vector<std::string> warnings;
  const std::vector<ExpectedTensor> tensors = expected_tensors(options.engine, warnings);
  for (const std::string& warning : warnings) console.say("warning: " + warning);
  print(expected_tensors_text(tensors, options.json));
  return kExitOk;
}

std::string problems_text(const ModelDescription& model) {
  std::string text;
  for (const Error& problem : model.problems) {
    text += concat("problem        ", problem.what(), '\n');
  }
  return text;
}

void show_description(const ModelDescription& model, const InspectOptions& options,
                      const Console& console) {
  if (options.json) {
    const OrderedJson object = description_json(model, options.all_tensors);
    print(object.dump(2, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace) + "\n");
    return;
  }
  for (const std::string& warning : model.warnings) console.say("warning: " + warning);
  const std::string text = "model          " + model.folder.path + "\n" +
                           config_text(model.folder.config) +
                           tensors_text(model, options.all_tensors) + tokens_text(model) +
                           memory_text(model) + problems_text(model);
  print(escape_control_characters(text));
}

int run_inspect(const InspectOptions& options, const Console& console) {
  if (options.expected_tensors) return show_expected_tensors(options, console);
  const ModelDescription model = describe_what_is_there(options.engine);
  show_description(model, options, console);
  if (!model.problems.empty()) throw model.problems.front();
  return kExitOk;
}

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& command = *app.add_subcommand("inspect", "show what a model folder holds");
  CLI::Option* const tensors =
      command.add_flag("--tensors", options->all_tensors, "list every tensor")->group("Output");
  command
      .add_flag("--expected-tensors", options->expected_tensors,
                "list only the tensors that config.json asks for")
      ->excludes(tensors)
      ->group("Output");
  command.add_flag("--json", options->json, "write JSON")->group("Output");
  add_model_options(command, options->engine);
  command.remove_option(command.get_option("--check-weights"));  // none are loaded
  add_console_options(command, invocation.console);
  command.footer(
      "Reads headers only, no weights. Where something is missing or wrong it shows the rest and\n"
      "what the problem is, with exit code 1. --expected-tensors reads config.json alone; with\n"
      "--json it writes an object with name and shape on each line.\n"
      "\n"
      "Examples:\n"
      "  tessera inspect -m weights/demo\n"
      "  tessera inspect -m weights/demo -c 8k --json");
  command.callback([options, &invocation] {
    require_model(options->engine);
    require_context_choice(options->engine, "there is no prompt");
    invocation.run = [options](const Console& console) { return run_inspect(*options, console); };
  });
}

}  // namespace tessera
