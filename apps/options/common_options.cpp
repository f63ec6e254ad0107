#include "apps/options/common_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "apps/process/environment.h"
#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

constexpr const char* kModelGroup = "Model and device";
constexpr const char* kContextFlags = "-c,--ctx-size,--max-model-len";

// As the Hugging Face libraries find it, which also expand what these variables hold; "" without a
// home. HUGGINGFACE_HUB_CACHE is an old name, which they still honour.
std::string hugging_face_cache() {
  constexpr std::pair<const char*, const char*> kPlaces[] = {{"HF_HUB_CACHE", ""},
                                                             {"HUGGINGFACE_HUB_CACHE", ""},
                                                             {"HF_HOME", "/hub"},
                                                             {"XDG_CACHE_HOME", "/huggingface/hub"},
                                                             {"HOME", "/.cache/huggingface/hub"}};
  for (const auto& [variable, folder] : kPlaces) {
    const std::string_view value = environment(variable);
    if (!value.empty()) return with_variables(with_home(value)) + folder;
  }
  return "";
}

void parse_device(const std::string& text, EngineOptions& options) {
  if (text == "auto") {
    options.device = DeviceChoice::kAuto;
  } else if (text == "cpu") {
    options.device = DeviceChoice::kCpu;
  } else if (text == "cuda") {
    options.device = DeviceChoice::kCuda;
  } else {
    const std::optional<int> index = find_gpu(text);
    if (!index) throw UsageError(refusal("--device", "auto, cpu, cuda or cuda:N", text));
    options.device = DeviceChoice::kCuda;
    options.cuda_index = *index;
  }
}

void parse_lookup(const std::string& text, EngineOptions& options) {
  if (text == "auto") {
    options.prompt_lookup = PromptLookupChoice::kWhereItPays;
  } else if (text == "off") {
    options.prompt_lookup = PromptLookupChoice::kNever;
  } else {
    throw UsageError(refusal("--prompt-lookup", "auto or off", text));
  }
}

void parse_rope_scaling(const std::string& text, EngineOptions& options) {
  if (text == "auto") {
    options.rope_scaling = RopeScalingChoice::kAuto;
  } else if (text == "model") {
    options.rope_scaling = RopeScalingChoice::kModel;
  } else {
    throw UsageError(refusal("--rope-scaling", "auto or model", text));
  }
}

void parse_dtype(const std::string& text, EngineOptions& options) {
  if (text == "auto" || text == "bfloat16") {
    options.compute_dtype = DType::kBFloat16;
  } else if (text == "float16") {
    options.compute_dtype = DType::kFloat16;
  } else {
    throw UsageError(refusal("--dtype", "auto, bfloat16 or float16", text));
  }
}

void parse_kv_dtype(const std::string& text, KvDType& kv_dtype) {
  if (text == "auto") {
    kv_dtype = KvDType::kActivation;
  } else if (text == "fp8") {
    kv_dtype = KvDType::kFloat8E4M3;
  } else {
    throw UsageError(refusal("--kv-dtype", "auto or fp8", text));
  }
}

void parse_attention_dtype(const std::string& text, EngineOptions& options) {
  if (text != "auto" && text != "fp8") {
    throw UsageError(refusal("--attention-dtype", "auto or fp8", text));
  }
  options.fp8_attention = text == "fp8";
}

// Of the flags that `app` has so far, those that mean nothing beside `option`.
void exclude(CLI::App& app, CLI::Option& option, std::initializer_list<const char*> others) {
  for (const char* const name : others) {
    if (CLI::Option* const other = app.get_option_no_throw(name)) option.excludes(other);
  }
}

