// The test binaries of an unpacked archive read the data beside them, wherever they were compiled.
#include "tests/source_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class SourceFolder : public testing::Test {
 protected:
  SourceFolder() { fs::create_directories(root_ / "archive" / "bin"); }
  ~SourceFolder() override { fs::remove_all(root_); }

  // Makes a folder that holds tests' data.
  fs::path with_data(const std::string& name) const {
    fs::create_directories(root_ / name / "tests" / "golden" / "data");
    return root_ / name;
  }
  fs::path executable() const { return root_ / "archive" / "bin" / "golden_test"; }

  const fs::path root_ = fs::temp_directory_path() / concat("tessera_source_folder_", getpid());
};

TEST_F(SourceFolder, IsBesideTheExecutableFirst) {
  const fs::path archive = with_data("archive");
  const fs::path sources = with_data("sources");
  EXPECT_EQ(find_source_folder(executable(), sources), archive);
  EXPECT_EQ(find_source_folder(executable(), root_ / "gone"), archive);
}

TEST_F(SourceFolder, IsElseWhereItWasCompiled) {
  const fs::path sources = with_data("sources");
  EXPECT_EQ(find_source_folder(executable(), sources), sources);
}

// This program itself, copied away from its build folder with the data of one model.
TEST_F(SourceFolder, ACopyOfTheBinaryReadsTheDataBesideIt) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  const fs::path data = with_data("archive") / "tests" / "golden" / "data";
  fs::copy(source_folder() / "tests" / "golden" / "data" / "tied", data / "tied");
  fs::copy(self, executable());
  // An archive's binaries look for their libraries there.
  fs::create_directory_symlink(self.parent_path().parent_path() / "lib", root_ / "archive" / "lib");
  const std::string command =
      executable().string() + " --gtest_filter=Models/GoldenTest.LogitsMatch/tied_cpu > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ofstream(data / "tied" / "golden.dat") << "damaged";
  EXPECT_NE(std::system((command + " 2>&1").c_str()), 0);
}

}  // namespace
}  // namespace tessera
