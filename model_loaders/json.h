// JSON objects of model folders, read without mercy.
//
// A reader that converts ("4096", 4096.7 and true to an integer) or takes the last of two equal
// keys loads another model than the one in the file. Here nothing is converted, and every error is
// "path: field must be ..., got ...".
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model_loaders/number_limits.h"

namespace tessera {

// A view of one object of a document; copies share the document.
//
// get_* needs the key. find_* gives nothing when it is absent or null. get_*_or gives `otherwise`
// when it is absent and refuses null: for keys whose absence and null mean different things, ask
// contains() first. Each of them counts the key as read, for unread_fields().
class JsonObject {
 public:
  // Throws when the text is not one JSON object in UTF-8: duplicate keys (also spelled with
  // escapes), byte order mark, NUL, text after the end, more than a million values, the limits of
  // json_text.h.
  // `path` is for messages.
  static JsonObject parse(std::string_view text, const std::string& path);

  // The same for a file of at most 16 MiB.
  static JsonObject read(const std::string& path);

  const std::string& path() const;
  std::vector<std::string> keys() const;

  // These do not count as reading.
  bool contains(std::string_view key) const;
  bool is_null(std::string_view key) const;  // present and null
  bool is_object(std::string_view key) const;
  bool is_string(std::string_view key) const;
  bool has_same(std::string_view key, const JsonObject& other) const;  // both have it, and equal

  // Numbers are in [low, high] or in `limits`; integers are written without fraction and exponent.
  int64_t get_integer(std::string_view key, int64_t low, int64_t high) const;
  int64_t get_integer_or(std::string_view key, int64_t otherwise, int64_t low, int64_t high) const;
  std::optional<int64_t> find_integer(std::string_view key,
                                      const NumberLimits<int64_t>& limits) const;
  std::optional<int64_t> find_integer(std::string_view key, int64_t low, int64_t high) const;
  // One integer or a list of them; empty when absent or null.
  std::vector<int64_t> find_integers(std::string_view key, int64_t low, int64_t high) const;

  double get_number(std::string_view key, double low, double high) const;
  double get_number_or(std::string_view key, double otherwise, double low, double high) const;
  std::optional<double> find_number(std::string_view key, const NumberLimits<double>& limits) const;
  std::optional<double> find_number(std::string_view key, double low, double high) const;

  // A list of numbers.
  std::vector<double> get_numbers(std::string_view key, double low, double high) const;

  bool get_bool_or(std::string_view key, bool otherwise) const;
  std::optional<bool> find_bool(std::string_view key) const;

  std::string get_string(std::string_view key) const;
  std::optional<std::string> find_string(std::string_view key) const;
  std::optional<std::vector<std::string>> find_strings(std::string_view key) const;

  std::optional<JsonObject> find_object(std::string_view key) const;
  // `expected` is what errors say that the value must be, where it may be something else as well.
  std::optional<std::vector<JsonObject>> find_objects(
      std::string_view key, std::string_view expected = "a list of objects") const;

  // The fields of `other` in place of those of the same name, or beside them. What is read of it
  // does not count as read here.
  JsonObject updated(const JsonObject& other) const;

  // "rope_scaling.factor": the key with the path of this object in the document.
  std::string field(std::string_view key) const;

  // Fields of this object that nobody read, without those that are null: they say nothing.
  std::vector<std::string> unread_fields() const;

 private:
  struct Document;
  JsonObject(std::shared_ptr<Document> document, const nlohmann::json* object, std::string prefix);

  // The value, or nullptr; counts as read.
  const nlohmann::json* value(std::string_view key) const;
  // The value, or nullptr when absent or null.
  const nlohmann::json* present_value(std::string_view key) const;
  // The value; throws "... is missing; it must be `expected`".
  const nlohmann::json& required_value(std::string_view key, std::string_view expected) const;
  // "path: field", the beginning of messages about it.
  std::string where(std::string_view key) const;

  std::shared_ptr<Document> document_;
  const nlohmann::json* object_;
  std::string prefix_;  // "rope_scaling." or ""
};

}  // namespace tessera
