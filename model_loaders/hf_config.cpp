#include "model_loaders/hf_config.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "kernels/tensor/check.h"
#include "model_loaders/hf_config_keys.h"
#include "model_loaders/layer_types.h"
#include "model_loaders/printable.h"
#include "model_loaders/rope_config.h"

namespace tessera {
namespace {

// The config class of one model family in transformers, with its defaults: files leave out what
// equals them.
struct Family {
  std::string_view model_type;
  std::string_view architecture;
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t num_layers;
  int64_t num_heads;
  int64_t num_kv_heads;  // 0: as many as heads
  int64_t max_position_embeddings;
  double rms_norm_eps;
  double rope_theta;
  std::optional<int64_t> sliding_window;  // none: the class has no such field
};

constexpr Family kFamilies[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 11008,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 0,
     .max_position_embeddings = 2048,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000.0,
     .sliding_window = {}},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 14336,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 8,
     .max_position_embeddings = 131072,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000.0,
     .sliding_window = 4096},
};

// Switches of the transformer block that exist in config.json and are only supported in one
// position.
struct FixedSwitch {
  std::string_view key;
  bool supported;
};
constexpr FixedSwitch kFixedSwitches[] = {
    {"attention_bias", false},     {"mlp_bias", false},         {"add_cross_attention", false},
    {"is_encoder_decoder", false}, {"rope_interleaved", false},
};

const Family* find_family(std::string_view Family::*field, std::string_view value) {
  const auto* const family = std::ranges::find(kFamilies, value, field);
  return family == std::end(kFamilies) ? nullptr : family;
}

[[noreturn]] void throw_unsupported(const JsonObject& json, std::string_view field,
                                    const std::string& name) {
  CHECK(json.is_null("auto_map") || !json.contains("auto_map"), json.path(), ": ", field, " '",
        printable(name), "' needs custom code (auto_map), which is not supported");
  std::string supported;
  for (const Family& family : kFamilies) supported += concat(" ", family.architecture);
  throw Error(concat(json.path(), ": ", field, " '", printable(name),
                     "' is not supported; supported:", supported));
}

const Family& read_family(const JsonObject& json) {
  const auto architectures = json.find_strings("architectures");
  const std::optional<std::string> model_type = json.find_string("model_type");
  if (!architectures || architectures->empty()) {
    CHECK(model_type, json.path(), ": has neither architectures nor model_type");
    const Family* const family = find_family(&Family::model_type, *model_type);
    if (family == nullptr) throw_unsupported(json, "model_type", *model_type);
    return *family;
  }
  const std::string& architecture = architectures->front();
  const Family* const family = find_family(&Family::architecture, architecture);
  if (family == nullptr) throw_unsupported(json, "architecture", architecture);
  CHECK(!model_type || *model_type == family->model_type, json.path(), ": architecture ",
        architecture, " belongs to model_type '", family->model_type, "', got '",
        printable(*model_type), "'");
  return *family;
}

void refuse_quantised(const JsonObject& json) {
  const auto quantization = json.find_object("quantization_config");
  if (!quantization) return;
  const std::string method = quantization->find_string("quant_method").value_or("unknown method");
  throw Error(
      concat(json.path(), ": quantised checkpoints (", printable(method), ") are not supported"),
      "use the original bfloat16, float16 or float32 checkpoint");
}

void check_block_switches(const JsonObject& json) {
  for (const auto& [key, supported] : kFixedSwitches) {
    const bool value = json.find_bool(key).value_or(supported);
    CHECK(value == supported, json.path(), ": ", key, " ", value ? "true" : "false",
          " is not supported");
  }
  const std::string activation = json.find_string("hidden_act").value_or("silu");
  CHECK(activation == "silu" || activation == "swish", json.path(), ": hidden_act '",
        printable(activation), "' is not supported; supported: silu swish");
}

void read_sizes(const JsonObject& json, const Family& family, ModelConfig& config) {
  config.hidden_size = json.get_integer_or("hidden_size", family.hidden_size, 1, 1 << 20);
  config.intermediate_size =
      json.get_integer_or("intermediate_size", family.intermediate_size, 1, 1 << 22);
  config.num_layers = json.get_integer_or("num_hidden_layers", family.num_layers, 1, 4096);
  config.vocab_size = json.get_integer_or("vocab_size", family.vocab_size, 1, 1 << 24);
  config.max_position_embeddings = json.get_integer_or(
      "max_position_embeddings", family.max_position_embeddings, 1, kMaxContextTokens);
  config.rms_norm_eps = json.get_number_or("rms_norm_eps", family.rms_norm_eps, 1e-30, 1.0);
}