// What the model is read from. Nothing where it cannot be read: then nothing is written either.
std::vector<NamedFile> files_of_model(const EngineOptions& options) {
  std::vector<NamedFile> files;
  const auto add = [&files](std::string path) {
    files.push_back({"a file of the model", std::move(path)});
  };
  try {
    const ModelFolder folder = read_model_folder(options);
    for (const std::string& path : folder.text_files) add(path);
    add(folder.tokenizer_path);
    std::error_code problem;
    std::filesystem::directory_iterator entry(folder.path, problem), end;
    for (; !problem && entry != end; entry.increment(problem)) {
      // Also the index of weights in several files, model.safetensors.index.json.
      const bool is_of_weights =
          entry->path().filename().string().find(".safetensors") != std::string::npos;
      if (is_of_weights) add(entry->path().string());
    }
  } catch (const Error&) {  // told by what loads the model
  }
  return files;
}

}  // namespace

std::optional<int> find_gpu(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  int index = -1;
  const bool is_number = std::from_chars(name.data() + kPrefix.size(), end, index).ptr == end;
  return is_number && index >= 0 ? std::optional(index) : std::nullopt;
}

UsageError usage_error(const CLI::App& command, const ContextSizeError& error) {
  const std::string name = flag_name(kContextFlags);
  return UsageError(refusal(name, error.allowed(), command.get_option("-c")->results().back()),
                    error.hint());
}

void add_device_options(CLI::App& app, EngineOptions& options) {
  app.add_option_function<std::string>(
         "--device", [&options](const std::string& text) { parse_device(text, options); },
         "where to run: auto, cpu, cuda or cuda:N (auto)")
      ->option_text("NAME")
      ->group(kModelGroup);
  app.add_option_function<std::string>(
         "--dtype", [&options](const std::string& text) { parse_dtype(text, options); },
         "number format on the GPU: auto, bfloat16 or float16 (auto: bfloat16)")
      ->option_text("NAME")
      ->group(kModelGroup);
  add_number(app, "--threads", options.num_threads, kThreadsLimits,
             "CPU threads; 0: one per physical core (0)")
      ->group(kModelGroup);
}

CLI::Option* add_kv_dtype_option(CLI::App& app, KvDType& kv_dtype) {
  return app
      .add_option_function<std::string>(
          "--kv-dtype", [&kv_dtype](const std::string& text) { parse_kv_dtype(text, kv_dtype); },
          "number format of the KV cache: auto, or fp8 for half the memory (auto: as computed)")
      ->option_text("NAME");
}

CLI::Option* add_attention_dtype_option(CLI::App& app, EngineOptions& options) {
  return app
      .add_option_function<std::string>(
          "--attention-dtype",
          [&options](const std::string& text) { parse_attention_dtype(text, options); },
          "number format in which attention multiplies prompts: auto, or fp8 with --kv-dtype fp8\n"
          "on Hopper GPUs, faster and less exact (auto: as computed)")
      ->option_text("NAME");
}

void add_text_model_options(CLI::App& app, EngineOptions& options) {
  options.cache_folder = hugging_face_cache();
  app.add_option(
         "-m,--model", options.model,
         "model folder, or org/name[@revision] in the Hugging Face cache, which HF_HUB_CACHE\n"
         "and HF_HOME can move (required, here or as the environment variable TESSERA_MODEL)")
      ->envname("TESSERA_MODEL")
      ->option_text("DIR|org/name")
      ->group(kModelGroup);
  app.add_option("--tokenizer", options.tokenizer,
                 "tokenizer.json, tokenizer.model or tekken.json to use, in the model folder or\n"
                 "elsewhere (the folder's own, the first of these that it has)")
      ->option_text("FILE")
      ->group(kModelGroup);
  app.add_option("--chat-template", options.chat_template,
                 "chat format by name, e.g. chatml, or a file with Jinja (the model's own)")
      ->option_text("NAME|FILE")
      ->group(kModelGroup);
  app.add_flag("--allow-unknown-config", options.allow_unknown_config,
               "go on when config.json has keys that are not understood")
      ->group(kModelGroup);
}

