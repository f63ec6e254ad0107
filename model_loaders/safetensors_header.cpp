#include "model_loaders/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <span>
#include <unordered_set>
#include <utility>

#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr size_t kMaxMetadataKeys = 100'000;

// Receives the parser's events. Their order already follows the grammar of JSON; what is checked
// here is that every value is of the kind that its place wants.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderEvents(std::string_view text, const JsonSource& source) : text_(text), source_(source) {}

  std::vector<SafetensorsRow> take_rows() { return std::move(rows_); }

  bool key(std::string& key) override {
    switch (place_) {
      case Place::kMetadata:
        CHECK(metadata_keys_.insert(key).second, source_.path, ": duplicate key '", printable(key),
              "' in __metadata__");
        CHECK(metadata_keys_.size() <= kMaxMetadataKeys, source_.path, ": more than ",
              kMaxMetadataKeys, " keys in __metadata__");
        break;
      case Place::kTensor:
        begin_field(key);
        break;
      default:
        begin_entry(key);
    }
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kHeader;
    } else if (place_ == Place::kHeader) {
      place_ = in_metadata_ ? Place::kMetadata : Place::kTensor;
    } else {
      refuse_value();
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) end_tensor();
    place_ = place_ == Place::kHeader ? Place::kOutside : Place::kHeader;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::kTensor && field_ == kShape) {
      place_ = Place::kShape;
    } else if (place_ == Place::kTensor && field_ == kDataOffsets) {
      place_ = Place::kOffsets;
    } else {
      refuse_value();
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && num_numbers_ != 2) refuse_value();
    if (place_ == Place::kShape) row_.shape = Shape(std::span(dims_.data(), num_numbers_));
    place_ = Place::kTensor;
    return true;
  }

  bool number_unsigned(uint64_t number) override {
    if (place_ == Place::kShape && num_numbers_ < dims_.size()) {
      CHECK(number <= kMaxTensorDimension, source_.path, ": ", label(), ": dimension ", number,
            " is too large (limit ", kMaxTensorDimension, ")");
      dims_[num_numbers_++] = static_cast<int64_t>(number);
    } else if (place_ == Place::kOffsets && num_numbers_ < row_.data_offsets.size()) {
      row_.data_offsets[num_numbers_++] = number;
    } else {
      refuse_value();
    }
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || field_ != kDtype) refuse_value();
    row_.dtype = value;
    return true;
  }

  bool null() override {
    if (place_ != Place::kHeader || !in_metadata_) refuse_value();
    return true;
  }

  bool boolean(bool) override { return refuse_value(); }
  bool number_integer(int64_t) override { return refuse_value(); }
  bool number_float(double, const std::string&) override { return refuse_value(); }
  bool binary(nlohmann::json::binary_t&) override { return refuse_value(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    throw invalid_json(source_, offset_of_parser_position(position, text_), text_);
  }

 private:
  enum class Place : uint8_t { kOutside, kHeader, kMetadata, kTensor, kShape, kOffsets };
  // Bits of seen_fields_.
  enum Field : unsigned { kDtype = 1, kShape = 2, kDataOffsets = 4, kAllFields = 7 };

  void begin_entry(const std::string& key) {
    in_metadata_ = key == "__metadata__";
    if (in_metadata_) {
      CHECK(!std::exchange(has_metadata_, true), source_.path, ": duplicate __metadata__");
      return;
    }
    CHECK(rows_.size() < kMaxTensorsPerFile, source_.path, ": more than ", kMaxTensorsPerFile,
          " tensors");
    row_ = {.name = key, .dtype = {}, .shape = {}, .data_offsets = {}};
    seen_fields_ = 0;
  }

  void begin_field(const std::string& key) {
    field_ = key == "dtype"          ? kDtype
             : key == "shape"        ? kShape
             : key == "data_offsets" ? kDataOffsets
                                     : Field{};
    CHECK(field_ != 0, source_.path, ": ", label(), ": unknown field '", printable(key), "'");
    CHECK((seen_fields_ & field_) == 0, source_.path, ": ", label(), ": duplicate field '", key,
          "'");
    seen_fields_ |= field_;
    num_numbers_ = 0;
  }

  void end_tensor() {
    CHECK(seen_fields_ == kAllFields, source_.path, ": ", label(), " has no ",
          (seen_fields_ & kDtype) == 0   ? "dtype"
          : (seen_fields_ & kShape) == 0 ? "shape"
                                         : "data_offsets");
    rows_.push_back(std::move(row_));
  }

  // The result only lets callers return it.
  [[noreturn]] bool refuse_value() const {
    throw Error(concat(source_.path, ": ", what_belongs_here()));
  }

  std::string what_belongs_here() const {
    const std::string tensor = label();
    if (place_ == Place::kOutside) return "the header must be a JSON object";
    if (place_ == Place::kMetadata) return "__metadata__ values must be strings";
    if (place_ == Place::kHeader) {
      return in_metadata_ ? "__metadata__ must be an object of strings"
                          : tensor + " must be a JSON object";
    }
    if (field_ == kDtype) return tensor + ": dtype must be a string";
    if (field_ == kDataOffsets) return tensor + ": data_offsets must be two non-negative integers";
    return concat(tensor, ": shape must be a list of at most ", Shape::kMaxRank,
                  " non-negative integers");
  }

  std::string label() const { return concat("tensor '", printable(row_.name), "'"); }

  std::string_view text_;
  const JsonSource& source_;
  std::vector<SafetensorsRow> rows_;
  std::unordered_set<std::string> metadata_keys_;
  bool has_metadata_ = false;

  Place place_ = Place::kOutside;
  bool in_metadata_ = false;  // the entry of the header that is being read
  SafetensorsRow row_;        // its tensor
  unsigned seen_fields_ = 0;
  Field field_{};
  size_t num_numbers_ = 0;  // of the list that is being read
  std::array<int64_t, Shape::kMaxRank> dims_{};
};

void check_names_are_unique(const std::vector<SafetensorsRow>& rows, const std::string& path) {
  std::unordered_set<std::string_view> names;
  for (const SafetensorsRow& row : rows) {
    CHECK(names.insert(row.name).second, path, ": duplicate tensor '", printable(row.name), "'");
  }
}

}  // namespace

std::vector<SafetensorsRow> parse_safetensors_header(std::string_view text,
                                                     const JsonSource& source) {
  check_json_text(text, source);
  HeaderEvents events(text, source);
  nlohmann::json::sax_parse(text, &events);
  std::vector<SafetensorsRow> rows = events.take_rows();
  check_names_are_unique(rows, source.path);
  return rows;
}

}  // namespace tessera
