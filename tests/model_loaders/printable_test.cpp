#include "model_loaders/printable.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

TEST(Printable, KeepsAscii) { EXPECT_EQ(printable("model.norm {0} ~"), "model.norm {0} ~"); }

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\0b\x1b[2J\x7f\n"sv), "a\\x00b\\x1b[2J\\x7f\\x0a");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(printable(std::string(120, 'x')), std::string(120, 'x'));
  EXPECT_EQ(printable(std::string(121, 'x')), std::string(120, 'x') + "...");
}

}  // namespace
}  // namespace tessera
