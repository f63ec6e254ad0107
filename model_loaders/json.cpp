#include "model_loaders/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "kernels/tensor/check.h"
#include "model_loaders/foreign_format.h"
#include "model_loaders/printable.h"
#include "model_loaders/strict_json.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxFileBytes = uint64_t{16} << 20;

std::string short_text(const Json& json) {
  // Containers are named, not printed: a whole file may be in there.
  if (json.is_array()) return concat("a list of ", json.size());
  if (json.is_object()) return "an object";
  return printable(json.dump(-1, ' ', true));
}

[[noreturn]] void refuse(const std::string& where, std::string_view expected, const Json& got) {
  throw Error(concat(where, " must be ", expected, ", got ", short_text(got)));
}

int64_t as_integer(const Json& json, const std::string& where,
                   const NumberLimits<int64_t>& limits) {
  // get<int64_t>() would wrap around.
  const bool fits =
      json.is_number_integer() &&
      !(json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  if (!fits || !limits.allow(json.get<int64_t>())) refuse(where, limits.text(), json);
  return json.get<int64_t>();
}

double as_number(const Json& json, const std::string& where, const NumberLimits<double>& limits) {
  if (!json.is_number() || !limits.allow(json.get<double>())) refuse(where, limits.text(), json);
  return json.get<double>();
}

bool as_bool(const Json& json, const std::string& where) {
  if (!json.is_boolean()) refuse(where, "true or false", json);
  return json.get<bool>();
}

std::string as_string(const Json& json, const std::string& where) {
  if (!json.is_string()) refuse(where, "a string", json);
  return json.get<std::string>();
}

}  // namespace

struct JsonObject::Document {
  std::string path;
  Json root;
  std::set<std::string, std::less<>> read_fields;
};

JsonObject::JsonObject(std::shared_ptr<Document> document, const Json* object, std::string prefix)
    : document_(std::move(document)), object_(object), prefix_(std::move(prefix)) {}

JsonObject JsonObject::parse(std::string_view text, const std::string& path) {
  auto document = std::make_shared<Document>();
  document->path = path;
  document->root = parse_strict_json(text, {path});
  CHECK(document->root.is_object(), path, ": must be a JSON object, got ",
        short_text(document->root));
  const Json* const root = &document->root;
  return JsonObject(std::move(document), root, "");
}

JsonObject JsonObject::read(const std::string& path) {
  return parse(read_json_file(path, kMaxFileBytes), path);
}

const std::string& JsonObject::path() const { return document_->path; }

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  for (const auto& item : object_->items()) keys.push_back(item.key());
  return keys;
}

bool JsonObject::contains(std::string_view key) const { return object_->contains(key); }

bool JsonObject::is_null(std::string_view key) const {
  return contains(key) && object_->find(key)->is_null();
}

bool JsonObject::is_object(std::string_view key) const {
  return contains(key) && object_->find(key)->is_object();
}

bool JsonObject::is_string(std::string_view key) const {
  return contains(key) && object_->find(key)->is_string();
}

bool JsonObject::has_same(std::string_view key, const JsonObject& other) const {
  return contains(key) && other.contains(key) && *object_->find(key) == *other.object_->find(key);
}

JsonObject JsonObject::updated(const JsonObject& other) const {
  auto document = std::make_shared<Document>();
  document->path = path();
  document->root = *object_;
  document->root.update(*other.object_);
  const Json* const root = &document->root;
  return JsonObject(std::move(document), root, prefix_);
}

std::string JsonObject::field(std::string_view key) const { return prefix_ + printable(key); }

std::vector<std::string> JsonObject::unread_fields() const {
  std::vector<std::string> fields;
  for (const std::string& key : keys()) {
    if (is_null(key) || document_->read_fields.contains(prefix_ + key)) continue;
    fields.push_back(field(key));
  }
  return fields;
}

const Json* JsonObject::value(std::string_view key) const {
  document_->read_fields.insert(prefix_ + std::string(key));
  const auto found = object_->find(key);
  return found == object_->end() ? nullptr : &*found;
}

