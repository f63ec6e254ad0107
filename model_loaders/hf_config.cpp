#include "model_loaders/hf_config.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "kernels/tensor/check.h"
#include "model_loaders/hf_config_keys.h"
#include "model_loaders/layer_types.h"
#include "model_loaders/model_family.h"
#include "model_loaders/printable.h"
#include "model_loaders/rope_config.h"

namespace tessera {
namespace {

// The row whose `field` is `value`, or nullptr.
const ModelFamily* find_family(std::string_view ModelFamily::*field, std::string_view value) {
  const auto family = std::ranges::find(model_families(), value, field);
  return family == model_families().end() ? nullptr : &*family;
}

[[noreturn]] void throw_unsupported(const JsonObject& json, std::string_view field,
                                    const std::string& name) {
  CHECK(json.is_null("auto_map") || !json.contains("auto_map"), json.path(), ": ", field, " '",
        printable(name), "' needs custom code (auto_map), which is not supported");
  std::string supported;
  for (const ModelFamily& family : model_families()) supported += concat(" ", family.architecture);
  throw Error(concat(json.path(), ": ", field, " '", printable(name),
                     "' is not supported; supported:", supported));
}

const ModelFamily& read_family(const JsonObject& json) {
  const auto architectures = json.find_strings("architectures");
  const std::optional<std::string> model_type = json.find_string("model_type");
  if (!architectures || architectures->empty()) {
    CHECK(model_type, json.path(), ": has neither architectures nor model_type");
    const ModelFamily* const family = find_family(&ModelFamily::model_type, *model_type);
    if (family == nullptr) throw_unsupported(json, "model_type", *model_type);
    return *family;
  }
  const std::string& architecture = architectures->front();
  const ModelFamily* const family = find_family(&ModelFamily::architecture, architecture);
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

void read_sizes(const JsonObject& json, const ModelFamily& family, ModelConfig& config) {
  config.hidden_size = json.get_integer_or("hidden_size", family.hidden_size, 1, 1 << 20);
  config.intermediate_size =
      json.get_integer_or("intermediate_size", family.intermediate_size, 1, 1 << 22);
  config.num_layers = json.get_integer_or("num_hidden_layers", family.num_layers, 1, 4096);
  config.vocab_size = json.get_integer_or("vocab_size", family.vocab_size, 1, 1 << 24);
  config.max_position_embeddings = json.get_integer_or(
      "max_position_embeddings", family.max_position_embeddings, 1, kMaxContextTokens);
  config.rms_norm_eps = json.get_number_or("rms_norm_eps", family.rms_norm_eps, 1e-30, 1.0);
}

void read_heads(const JsonObject& json, const ModelFamily& family, ModelConfig& config) {
  config.num_heads = json.get_integer_or("num_attention_heads", family.num_heads, 1, 4096);
  const bool as_many = family.num_kv_heads == 0 || json.is_null("num_key_value_heads");
  config.num_kv_heads = json.find_integer("num_key_value_heads", 1, 4096)
                            .value_or(as_many ? config.num_heads : family.num_kv_heads);
  CHECK(config.num_heads % config.num_kv_heads == 0, json.path(), ": num_attention_heads ",
        config.num_heads, " is not a multiple of num_key_value_heads ", config.num_kv_heads);

  const std::optional<int64_t> given = json.find_integer("head_dim", 2, 1 << 16);
  const auto head_dim = given || family.head_dim == 0 ? given : family.head_dim;
  CHECK(head_dim || config.hidden_size % config.num_heads == 0, json.path(),
        ": there is no head_dim, and hidden_size ", config.hidden_size,
        " is not a multiple of num_attention_heads ", config.num_heads);
  config.head_dim = head_dim.value_or(config.hidden_size / config.num_heads);
  CHECK(config.head_dim > 0 && config.head_dim % 2 == 0, json.path(), ": head_dim ",
        config.head_dim, " must be even", head_dim ? "" : " (hidden_size / num_attention_heads)");
}

// Absent means the class default, null means none.
int64_t read_sliding_window(const JsonObject& json, const ModelFamily& family,
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

// All layers have one window and one table.
void read_layers(const JsonObject& json, const ModelFamily& family, ModelConfig& config) {
  const auto layer_type = read_layer_type(json, config.num_layers);
  const int64_t window = read_sliding_window(json, family, layer_type);
  config.rope_tables = {
      read_rope_table(json, window > 0 ? kSlidingAttention : kFullAttention, family.rope_theta)};
  config.block.layers.assign(static_cast<size_t>(config.num_layers),
                             {.sliding_window = window, .rope_table = 0});
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
  const ModelFamily& family = read_family(json);
  refuse_quantised(json);

  ModelConfig config;
  config.model_type = family.model_type;
  config.architecture = family.architecture;
  config.block = family.block;
  for (const BlockKey& key : family.keys) key.read(json, key.key, config.block);
  read_sizes(json, family, config);
  read_heads(json, family, config);
  read_layers(json, family, config);
  config.ties_embeddings = json.get_bool_or("tie_word_embeddings", false);
  config.dtype = read_dtype(json);
  config.eos_token_ids = json.find_integers("eos_token_id", 0, config.vocab_size - 1);
  config.bos_token_id = json.find_integer("bos_token_id", 0, config.vocab_size - 1);
  check_unread_keys(json, allow_unknown, warnings);
  return config;
}

}  // namespace tessera
