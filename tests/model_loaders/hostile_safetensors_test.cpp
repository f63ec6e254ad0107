#include "tests/model_loaders/hostile_safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_loaders/safetensors.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

class HostileSafetensors : public testing::TestWithParam<HostileFile> {};

TEST_P(HostileSafetensors, IsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.safetensors", GetParam().bytes);
  const ThrownError error = thrown_error([&] { read_safetensors_header(FileReader(path), 0); });
  EXPECT_LT(error.cpu_seconds, 1.0);
  EXPECT_THAT(error.message, AllOf(StartsWith(path + ": "), HasSubstr(GetParam().message)));
  EXPECT_THAT(error.hint, HasSubstr(GetParam().hint));
  EXPECT_THAT(error.message, Each(testing::AllOf(testing::Ge(' '), testing::Le('~'))));
}

INSTANTIATE_TEST_SUITE_P(All, HostileSafetensors, testing::ValuesIn(hostile_safetensors()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tessera