void add_model_options(CLI::App& app, EngineOptions& options) {
  add_text_model_options(app, options);
  add_number(app, kContextFlags, options.context_size, kContextSizeLimits,
             "context in tokens, 32k is 32768; 0: the most that fits (0)", Suffix::kKibi)
      ->group(kModelGroup);
  app.add_option_function<std::string>(
         "--rope-scaling",
         [&options](const std::string& text) { parse_rope_scaling(text, options); },
         "a context longer than the model was trained for: auto stretches RoPE by YaRN as far\n"
         "as -c, or the prompt of generate and summarize, needs; model refuses it (model)")
      ->option_text("auto|model")
      ->group(kModelGroup);
  add_device_options(app, options);
  add_number(app, "--page-size", options.page_size, kPageSizeLimits,
             "tokens in a page of the KV cache (64)")
      ->group(kModelGroup);
  add_number(
      app, "--kv-pages", options.max_pages, kMaxPagesLimits,
      "pages of the KV cache at most, but enough for one sequence; 0: what memory allows (0)")
      ->group(kModelGroup);
  CLI::Option* const kv_dtype = add_kv_dtype_option(app, options.kv_dtype)->group(kModelGroup);
  add_attention_dtype_option(app, options)->needs(kv_dtype)->group(kModelGroup);
  app.add_flag_callback(
         "--no-prefix-cache", [&options] { options.prefix_cache = false; },
         "compute every prompt anew, also what begins like another")
      ->group(kModelGroup);
  add_number(
      app, "--prefill-chunk", options.prefill_chunk, kPrefillChunkLimits,
      concat("prompt tokens computed in one step; 0: ", kCudaPrefillChunk, " on a GPU, or\n",
             kCudaSmallPrefillChunk, " where memory is short, ", kCpuPrefillChunk, " on a CPU (0)"),
      Suffix::kKibi)
      ->group(kModelGroup);
  app.add_flag(
         "--batch-invariant", options.batch_invariant,
         "the same tokens whatever else is computed beside them: alone, in a batch, with any\n"
         "--prefill-chunk; slower (docs/batch.md has figures)")
      ->group(kModelGroup);
  app.add_flag("--allow-unknown-weights", options.allow_unknown_weights,
               "go on when there are tensors that the model does not use")
      ->group(kModelGroup);
  app.add_flag("--check-weights", options.check_weights, "look for NaN and infinity while loading")
      ->group(kModelGroup);
}

void add_prompt_lookup_option(CLI::App& app, EngineOptions& options) {
  app.add_option_function<std::string>(
         "--prompt-lookup", [&options](const std::string& text) { parse_lookup(text, options); },
         "compute several tokens of an answer at once where it repeats its prompt or itself:\n"
         "auto, as far as that pays, or off (off)")
      ->option_text("auto|off")
      ->group(kModelGroup);
}

void add_sampling_options(CLI::App& app, SamplingOptions& options) {
  constexpr const char* kGroup = "Sampling";
  for (const SamplingField& field : sampling_fields()) {
    const std::string flags(field.flags);
    const auto read = [=, &options, &field](const CLI::results_t& texts) {
      set_sampling_field(options, field, flag_name(flags), texts.back());
      return true;
    };
    app.add_option(flags, read, std::string(field.help))
        ->expected(1)
        ->option_text("N")
        ->group(kGroup);
  }
  app.add_option("--stop", options.stop, "end the answer before this text; may be repeated")
      ->check([](const std::string& text) { return text.empty() ? "must not be empty" : ""; })
      ->option_text("TEXT")
      ->expected(1)
      ->take_all()
      ->group(kGroup);
  app.add_flag_callback(
         "--ignore-eos", [&options] { options.ignore_eos = true; },
         "go on where the model would end its answer, to measure")
      ->group(kGroup);
}

