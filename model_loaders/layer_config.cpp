#include "model_loaders/layer_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"
#include "model_loaders/rope_config.h"

namespace tessera {
namespace {

constexpr std::string_view kWindowSwitch = "use_sliding_window";

// The window of layers that have one; 0: none has. Absent means the class default, null means none.
int64_t read_window(const JsonObject& json, const LayerRules& rules) {
  // A window in a family without windows stays unread and is reported as not understood, unless the
  // file itself switches it off, as those do that were made from Qwen's.
  if (!rules.sliding_window && json.find_bool(kWindowSwitch) == false) {
    json.find_integer("sliding_window", 0, kMaxContextTokens);
    json.find_integer("max_window_layers", 0, kMaxContextTokens);
  }
  int64_t window = rules.sliding_window.value_or(0);
  if (rules.sliding_window || json.is_null("sliding_window")) {
    const auto given = json.find_integer("sliding_window", 1, kMaxContextTokens);
    if (json.contains("sliding_window")) window = given.value_or(0);
  }
  const bool is_on = json.find_bool(kWindowSwitch).value_or(false);
  return is_on || !rules.window_has_switch ? window : 0;
}

// The switch of some families says nothing to the class of another, where tools leave it in.
void warn_of_window(const JsonObject& json, const ModelFamily& family, int64_t window,
                    const std::vector<bool>& slides, std::vector<std::string>& warnings) {
  const bool has_window = std::ranges::find(slides, true) != slides.end();
  if (!has_window || json.find_bool(kWindowSwitch) != false) return;
  warnings.push_back(
      concat(json.path(), ": ", json.field(kWindowSwitch), " is false, but the sliding_window of ",
             window, " is kept: ", family.model_type, " has no such switch in transformers 5"));
}

// Which layers turn queries and keys, as far as it does not depend on windows.
std::vector<bool> read_rotating_layers(const JsonObject& json, const LayerRules& rules,
                                       int64_t num_layers) {
  std::vector<bool> rotates(static_cast<size_t>(num_layers), true);
  if (rules.rotating != RotatingLayers::kListed) return rotates;
  constexpr std::string_view kKey = "no_rope_layers";  // 1: a layer that rotates
  const std::vector<int64_t> listed = json.find_integers(kKey, 0, 1);
  const int64_t interval =
      json.find_integer("no_rope_layer_interval", 1, kMaxContextTokens).value_or(4);
  const bool is_listed = json.contains(kKey) && !json.is_null(kKey);
  CHECK(!is_listed || static_cast<int64_t>(listed.size()) >= num_layers, json.path(), ": ",
        json.field(kKey), " has ", counted(listed.size(), "entry", "entries"),
        ", num_hidden_layers is ", num_layers);
  for (size_t i = 0; i < rotates.size(); ++i) {
    rotates[i] = is_listed ? listed[i] == 1 : (static_cast<int64_t>(i) + 1) % interval != 0;
  }
  return rotates;
}

int64_t read_interval(const JsonObject& json, const LayerRules& rules, bool is_needed) {
  if (rules.interval_key.empty()) return rules.full_attention_interval;
  if (!is_needed && json.is_string(rules.interval_key)) {
    json.find_string(rules.interval_key);  // "LLLG", beside the list that it stands for
    return rules.full_attention_interval;
  }
  // Where nothing slides, transformers writes 0 beside the list.
  return json.find_integer(rules.interval_key, is_needed ? 1 : 0, kMaxContextTokens)
      .value_or(rules.full_attention_interval);
}

// The layers of layer_types that see a window, or nothing when there is no such list.
std::optional<std::vector<bool>> read_layer_types(const JsonObject& json, int64_t num_layers) {
  const std::optional<std::vector<std::string>> types = json.find_strings("layer_types");
  if (!types) return std::nullopt;
  CHECK(static_cast<int64_t>(types->size()) == num_layers, json.path(), ": layer_types has ",
        counted(types->size(), "entry", "entries"), ", num_hidden_layers is ", num_layers);
  std::vector<bool> slides;
  for (const std::string& type : *types) {
    CHECK(is_layer_type(type), json.path(), ": layer type '", printable(type),
          "' is not supported; supported: ", kFullAttention, " ", kSlidingAttention);
    slides.push_back(type == kSlidingAttention);
  }
  return slides;
}

// The layers that see a window.
std::vector<bool> read_sliding_layers(const JsonObject& json, const LayerRules& rules,
                                      int64_t window, const std::vector<bool>& rotates) {
  const auto num_layers = static_cast<int64_t>(rotates.size());
  const auto listed = read_layer_types(json, num_layers);
  const int64_t interval = read_interval(json, rules, !listed && window > 0);
  const int64_t first = rules.sliding == SlidingLayers::kFromMaxWindowLayers
                            ? json.get_integer_or("max_window_layers", 28, 0, kMaxContextTokens)
                            : 0;
  if (listed) {
    CHECK(window > 0 || std::ranges::find(*listed, true) == listed->end(), json.path(),
          ": layer_types says sliding_attention but there is no sliding_window");
    return *listed;
  }
  CHECK(window > 0 || rules.sliding != SlidingLayers::kAllButEvery, json.path(), ": ",
        json.field("sliding_window"),
        " is null, but layers of this family slide where there is no layer_types");
  std::vector<bool> slides(rotates.size(), window > 0);
  for (size_t i = 0; i < slides.size() && window > 0; ++i) {
    const auto layer = static_cast<int64_t>(i);
    if (rules.sliding == SlidingLayers::kAllButEvery) slides[i] = (layer + 1) % interval != 0;
    if (rules.sliding == SlidingLayers::kFromMaxWindowLayers) slides[i] = layer >= first;
    if (rules.sliding == SlidingLayers::kWithoutRope) slides[i] = !rotates[i];
  }
  return slides;
}

void stop_rotation_of_full_layers(const LayerRules& rules, int64_t window,
                                  const std::vector<bool>& slides, std::vector<bool>& rotates) {
  const bool only_sliding = rules.rotating == RotatingLayers::kSliding ||
                            (rules.rotating == RotatingLayers::kSlidingIfWindows && window > 0);
  if (only_sliding) rotates = slides;
}

// Dynamic scaling and yarn reach `factor` times as far as the training did. Dynamic scaling begins
// where max_position_embeddings ends. Yarn that a user has added to config.json, as Qwen's model
// cards say, leaves that number as it was.
void reach_further(const RopeScaling& scaling, ModelConfig& config) {
  using Kind = RopeScaling::Kind;
  if (scaling.kind != Kind::kDynamic && scaling.kind != Kind::kYarn) return;
  const double reach =
      std::min(static_cast<double>(scaling.original_max_position_embeddings) * scaling.factor,
               static_cast<double>(kMaxContextTokens));
  config.max_position_embeddings =
      std::max(config.max_position_embeddings, static_cast<int64_t>(reach));
}

// The tables of full layers and of those that see a window; none where there are no such layers.
struct TypeTables {
  std::optional<RopeTable> full;
  std::optional<RopeTable> sliding;
};

// Types differ in nothing but the table: what else there is goes to `config`.
TypeTables read_tables(const JsonObject& json, const ModelFamily& family,
                       const std::vector<bool>& slides, ModelConfig& config,
                       std::vector<std::string>& warnings) {
  const auto has = [&](bool sliding) {
    return family.rope.sliding_layers_differ || std::ranges::find(slides, sliding) != slides.end();
  };
  std::optional<RopeConfig> full, sliding;
  if (has(false)) full = read_rope_config(json, kFullAttention, family, config, warnings);
  if (has(true)) sliding = read_rope_config(json, kSlidingAttention, family, config, warnings);
  CHECK(!full || !sliding ||
            (full->layout == sliding->layout && full->query_scaling == sliding->query_scaling),
        json.path(), ": full_attention and sliding_attention turn different parts of a head or ",
        "scale queries differently, which is not supported");
  const RopeConfig& either = full ? *full : *sliding;
  config.rotary = either.layout;
  config.block.query_scaling = either.query_scaling;
  reach_further(either.table.scaling, config);
  TypeTables tables;
  if (full) tables.full = full->table;
  if (sliding) tables.sliding = sliding->table;
  return tables;
}

}  // namespace

bool is_layer_type(std::string_view name) {
  return name == kFullAttention || name == kSlidingAttention;
}

int64_t rope_table_index(const RopeTable& table, ModelConfig& config) {
  const auto found = std::ranges::find(config.rope_tables, table);
  const int64_t index = found - config.rope_tables.begin();
  if (found == config.rope_tables.end()) config.rope_tables.push_back(table);
  return index;
}

void read_layers(const JsonObject& json, const ModelFamily& family, ModelConfig& config,
                 std::vector<std::string>& warnings) {
  const LayerRules& rules = family.layers;
  const int64_t window = read_window(json, rules);
  std::vector<bool> rotates = read_rotating_layers(json, rules, config.num_layers);
  const std::vector<bool> slides = read_sliding_layers(json, rules, window, rotates);
  stop_rotation_of_full_layers(rules, window, slides, rotates);
  warn_of_window(json, family, window, slides, warnings);

  const TypeTables tables = read_tables(json, family, slides, config, warnings);
  for (size_t i = 0; i < slides.size(); ++i) {
    LayerSpec layer{.sliding_window = slides[i] ? window : 0, .rope_table = std::nullopt};
    if (rotates[i]) {
      layer.rope_table = rope_table_index(slides[i] ? *tables.sliding : *tables.full, config);
    }
    config.block.layers.push_back(layer);
  }
}

}  // namespace tessera