const Json* JsonObject::present_value(std::string_view key) const {
  const Json* const found = value(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

const Json& JsonObject::required_value(std::string_view key, std::string_view expected) const {
  const Json* const found = value(key);
  CHECK(found != nullptr, where(key), " is missing; it must be ", expected);
  return *found;
}

std::string JsonObject::where(std::string_view key) const { return path() + ": " + field(key); }

int64_t JsonObject::get_integer(std::string_view key, int64_t low, int64_t high) const {
  const NumberLimits<int64_t> limits = {low, high};
  return as_integer(required_value(key, limits.text()), where(key), limits);
}

int64_t JsonObject::get_integer_or(std::string_view key, int64_t otherwise, int64_t low,
                                   int64_t high) const {
  const Json* const found = value(key);
  return found == nullptr ? otherwise : as_integer(*found, where(key), {low, high});
}

std::optional<int64_t> JsonObject::find_integer(std::string_view key,
                                                const NumberLimits<int64_t>& limits) const {
  const Json* const found = present_value(key);
  if (found == nullptr) return std::nullopt;
  return as_integer(*found, where(key), limits);
}

std::optional<int64_t> JsonObject::find_integer(std::string_view key, int64_t low,
                                                int64_t high) const {
  return find_integer(key, NumberLimits<int64_t>{low, high});
}

std::vector<int64_t> JsonObject::find_integers(std::string_view key, int64_t low,
                                               int64_t high) const {
  std::vector<int64_t> numbers;
  const Json* const found = present_value(key);
  if (found == nullptr) return numbers;
  const NumberLimits<int64_t> limits = {low, high};
  if (!found->is_array()) return {as_integer(*found, where(key), limits)};
  for (const Json& element : *found) numbers.push_back(as_integer(element, where(key), limits));
  return numbers;
}

double JsonObject::get_number(std::string_view key, double low, double high) const {
  const NumberLimits<double> limits = {low, high};
  return as_number(required_value(key, limits.text()), where(key), limits);
}

double JsonObject::get_number_or(std::string_view key, double otherwise, double low,
                                 double high) const {
  const Json* const found = value(key);
  return found == nullptr ? otherwise : as_number(*found, where(key), {low, high});
}

std::optional<double> JsonObject::find_number(std::string_view key,
                                              const NumberLimits<double>& limits) const {
  const Json* const found = present_value(key);
  if (found == nullptr) return std::nullopt;
  return as_number(*found, where(key), limits);
}

std::optional<double> JsonObject::find_number(std::string_view key, double low, double high) const {
  return find_number(key, NumberLimits<double>{low, high});
}

std::vector<double> JsonObject::get_numbers(std::string_view key, double low, double high) const {
  const Json& found = required_value(key, "a list of numbers");
  if (!found.is_array()) refuse(where(key), "a list of numbers", found);
  std::vector<double> numbers;
  for (const Json& element : found) {
    numbers.push_back(as_number(element, where(key), {low, high}));
  }
  return numbers;
}

bool JsonObject::get_bool_or(std::string_view key, bool otherwise) const {
  const Json* const found = value(key);
  return found == nullptr ? otherwise : as_bool(*found, where(key));
}

std::optional<bool> JsonObject::find_bool(std::string_view key) const {
  const Json* const found = present_value(key);
  if (found == nullptr) return std::nullopt;
  return as_bool(*found, where(key));
}

std::string JsonObject::get_string(std::string_view key) const {
  return as_string(required_value(key, "a string"), where(key));
}

std::optional<std::string> JsonObject::find_string(std::string_view key) const {
  const Json* const found = present_value(key);
  if (found == nullptr) return std::nullopt;
  return as_string(*found, where(key));
}

std::optional<std::vector<std::string>> JsonObject::find_strings(std::string_view key) const {
  const Json* const found = present_value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) refuse(where(key), "a list of strings", *found);
  std::vector<std::string> strings;
  for (const Json& element : *found) strings.push_back(as_string(element, where(key)));
  return strings;
}

std::optional<JsonObject> JsonObject::find_object(std::string_view key) const {
  const Json* const found = present_value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_object()) refuse(where(key), "an object", *found);
  return JsonObject(document_, found, field(key) + ".");
}

std::optional<std::vector<JsonObject>> JsonObject::find_objects(std::string_view key,
                                                                std::string_view expected) const {
  const Json* const found = present_value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) refuse(where(key), expected, *found);
  std::vector<JsonObject> objects;
  for (size_t i = 0; i < found->size(); ++i) {
    const Json& element = (*found)[i];
    if (!element.is_object()) refuse(where(key), expected, element);
    objects.push_back(JsonObject(document_, &element, concat(field(key), "[", i, "].")));
  }
  return objects;
}

}  // namespace tessera