void add_console_options(CLI::App& app, ConsoleOptions& options) {
  app.add_flag("-v,--verbose", options.is_verbose, "say more")->group(kMessagesGroup);
  app.add_flag("-q,--quiet", options.quiet, "say nothing but errors")->group(kMessagesGroup);
  app.add_flag("--no-progress", options.no_progress, "no progress bars")->group(kMessagesGroup);
  app.add_option_function<std::string>(
         "--color",
         [&options](const std::string& text) {
           if (text == "auto") {
             options.color = ColorChoice::kAuto;
           } else if (text == "always") {
             options.color = ColorChoice::kAlways;
           } else if (text == "never") {
             options.color = ColorChoice::kNever;
           } else {
             throw UsageError(refusal("--color", "auto, always or never", text));
           }
         },
         "colours: auto, always or never; NO_COLOR is honoured (auto)")
      ->option_text("WHEN")
      ->group(kMessagesGroup);
}

void add_stats_option(CLI::App& app, std::string& path) {
  app.add_option("--stats-json", path, "write measurements as JSON; - for standard output")
      ->option_text("FILE")
      ->group(kMessagesGroup);
}

void add_system_options(CLI::App& app, PromptOptions& options) {
  constexpr const char* kGroup = "Prompt";
  CLI::Option* system = app.add_option("--system", options.system, "the system message");
  system->option_text("TEXT")->group(kGroup);
  app.add_option("--system-file", options.system_file, "the system message from a file")
      ->option_text("FILE")
      ->excludes(system)
      ->group(kGroup);
}

void add_raw_option(CLI::App& app, PromptOptions& options) {
  CLI::Option* const raw =
      app.add_flag("--raw", options.raw, "continue the text itself, without a chat template");
  raw->group("Prompt");
  exclude(
      app, *raw,
      {"--system", "--system-file", "--template-arg", "--chat-template", "--think", "--no-think"});
}

void add_replace_invalid_option(CLI::App& app, InvalidUtf8& policy) {
  app.add_flag_callback(
         "--replace-invalid", [&policy] { policy = InvalidUtf8::kReplace; },
         "put U+FFFD in place of bytes that are not UTF-8")
      ->group("Prompt");
}

void add_kv_option(CLI::App& app, std::string& path) {
  CLI::Option* option = app.add_option(
      "--kv", path,
      "a file of tessera prefill: your question is about its document, which is read\n"
      "instead of computed; or FILE.kv of a chat's /save FILE, which goes on");
  option->option_text("FILE")->group("Prompt");
  exclude(app, *option, {"--system", "--system-file", "--raw", "--no-prefix-cache"});
}

void require_separate_files(const EngineOptions& options, std::vector<NamedFile> inputs,
                            const std::vector<NamedFile>& outputs) {
  inputs.push_back({"--chat-template", options.chat_template});
  inputs.push_back({"--tokenizer", options.tokenizer});
  require_separate_files(inputs, outputs);
  if (std::ranges::any_of(outputs, &NamedFile::is_file)) {
    require_separate_files(files_of_model(options), outputs);
  }
}

std::vector<Message> system_messages(const PromptOptions& options, const Console& console) {
  say_how_typing_ends(options.system_file, console);
  std::string text = options.system_file.empty()
                         ? checked_utf8(options.system, "--system", options.invalid_utf8)
                         : read_text(options.system_file, options.invalid_utf8);
  if (is_blank(text)) return {};
  return {{Role::kSystem, std::move(text)}};
}

bool prompt_chooses_context(const EngineOptions& options) {
  return options.rope_scaling == RopeScalingChoice::kAuto && options.context_size == 0;
}

void require_context_choice(const EngineOptions& options, const std::string& reason) {
  if (!prompt_chooses_context(options)) return;
  throw UsageError("--rope-scaling auto needs -c here: " + reason,
                   "-c N: the tokens of the longest prompt and its answer together");
}

void require_model(const EngineOptions& options) {
  if (!options.model.empty()) return;
  throw UsageError("no model given",
                   "name one with -m, e.g. -m weights/demo, or set TESSERA_MODEL");
}

}  // namespace tessera
