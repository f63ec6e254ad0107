// A JSON document from text that nobody has checked: files of models, lines of people.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "model_loaders/json_text.h"
#include "model_loaders/pause.h"

namespace tessera {

// The document. Whatever is wrong with the text is an Error that says where: what check_json_text()
// refuses, bytes that are not UTF-8, text after the end, a key that its object already has (also
// spelled with escapes); JsonLimitError for a number that no double holds and for more than two
// million values. No exception of the parser leaves this function.
nlohmann::json parse_strict_json(std::string_view text, const JsonSource& source);

struct OrderedJsonOptions {
  std::string_view left_out;  // what has this key is parsed but neither kept nor counted; "": none
  Pause pause = {};           // called every few hundred kilobytes of text
};

// The same with the keys of every object in the order of the text. Throws JsonLimitError for
// integers that do not fit in 64 bits too: what is parsed so is written again, with the same
// digits.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonSource& source,
                                          const OrderedJsonOptions& options = {});

}  // namespace tessera
