// Decimal numbers of JSON as the library serde_json reads them by default: at most one unit in the
// last place beside the nearest double.
//
// Scores of a unigram model are added up and compared, so that of two ways to divide a word with
// equal sums the last bit decides. tokenizer.json's own library reads its numbers so.
#pragma once

#include <optional>
#include <string_view>

namespace tessera {

// Nothing when `text` is not a number as JSON writes it, or one too large for a double.
std::optional<double> parse_json_decimal(std::string_view text);

}  // namespace tessera
