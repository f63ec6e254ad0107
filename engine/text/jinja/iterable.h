// What filters such as map give and what d.items() gives: elements to go through, but without
// places, operators or a text of their own.
#pragma once

#include <vector>

#include "engine/text/jinja/value.h"

namespace tessera::jinja {

struct Iterable {
  enum class Kind : uint8_t {
    kIterator,  // Python's: true even without elements, and every element is seen once
    kView,      // of a dict: everyone who goes through it sees all elements, and it has a length
  };

  // Throws Error for elements that no container can hold.
  Iterable(Kind kind, std::vector<Value> elements);

  bool is_iterator() const { return kind == Kind::kIterator; }

  Kind kind;
  std::vector<Value> elements;
  size_t next = 0;  // of an iterator: the elements before it have been seen
  // Whether some of the elements may be seen already: a loop was left before the end, or another
  // iterator has this one behind it. Python sees elements as late as it can, so that only Python
  // knows which are left.
  bool is_open = false;
  int nesting = 1;
};

}  // namespace tessera::jinja
