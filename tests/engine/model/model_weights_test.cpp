#include "engine/model/model_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/backend.h"
#include "model_loaders/model_folder.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

using testing::ElementsAreArray;

// The weights of a golden model, of which no two tensors are equal, on the CPU.
class ModelWeightsTest : public testing::Test {
 protected:
  void load(const char* name) {
    model_.emplace(name);
    stored_ = model_->read_weights();
    const ModelConfig config = read_model_folder(model_->path(), false).config;
    const Checkpoint checkpoint = Checkpoint::open(model_->path());
    weights_.emplace(config, checkpoint, backend_->operations(), config.max_position_embeddings);
    EXPECT_EQ(weights_->read(checkpoint, backend_->device(), true, {}), checkpoint.total_bytes());
  }

  // The values of these tensors of the checkpoint, one after the other.
  std::vector<float> stored(const std::vector<std::string>& names) const {
    std::vector<float> values;
    for (const std::string& name : names) {
      const std::vector<float>& more = stored_.at(name + ".weight").values;
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  }

  static std::span<const float> values(const Tensor& tensor) {
    return {tensor.as<float>(), static_cast<size_t>(tensor.num_elements())};
  }

  std::optional<ModelFixture> model_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  HostWeights stored_;
  std::optional<ModelWeights> weights_;
};

TEST_F(ModelWeightsTest, EveryWeightIsWhereItsRoleSays) {
  load("gqa_d64");
  EXPECT_THAT(values(weights_->embed_tokens.data),
              ElementsAreArray(stored({"model.embed_tokens"})));
  EXPECT_THAT(values(weights_->norm), ElementsAreArray(stored({"model.norm"})));
  EXPECT_THAT(values(weights_->lm_head.data), ElementsAreArray(stored({"lm_head"})));
  ASSERT_EQ(weights_->layers.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const LayerWeights& layer = weights_->layers[static_cast<size_t>(i)];
    const std::string prefix = concat("model.layers.", i, ".");
    const std::string attention = prefix + "self_attn.";
    EXPECT_THAT(values(layer.input_layernorm),
                ElementsAreArray(stored({prefix + "input_layernorm"})));
    EXPECT_THAT(values(layer.qkv_proj.data),
                ElementsAreArray(
                    stored({attention + "q_proj", attention + "k_proj", attention + "v_proj"})));
    EXPECT_THAT(values(layer.o_proj.data), ElementsAreArray(stored({attention + "o_proj"})));
    EXPECT_THAT(values(layer.pre_feedforward_layernorm),
                ElementsAreArray(stored({prefix + "post_attention_layernorm"})));
    EXPECT_THAT(values(layer.gate_up_proj.data),
                ElementsAreArray(stored({prefix + "mlp.gate_proj", prefix + "mlp.up_proj"})));
    EXPECT_THAT(values(layer.down_proj.data), ElementsAreArray(stored({prefix + "mlp.down_proj"})));
  }
}

TEST_F(ModelWeightsTest, ATokenReadsAllButTheEmbeddingThatItLooksUp) {
  const auto bytes_of_all = [&] {
    uint64_t bytes = 0;
    for (const auto& [name, weight] : stored_) bytes += weight.values.size() * sizeof(float);
    return bytes;
  };
  load("gqa_d64");
  EXPECT_EQ(weights_->bytes_per_token(), bytes_of_all() - weights_->embed_tokens.data.size_bytes());
  load("tied");
  EXPECT_EQ(weights_->lm_head.data.data, weights_->embed_tokens.data.data);
  EXPECT_EQ(weights_->bytes_per_token(), bytes_of_all());
}

TEST_F(ModelWeightsTest, HasTheFrequenciesAndAmplitudesOfEveryRopeTable) {
  load("gqa_d64");
  ASSERT_EQ(weights_->rope_tables.size(), 1u);
  const std::span<const float> table = values(weights_->rope_tables.front());
  ASSERT_EQ(table.size(), 64u);
  EXPECT_EQ(table.front(), 1.0f);
  EXPECT_LT(table[31], table.front());
  EXPECT_THAT(table.subspan(32), testing::Each(1.0f));
}

}  // namespace
}  // namespace tessera
