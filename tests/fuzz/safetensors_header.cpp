// The JSON header of a safetensors file, without the file around it.
#include "model_loaders/safetensors_header.h"

#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/safetensors_seeds.h"

namespace tessera {
namespace {

const JsonSource kSource{"model.safetensors", "header byte"};

std::string header_of(const std::vector<SafetensorsRow>& rows) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const SafetensorsRow& row : rows) {
    header[row.name] = {
        {"dtype", row.dtype},
        {"shape", std::vector<int64_t>(row.shape.dims().begin(), row.shape.dims().end())},
        {"data_offsets", row.data_offsets}};
  }
  return header.dump();
}

bool same(const SafetensorsRow& left, const SafetensorsRow& right) {
  return left.name == right.name && left.dtype == right.dtype && left.shape == right.shape &&
         left.data_offsets == right.data_offsets;
}

void read(std::string_view bytes) {
  const std::vector<SafetensorsRow> rows = parse_safetensors_header(bytes, kSource);
  // A tensor called __metadata__ cannot be: that key is read as what it is.
  const std::vector<SafetensorsRow> again = parse_safetensors_header(header_of(rows), kSource);
  require(std::ranges::equal(rows, again, same), "a header written from its rows reads the same");
}

std::vector<std::string> seeds() {
  std::vector<std::string> headers;
  for (const std::string& file : safetensors_seeds()) {
    if (file.size() > 8) headers.push_back(file.substr(8));
  }
  return headers;
}

}  // namespace

FuzzTarget safetensors_header_target() {
  return {"safetensors_header", read, seeds(), safetensors_dictionary()};
}

}  // namespace tessera