void read_heads(const JsonObject& json, const Family& family, ModelConfig& config) {
  config.num_heads = json.get_integer_or("num_attention_heads", family.num_heads, 1, 4096);
  const bool as_many = family.num_kv_heads == 0 || json.is_null("num_key_value_heads");
  config.num_kv_heads = json.find_integer("num_key_value_heads", 1, 4096)
                            .value_or(as_many ? config.num_heads : family.num_kv_heads);
  CHECK(config.num_heads % config.num_kv_heads == 0, json.path(), ": num_attention_heads ",
        config.num_heads, " is not a multiple of num_key_value_heads ", config.num_kv_heads);

  const std::optional<int64_t> head_dim = json.find_integer("head_dim", 2, 1 << 16);
  CHECK(head_dim || config.hidden_size % config.num_heads == 0, json.path(),
        ": there is no head_dim, and hidden_size ", config.hidden_size,
        " is not a multiple of num_attention_heads ", config.num_heads);
  config.head_dim = head_dim.value_or(config.hidden_size / config.num_heads);
  CHECK(config.head_dim > 0 && config.head_dim % 2 == 0, json.path(), ": head_dim ",
        config.head_dim, " must be even", head_dim ? "" : " (hidden_size / num_attention_heads)");
}

// Absent means the class default, null means none.
int64_t read_sliding_window(const JsonObject& json, const Family& family,
                            std::optional<std::string_view> layer_type) {
  // A window in a family without windows stays unread and is reported as not understood.
  int64_t window = family.sliding_window.value_or(0);
  if (family.sliding_window || json.is_null("sliding_window")) {
    const auto given = json.find_integer("sliding_window", 1, kMaxContextTokens);
    if (json.contains("sliding_window")) window = given.value_or(0);
  }
  if (layer_type == kFullAttention) return 0;
  CHECK(layer_type != kSlidingAttention || window > 0, json.path(),
        ": layer_types says sliding_attention but there is no sliding_window");
  return window;
}

std::optional<DType> read_dtype(const JsonObject& json) {
  const std::optional<std::string> old_name = json.find_string("torch_dtype");
  const std::optional<std::string> name = json.find_string("dtype");
  const std::string declared = name ? *name : old_name.value_or("");
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    if (declared == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

// The first of `keys`, and how many more there are: a hostile file may have a million.
std::string shortened_list(const std::vector<std::string>& keys) {
  constexpr size_t kMaxNamed = 10;
  std::string list;
  for (size_t i = 0; i < std::min(keys.size(), kMaxNamed); ++i) {
    list += concat(i == 0 ? "" : ", ", keys[i]);
  }
  if (keys.size() > kMaxNamed) list += concat(" and ", keys.size() - kMaxNamed, " more");
  return list;
}

void check_unread_keys(const JsonObject& json, bool allow_unknown,
                       std::vector<std::string>& warnings) {
  std::vector<std::string> keys = json.unread_fields();
  std::erase_if(keys, is_ignorable_config_key);
  if (keys.empty()) return;
  const std::string message =
      concat(json.path(), ": not understood, results may be wrong: ", shortened_list(keys));
  if (!allow_unknown) throw Error(message, "--allow-unknown-config loads the model anyway");
  warnings.push_back(message);
}

}  // namespace

ModelConfig read_hf_config(const JsonObject& json, bool allow_unknown,
                           std::vector<std::string>& warnings) {
  const Family& family = read_family(json);
  refuse_quantised(json);
  check_block_switches(json);

  ModelConfig config;
  config.model_type = family.model_type;
  config.architecture = family.architecture;
  read_sizes(json, family, config);
  read_heads(json, family, config);
  const auto layer_type = read_layer_type(json, config.num_layers);
  config.sliding_window = read_sliding_window(json, family, layer_type);
  const RopeConfig rope = read_rope_config(
      json, config.sliding_window > 0 ? kSlidingAttention : kFullAttention, family.rope_theta);
  config.rope_theta = rope.theta;
  config.rope_scaling = rope.scaling;
  config.ties_embeddings = json.get_bool_or("tie_word_embeddings", false);
  config.dtype = read_dtype(json);
  config.eos_token_ids = json.find_integers("eos_token_id", 0, config.vocab_size - 1);
  config.bos_token_id = json.find_integer("bos_token_id", 0, config.vocab_size - 1);
  check_unread_keys(json, allow_unknown, warnings);
  return config;
}

}  // namespace tessera
