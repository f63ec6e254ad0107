#include "tests/fuzz/mutator.h"

#include <algorithm>

namespace tessera {

std::string Mutator::next() {
  std::string bytes = any_of(target_.seeds);
  for (size_t changes = 1 + below(8); changes > 0; --changes) change(bytes);
  bytes.resize(std::min(bytes.size(), target_.max_bytes));
  return bytes;
}

void Mutator::change(std::string& bytes) {
  const size_t position = below(bytes.size() + 1);
  const size_t length = std::min(1 + below(16), bytes.size() - position);
  switch (below(7)) {
    case 0:  // a word of the format
      bytes.insert(position, any_of(target_.dictionary));
      break;
    case 1:  // in place of what is there
      bytes.replace(position, length, any_of(target_.dictionary));
      break;
    case 2:
      bytes.erase(position, length);
      break;
    case 3:  // once more, elsewhere
      bytes.insert(below(bytes.size() + 1), bytes.substr(position, length));
      break;
    case 4:  // the end of another seed
      bytes.resize(position);
      if (const std::string& other = any_of(target_.seeds); !other.empty()) {
        bytes += other.substr(below(other.size()));
      }
      break;
    case 5:
      bytes.insert(position, 1, static_cast<char>(random_()));
      break;
    case 6:
      if (length > 0) bytes[position] = static_cast<char>(bytes[position] ^ 1 << below(8));
      break;
  }
}

}  // namespace tessera
