#include "model_loaders/hf_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/tensor/check.h"
#include "model_loaders/hf_config_keys.h"
#include "model_loaders/layer_config.h"
#include "model_loaders/model_family.h"
#include "model_loaders/printable.h"
#include "model_loaders/rope_config.h"
#include "model_loaders/token_ids.h"

namespace tessera {
namespace {

// The row whose `field` is `value`, or nullptr.
template <typename Rows, typename Row>
const Row* find_row(const Rows& rows, std::string_view Row::*field, std::string_view value) {
  const auto row = std::ranges::find(rows, value, field);
  return row == rows.end() ? nullptr : &*row;
}

[[noreturn]] void throw_unsupported(const JsonObject& json, std::string_view field,
                                    const std::string& name) {
  CHECK(json.is_null("auto_map") || !json.contains("auto_map"), json.path(), ": ", field, " '",
        printable(name), "' needs custom code (auto_map), which is not supported");
  std::string supported;
  for (const ModelFamily& family : model_families()) supported += concat(" ", family.architecture);
  for (const ModelWrapper& row : model_wrappers()) supported += concat(" ", row.architecture);
  throw Error(concat(json.path(), ": ", field, " '", printable(name),
                     "' is not supported; supported:", supported));
}

// The row of what `json` names by its architecture, else by its model_type; nullptr when none of
// `rows` is.
template <typename Row, typename Rows>
const Row* named_row(const JsonObject& json, const Rows& rows) {
  const auto architectures = json.find_strings("architectures");
  const std::optional<std::string> model_type = json.find_string("model_type");
  if (!architectures || architectures->empty()) {
    CHECK(model_type, json.path(), ": has neither architectures nor model_type");
    return find_row(rows, &Row::model_type, *model_type);
  }
  const std::string& architecture = architectures->front();
  const Row* const row = find_row(rows, &Row::architecture, architecture);
  CHECK(row == nullptr || !model_type || *model_type == row->model_type, json.path(),
        ": architecture ", architecture, " belongs to model_type '", row->model_type, "', got '",
        printable(*model_type), "'");
  return row;
}

const ModelFamily& read_family(const JsonObject& json) {
  const auto* const family = named_row<ModelFamily>(json, model_families());
  if (family != nullptr) return *family;
  const auto architectures = json.find_strings("architectures");
  if (!architectures || architectures->empty()) {
    throw_unsupported(json, "model_type", json.find_string("model_type").value());
  }
  throw_unsupported(json, "architecture", architectures->front());
}

// The family of a model's text_config.
const ModelFamily& read_text_family(const JsonObject& text, const ModelWrapper& wrapper) {
  const auto types = std::span(wrapper.text_model_types);
  const std::string given = text.find_string("model_type").value_or(std::string(types.front()));
  const bool is_known = given != "" && std::ranges::find(types, given) != types.end();
  std::string supported;
  for (const std::string_view type : types) supported += concat(type.empty() ? "" : " ", type);
  CHECK(is_known, text.path(), ": ", text.field("model_type"), " '", printable(given),
        "' is not supported; supported:", supported);
  text.find_strings("architectures");
  return model_family(given);
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
  config.rms_norm_eps = json.get_number_or(family.norm_eps_key, family.norm_eps, 1e-30, 1.0);
}

void read_heads(const JsonObject& json, const ModelFamily& family, ModelConfig& config) {
  config.num_heads = json.get_integer_or("num_attention_heads", family.num_heads, 1, 4096);
  const bool as_many = family.num_kv_heads == 0 || json.is_null("num_key_value_heads");
  config.num_kv_heads = json.find_integer("num_key_value_heads", 1, 4096)
                            .value_or(as_many ? config.num_heads : family.num_kv_heads);
  CHECK(config.num_heads % config.num_kv_heads == 0, json.path(), ": num_attention_heads ",
        config.num_heads, " is not a multiple of num_key_value_heads ", config.num_kv_heads);

  const std::optional<int64_t> given = json.find_integer("head_dim", 2, 1 << 16);
  // null is not the class default: classes that take it divide hidden_size.
  const bool has_default = family.head_dim > 0 && !json.is_null("head_dim");
  const auto head_dim = given || !has_default ? given : family.head_dim;
  CHECK(head_dim || config.hidden_size % config.num_heads == 0, json.path(),
        ": there is no head_dim, and hidden_size ", config.hidden_size,
        " is not a multiple of num_attention_heads ", config.num_heads);
  config.head_dim = head_dim.value_or(config.hidden_size / config.num_heads);
  CHECK(config.head_dim > 0 && config.head_dim % 2 == 0, json.path(), ": head_dim ",
        config.head_dim, " must be even", head_dim ? "" : " (hidden_size / num_attention_heads)");
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
  const size_t prefix = json.field("").size();
  std::erase_if(keys, [&](const std::string& key) {
    return is_ignorable_config_key(std::string_view(key).substr(prefix));
  });
  if (keys.empty()) return;
  const std::string message =
      concat(json.path(), ": not understood, results may be wrong: ", shortened_list(keys));
  if (!allow_unknown) throw Error(message, "--allow-unknown-config loads the model anyway");
  warnings.push_back(message);
}

// A number in the precision of a model's dtype.
double rounded(double value, std::optional<DType> dtype) {
  const auto number = static_cast<float>(value);
  if (dtype == DType::kBFloat16) return to_float(to_bfloat16(number));
  if (dtype == DType::kFloat16) return to_float(to_float16(number));
  return number;
}

// The config of the language model inside another model's.
JsonObject text_config(const JsonObject& json) {
  const auto text = json.find_object("text_config");
  CHECK(text, json.path(), ": text_config is missing; it must be an object");
  return *text;
}

// What no family but those that say otherwise has.
void refuse_encoders(const JsonObject& json, ModelConfig& config) {
  for (const std::string_view key :
       {"add_cross_attention", "is_encoder_decoder", "rope_interleaved"}) {
    refuse_true(json, key, config);
  }
}

// What the config of a language model says, be it a whole config.json or a part.
void read_language_model(const JsonObject& json, const ModelFamily& family, ModelConfig& config,
                         std::vector<std::string>& warnings) {
  refuse_quantised(json);
  config.model_type = family.model_type;
  config.architecture = family.architecture;
  config.block = family.block;
  config.norm_offset = family.norm_offset;
  config.logit_multiplier = family.logit_multiplier;
  refuse_encoders(json, config);
  read_sizes(json, family, config);
  for (const FamilyKey& key : family.keys) key.read(json, key.key, config);
  read_heads(json, family, config);
  read_layers(json, family, config, warnings);
  config.ties_embeddings = json.get_bool_or("tie_word_embeddings", family.ties_embeddings);
  config.dtype = read_dtype(json);
  config.eos_token_ids = find_token_ids(json, "eos_token_id", config.vocab_size, warnings);
  config.bos_token_id = find_token_id(json, "bos_token_id", config.vocab_size, warnings);
}

// What the config of the model around the language model says about it: what the other config does
// not say, and of the embeddings what it says otherwise.
void read_wrapper(const JsonObject& json, const ModelWrapper& wrapper, ModelConfig& config,
                  std::vector<std::string>& warnings) {
  refuse_encoders(json, config);
  // transformers caps the logits of the same model alone, but not inside another.
  CHECK(config.block.logit_softcap == 0.0, json.path(), ": text_config.final_logit_softcapping ",
        config.block.logit_softcap, " is not supported in ", wrapper.architecture,
        "; supported: null");
  config.architecture = wrapper.architecture;
  config.name_prefix = NamePrefix::kLanguageModel;
  config.ties_embeddings = json.get_bool_or("tie_word_embeddings", config.ties_embeddings);
  config.is_untied = json.contains("tie_word_embeddings") && !config.ties_embeddings;
  const std::optional<DType> dtype = read_dtype(json);
  if (dtype) config.dtype = dtype;
  const auto eos = find_token_ids(json, "eos_token_id", config.vocab_size, warnings);
  if (!eos.empty()) config.eos_token_ids = eos;
  const auto bos = find_token_id(json, "bos_token_id", config.vocab_size, warnings);
  if (bos) config.bos_token_id = bos;
}

}  // namespace

ModelConfig read_hf_config(const JsonObject& json, bool allow_unknown,
                           std::vector<std::string>& warnings) {
  ModelConfig config;
  if (const auto* const wrapper = named_row<ModelWrapper>(json, model_wrappers())) {
    refuse_quantised(json);
    const JsonObject text = text_config(json);
    read_language_model(text, read_text_family(text, *wrapper), config, warnings);
    check_unread_keys(text, allow_unknown, warnings);
    read_wrapper(json, *wrapper, config, warnings);
  } else {
    read_language_model(json, read_family(json), config, warnings);
  }
  scale_embeddings(config);
  check_unread_keys(json, allow_unknown, warnings);
  return config;
}

void scale_embeddings(ModelConfig& config) {
  if (!model_family(config.model_type).scales_embeddings_by_root_of_hidden_size) return;
  config.block.embedding_multiplier =
      rounded(std::sqrt(static_cast<double>(config.hidden_size)), config.dtype);
}

}  // namespace tessera
