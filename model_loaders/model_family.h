// The model families: a family is one row, which says how its config.json fills a ModelConfig and
// what its checkpoints call each weight. The rows are in families/, kin beside each other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/block_spec.h"
#include "model_loaders/family_keys.h"
#include "model_loaders/rope_table.h"
#include "model_loaders/weight_role.h"

namespace tessera {

// The tensors of a checkpoint that a weight is made of, the rows of one below those of the other.
struct WeightNames {
  WeightRole role;
  // "{layer}" and "{expert}" stand for an index. Those after the last are empty. If a role of
  // several matrices has one name only, that tensor holds them all.
  std::array<std::string_view, 3> sources;
};

// Which layers see only a window, where config.json has no layer_types. Layers count from 0.
enum class SlidingLayers : uint8_t {
  kAll,
  kAllButEvery,          // all but those for which i + 1 is a multiple of full_attention_interval
  kFromMaxWindowLayers,  // those from max_window_layers on
  kWithoutRope,          // those that do not rotate
};

enum class RotatingLayers : uint8_t {
  kAll,
  kSliding,           // those that see a window
  kSlidingIfWindows,  // the same in models with a window, else all
  kListed,            // those for which no_rope_layers has a 1
};

struct LayerRules {
  std::optional<int64_t> sliding_window;  // tokens, 0: null; none: the class has no such field
  bool window_has_switch = false;         // use_sliding_window, which is off when absent
  SlidingLayers sliding = SlidingLayers::kAll;
  int64_t full_attention_interval = 0;
  std::string_view interval_key;  // key of config.json that gives another interval; "": none
  RotatingLayers rotating = RotatingLayers::kAll;
};

struct RopeRules {
  RopeTable table;  // where config.json says nothing
  // Of parameters that name no theta; the key beside them then says nothing where there are none.
  // None: the table's theta.
  std::optional<double> theta_of_parameters;
  // Layers that see a window have a table of their own, which no scaling stretches.
  bool sliding_layers_differ = false;
  // The theta of that table, from the key rope_local_base_freq. None: that of the other layers.
  std::optional<double> local_theta;
  // The fraction of each head that turns. None: all, and no key says otherwise.
  std::optional<double> partial_rotary_factor;
  bool is_interleaved = false;
  // llama_4_scaling_beta among the parameters: queries grow with their position.
  bool scales_queries = false;
  // 0: the class has no such field.
  int64_t original_max_position_embeddings = 0;
};

struct ModelFamily {
  std::string_view model_type;
  std::string_view architecture;

  // The defaults of the family's config class in transformers: files leave out what equals them.
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;      // 0: hidden_size / num_heads
  int64_t max_position_embeddings = 0;
  std::string_view norm_eps_key = "rms_norm_eps";
  double norm_eps = 1e-6;
  bool ties_embeddings = false;

  BlockSpec block = {};      // what all models of the family have, without `layers`
  double norm_offset = 0.0;  // ModelConfig::norm_offset
  double logit_multiplier = 1.0;
  bool scales_embeddings_by_root_of_hidden_size = false;  // in the dtype of the model
  LayerRules layers = {};
  RopeRules rope = {};
  std::span<const FamilyKey> keys = {};       // what config.json says about the blocks besides
  std::span<const WeightNames> weights = {};  // names that are not those of Llama
};

// A model of which the language model is a part, under text_config.
struct ModelWrapper {
  std::string_view model_type;
  std::string_view architecture;
  std::array<std::string_view, 2> text_model_types;  // the first where text_config says none
};

const std::vector<ModelFamily>& model_families();
std::span<const ModelWrapper> model_wrappers();

// The row of `model_type`. Throws Error with the list of known ones when there is none.
const ModelFamily& model_family(std::string_view model_type);

// What the family calls the sources of a role; throws Error when nobody has a name for it.
std::span<const std::string_view> weight_sources(const ModelFamily& family, WeightRole role);

}  // namespace tessera
