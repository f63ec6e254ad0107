#include "apps/batch/settings.h"

#include "apps/options/sampling_json.h"
#include "engine/engine.h"
#include "engine/input_files.h"
#include "engine/model_fingerprint.h"
#include "engine/text/sha256.h"

namespace tessera {

using Json = nlohmann::json;

namespace {

constexpr uint64_t kMaxTokenizerBytes = uint64_t{1} << 30;

// Of a tokenizer that the model's fingerprint may not know: wherever the file lies.
std::string tokenizer_fingerprint(const EngineOptions& options) {
  const std::string path = read_model_folder(options).tokenizer_path;
  return concat("sha256:", sha256(read_whole_file(path, kMaxTokenizerBytes)));
}

}  // namespace

Json batch_settings(const BatchOptions& options, const Conversation& opening) {
  const EngineOptions& engine = options.engine;
  const bool on_cpu = chosen_device(engine) == DeviceType::kCpu;
  Json settings = {{"version", TESSERA_VERSION},
                   {"model_sha256", model_fingerprint(engine)},
                   {"device", on_cpu ? "cpu" : "cuda"},
                   {"dtype", to_string(on_cpu ? DType::kFloat32 : engine.compute_dtype)},
                   {"batch_invariant", engine.batch_invariant},
                   {"tokenizer", nullptr},
                   {"chat_template", nullptr},
                   {"template_args", nullptr},
                   {"kv_dtype", nullptr},
                   {"attention_dtype", nullptr},
                   {"context_size", nullptr},
                   {"rope_scaling", nullptr},
                   {"on_overflow", nullptr},
                   {"system", nullptr},
                   {"kv_sha256", nullptr},
                   {"shard", nullptr}};
  if (!options.shard.is_whole()) settings["shard"] = options.shard.text();
  if (!engine.tokenizer.empty()) settings["tokenizer"] = tokenizer_fingerprint(engine);
  if (!engine.chat_template.empty()) {
    settings["chat_template"] =
        ChatTemplate::fingerprint(engine.chat_template, read_model_folder(engine));
  }
  for (const TemplateArgument& argument : engine.template_arguments) {
    settings["template_args"][argument.name] = parse_strict_json(argument.json, {});
  }
  if (engine.kv_dtype == KvDType::kFloat8E4M3) settings["kv_dtype"] = "fp8";
  if (engine.fp8_attention) settings["attention_dtype"] = "fp8";
  if (options.on_overflow != OnOverflow::kError) {
    settings["on_overflow"] = to_string(options.on_overflow);
  }
  if (engine.context_size != 0) settings["context_size"] = engine.context_size;
  if (engine.rope_scaling == RopeScalingChoice::kAuto) settings["rope_scaling"] = "auto";
  if (!opening.system().empty()) settings["system"] = opening.system();
  if (!options.kv_path.empty()) settings["kv_sha256"] = sha256(opening.text());
  settings.update(sampling_json(options.sampling));
  return settings;
}

}  // namespace tessera
