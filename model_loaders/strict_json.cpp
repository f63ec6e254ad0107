#include "model_loaders/strict_json.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model_loaders/printable.h"

namespace tessera {
namespace {

// A document takes many times the memory of its text.
constexpr size_t kMaxValues = 2'000'000;  // a prompt of a million token ids, and some more

// Of the text: some milliseconds of small values.
constexpr int64_t kBytesBetweenPauses = int64_t{1} << 18;

// The bytes that the parser reads, one by one, even of a string of many megabytes; an iterator.
class PausingText {
 public:
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  // `pause`, if any, outlives the object.
  PausingText(const char* position, const Pause& pause) : position_(position), pause_(&pause) {}

  reference operator*() const { return *position_; }
  PausingText& operator++() {
    ++position_;
    if (--bytes_to_pause_ == 0) stop_for_pause();
    return *this;
  }
  bool operator==(const PausingText& other) const { return position_ == other.position_; }

 private:
  void stop_for_pause() {
    bytes_to_pause_ = kBytesBetweenPauses;
    if (*pause_) (*pause_)();
  }

  const char* position_;
  const Pause* pause_;
  int64_t bytes_to_pause_ = kBytesBetweenPauses;
};

// Receives the parser's events and builds the document from them. The parser's own builder keeps
// the last of two equal keys, and does not say where a number was that it could not hold. `Json` is
// nlohmann::json or ordered_json. The latter finds a key by looking at all, which a text of a
// million keys would make take hours: here it is never asked.
template <typename Json>
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  DocumentBuilder(std::string_view text, const JsonSource& source, std::string_view left_out)
      : text_(text), source_(source), left_out_(left_out) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string& digits) override {
    if (kIsOrdered && left_out_depth_ == 0 && !is_left_out_) check_is_no_integer(digits);
    return add(value);
  }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(typename Json::binary_t&) override { return false; }  // has no form in text
  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& key) override {
    if (left_out_depth_ > 0) return true;
    CHECK(is_new_key(key), source_.prefix(), "duplicate key '", printable(key), "'");
    key_ = std::move(key);
    is_left_out_ = !left_out_.empty() && key_ == left_out_;
    return true;
  }

  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& problem) override {
    const size_t offset_bytes = offset_of_parser_position(position, text_);
    const bool is_number_too_large =
        dynamic_cast<const nlohmann::detail::out_of_range*>(&problem) != nullptr;
    if (!is_number_too_large) throw invalid_json(source_, offset_bytes, text_);
    // The parser stands behind the number.
    throw JsonLimitError(concat(source_.prefix(), "the number ", printable(token), " at ",
                                source_.byte_name, ' ', position - std::min(position, token.size()),
                                " is too large (limit ", std::numeric_limits<double>::max(), ")"));
  }

 private:
  static constexpr bool kIsOrdered = std::is_same_v<Json, nlohmann::ordered_json>;

  bool is_new_key(const std::string& key) {
    if constexpr (kIsOrdered) return keys_.back().insert(key).second;
    return !open_.back()->contains(key);
  }

  // The parser takes integers of more than 64 bits for floats, which have other digits.
  void check_is_no_integer(const std::string& digits) const {
    if (digits.find_first_of(".eE") != std::string::npos) return;
    const bool has_key = !open_.empty() && open_.back()->is_object();
    throw JsonLimitError(concat(source_.prefix(), has_key ? concat(printable(key_), ": ") : "",
                                "the integer ", printable(digits), " does not fit in 64 bits"));
  }

  // Places the value where the text has it and returns that place.
  Json& place(Json value) {
    if (++num_values_ > kMaxValues) {
      throw JsonLimitError(concat(source_.prefix(), "has more than ", kMaxValues, " JSON values"));
    }
    if (open_.empty()) return root_ = std::move(value);
    Json& container = *open_.back();
    if (container.is_object()) {
      auto& entries = container.template get_ref<typename Json::object_t&>();
      return append(entries, std::move(key_), std::move(value));
    }
    container.push_back(std::move(value));
    return container.back();
  }
  // Returns the value in `entries`, which do not have the key.
  static Json& append(typename Json::object_t& entries, std::string key, Json value) {
    if constexpr (kIsOrdered) {
      entries.emplace_back(std::move(key), std::move(value));
      return entries.back().second;
    } else {
      return entries.emplace(std::move(key), std::move(value)).first->second;
    }
  }
  bool add(Json value) {
    if (left_out_depth_ == 0 && !std::exchange(is_left_out_, false)) place(std::move(value));
    return true;
  }
  bool open(Json container) {
    if (left_out_depth_ > 0 || std::exchange(is_left_out_, false)) {
      ++left_out_depth_;
      return true;
    }
    open_.push_back(&place(std::move(container)));
    if constexpr (kIsOrdered) keys_.emplace_back();
    return true;
  }
  bool close() {
    if (left_out_depth_ > 0) {
      --left_out_depth_;
      return true;
    }
    open_.pop_back();
    if constexpr (kIsOrdered) keys_.pop_back();
    return true;
  }

  std::string_view text_;
  const JsonSource& source_;
  std::string_view left_out_;
  bool is_left_out_ = false;   // what comes next has that key
  size_t left_out_depth_ = 0;  // containers of it that the text has begun and not ended
  Json root_;
  // The containers that the text has begun and not ended, outermost first. While one is open,
  // nothing is added to those around it: they do not move.
  std::vector<Json*> open_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each, with kIsOrdered
  std::string key_;
  size_t num_values_ = 0;
};

template <typename Json>
Json parse(std::string_view text, const JsonSource& source, const OrderedJsonOptions& options) {
  check_json_text(text, source);
  DocumentBuilder<Json> builder(text, source, options.left_out);
  Json::sax_parse(PausingText(text.data(), options.pause),
                  PausingText(text.data() + text.size(), options.pause), &builder);
  return builder.take();
}

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const JsonSource& source) {
  return parse<nlohmann::json>(text, source, {});
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonSource& source,
                                          const OrderedJsonOptions& options) {
  return parse<nlohmann::ordered_json>(text, source, options);
}

}  // namespace tessera
