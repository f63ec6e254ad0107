#include "engine/load_timings.h"

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/model_description.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

TEST(LoadTimings, Text) {
  const LoadTimings timings{.open_seconds = 0.01,
                            .device_seconds = 0.25,
                            .allocate_seconds = 0.02,
                            .weights_seconds = 0.5,
                            .warm_up_seconds = 0.125,
                            .total_seconds = 0.906,
                            .file_bytes = 16'000'000'000};
  EXPECT_EQ(timings.text(),
            "0.91 s = open 0.01 + device 0.25 + allocate 0.02 + weights 0.50 (32.0 GB/s) + "
            "warm-up 0.12");
  EXPECT_NE(LoadTimings().text().find("(0.0 GB/s)"), std::string::npos);
}

TEST(LoadTimings, ThePhasesOfALoadAddUp) {
  const ModelFixture model;
  const auto engine = Engine::load(model.options());
  const LoadTimings& timings = engine->load_timings();
  const double sum = timings.open_seconds + timings.device_seconds + timings.allocate_seconds +
                     timings.weights_seconds + timings.warm_up_seconds;
  EXPECT_GT(timings.total_seconds, 0.0);
  EXPECT_NEAR(sum, timings.total_seconds, 1e-3);
  EXPECT_EQ(timings.file_bytes, describe_model(model.options()).weights_bytes_on_disk);
}

}  // namespace
}  // namespace tessera
