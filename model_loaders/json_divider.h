// Reads a JSON object whose large lists are read where they stand, by a JsonScanner, and gathers
// the text of everything else: a small document.
#pragma once

#include <string>
#include <string_view>

#include "kernels/tensor/check.h"
#include "model_loaders/json_scanner.h"

namespace tessera {

class JsonDivider {
 public:
  // `text` changes where strings have escapes. It outlives the divider, as does `path`, which
  // begins every error.
  JsonDivider(std::string& text, const std::string& path) : scanner_(text, {.path = path}) {}

  JsonScanner& scanner() { return scanner_; }
  // What was not taken, as an object.
  const std::string& rest() const { return rest_; }

  // Copies an object to the rest, but for the values that `read_value` takes: a function of the
  // key's text as it stands in the file, quotes included, that reads the value and returns true, or
  // returns false. What it copies itself, by read_object(), stays.
  template <typename ReadValue>
  void read_object(const ReadValue& read_value) {
    scanner_.expect('{');
    rest_ += '{';
    bool is_first = true;
    for (bool ends = scanner_.consume('}'); !ends; ends = end_of_list('}')) {
      const size_t before = rest_.size();
      const std::string_view key = scanner_.raw_value();
      scanner_.expect(':');
      rest_ += concat(is_first ? "" : ",", key, ":");
      const size_t after_key = rest_.size();
      if (!read_value(key)) {
        rest_ += scanner_.raw_value();
      } else if (rest_.size() == after_key) {
        rest_.resize(before);  // a large list leaves nothing behind
        continue;
      }
      is_first = false;
    }
    rest_ += '}';
  }

  // Reads a list or an object of which read_element reads an element.
  template <typename ReadElement>
  void read_list(char opening, char closing, const ReadElement& read_element) {
    scanner_.expect(opening);
    for (bool ends = scanner_.consume(closing); !ends; ends = end_of_list(closing)) read_element();
  }

 private:
  bool end_of_list(char closing) {
    if (scanner_.consume(',')) return false;
    scanner_.expect(closing);
    return true;
  }

  JsonScanner scanner_;
  std::string rest_;
};

}  // namespace tessera
