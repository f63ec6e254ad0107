#include "model_loaders/xxhash64.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tessera {
namespace {

uint64_t hash_of(std::string_view text) { return xxhash64(text.data(), text.size()); }

// Values that other implementations publish.
TEST(Xxhash64, AgreesWithOthers) {
  EXPECT_EQ(hash_of(""), 0xef46db3751d8e999u);
  EXPECT_EQ(hash_of("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(hash_of("as"), 0x1c330fb2d66be179u);
  EXPECT_EQ(hash_of("asd"), 0x631c37ce72a97393u);
  EXPECT_EQ(hash_of("asdf"), 0x415872f599cea71eu);
  EXPECT_EQ(hash_of("Call me Ishmael. Some years ago--never mind how long precisely-"),
            0x02a2e85470d6fd96u);
}

TEST(Xxhash64, EveryByteOfEveryLengthCounts) {
  for (size_t size = 1; size < 100; ++size) {
    const std::string text(size, 'x');
    for (size_t at = 0; at < size; ++at) {
      std::string other = text;
      other[at] = 'y';
      EXPECT_NE(hash_of(text), hash_of(other)) << size << ' ' << at;
    }
  }
}

}  // namespace
}  // namespace tessera
