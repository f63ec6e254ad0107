#include "model_loaders/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_loaders/strict_json.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

JsonObject parse(std::string_view text) { return JsonObject::parse(text, "c.json"); }

std::string parse_message(std::string_view text) {
  return thrown_error([&] { parse(text); }).message;
}

TEST(Json, ReadsEveryKindOfValue) {
  const JsonObject json = parse(R"({"i": -3, "f": 2.5, "b": true, "s": "x\u0041", "n": null,
                                    "l": [1, 2], "w": ["a", "b"], "o": {"k": 1}, "a": [{"k": 2}]})");
  EXPECT_EQ(json.get_integer("i", -3, 3), -3);
  EXPECT_EQ(json.get_number("f", 0, 3), 2.5);
  EXPECT_EQ(json.get_number("i", -5, 3), -3.0);
  EXPECT_TRUE(json.get_bool_or("b", false));
  EXPECT_EQ(json.get_string("s"), "xA");
  EXPECT_THAT(json.find_integers("l", 0, 9), ElementsAre(1, 2));
  EXPECT_THAT(json.find_integers("i", -9, 9), ElementsAre(-3));
  EXPECT_THAT(json.find_strings("w").value(), ElementsAre("a", "b"));
  EXPECT_EQ(json.find_object("o")->get_integer("k", 0, 9), 1);
  EXPECT_EQ(json.find_objects("a")->at(0).get_integer("k", 0, 9), 2);
}

TEST(Json, TellsAbsentFromNull) {
  const JsonObject json = parse(R"({"n": null})");
  for (const char* const key : {"n", "absent"}) {
    EXPECT_EQ(json.find_integer(key, 0, 9), std::nullopt);
    EXPECT_EQ(json.find_number(key, 0, 9), std::nullopt);
    EXPECT_EQ(json.find_bool(key), std::nullopt);
    EXPECT_EQ(json.find_string(key), std::nullopt);
    EXPECT_EQ(json.find_strings(key), std::nullopt);
    EXPECT_FALSE(json.find_object(key).has_value());
    EXPECT_FALSE(json.find_objects(key).has_value());
    EXPECT_THAT(json.find_integers(key, 0, 9), IsEmpty());
  }
  EXPECT_TRUE(json.is_null("n"));
  EXPECT_FALSE(json.is_null("absent"));
  EXPECT_EQ(json.get_integer_or("absent", 7, 0, 9), 7);
  EXPECT_EQ(thrown_error([&] { json.get_integer_or("n", 7, 0, 9); }).message,
            "c.json: n must be an integer in 0..9, got null");
  EXPECT_EQ(thrown_error([&] { json.get_integer("absent", 0, 9); }).message,
            "c.json: absent is missing; it must be an integer in 0..9");
}

TEST(Json, DoesNotConvert) {
  for (const char* const value :
       {"4096.7", "\"4096\"", "-1", "0", "true", "1e3", "[1]", "4294967297", "9223372036854775808",
        "18446744073709551615", "18446744073709551616"}) {
    const JsonObject json = parse(std::string(R"({"k": )") + value + "}");
    EXPECT_THAT(thrown_error([&] { json.get_integer("k", 1, 1048576); }).message,
                HasSubstr("c.json: k must be an integer in 1..1048576, got "))
        << value;
  }
  const JsonObject json = parse(R"({"s": "1", "i": 1, "l": [1, "2"]})");
  EXPECT_THAT(thrown_error([&] { json.get_number("s", 0, 9); }).message,
              HasSubstr("s must be a number in 0..9, got \"1\""));
  EXPECT_THAT(thrown_error([&] { json.get_bool_or("i", true); }).message,
              HasSubstr("i must be true or false, got 1"));
  EXPECT_THAT(thrown_error([&] { json.get_string("i"); }).message,
              HasSubstr("i must be a string, got 1"));
  EXPECT_THAT(thrown_error([&] { json.find_integers("l", 0, 9); }).message, HasSubstr("got \"2\""));
  EXPECT_THAT(thrown_error([&] { json.find_strings("l"); }).message, HasSubstr("got 1"));
  EXPECT_THAT(thrown_error([&] { json.find_object("l"); }).message, HasSubstr("got a list of 2"));
  EXPECT_THAT(thrown_error([&] { json.find_objects("l"); }).message, HasSubstr("got 1"));
}

TEST(Json, NamesNestedFields) {
  const JsonObject rope =
      parse(R"({"rope_scaling": {"factor": "8"}})").find_object("rope_scaling").value();
  EXPECT_EQ(thrown_error([&] { rope.get_number("factor", 1, 100); }).message,
            "c.json: rope_scaling.factor must be a number in 1..100, got \"8\"");
}

TEST(Json, ListsWhatNobodyRead) {
  const JsonObject json = parse(R"({"a": 1, "b": {"x": 1, "y": 2}, "c": 3, "d": 4, "e": null})");
  json.get_integer("a", 0, 9);
  const JsonObject b = json.find_object("b").value();
  b.get_integer("x", 0, 9);
  EXPECT_TRUE(json.contains("c"));
  EXPECT_THAT(json.unread_fields(), ElementsAre("c", "d"));
  EXPECT_THAT(b.unread_fields(), ElementsAre("b.y"));
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_EQ(parse_message(R"({"a": 1, "a": 2})"), "c.json: duplicate key 'a'");
  EXPECT_EQ(parse_message(R"({"a": 1, "\u0061": 2})"), "c.json: duplicate key 'a'");
  EXPECT_EQ(parse_message(R"({"o": {"a": 1, "a": 2}})"), "c.json: duplicate key 'a'");
  EXPECT_EQ(parse_message(R"({"o": {"a": 1}, "a": 2, "l": [{"a": 1}, {"a": 1}]})"), "");
}

TEST(Json, CanKeepTheOrderOfKeys) {
  const std::string text = R"({"b":1,"a":{"z":[{"y":null,"x":"x"}],"c":2.5}})";
  EXPECT_EQ(parse_ordered_json(text, {}).dump(), text);
  EXPECT_THROW(parse_ordered_json(R"({"b": 1, "a": 2, "\u0062": 3})", {}), Error);
  EXPECT_THROW(parse_ordered_json(R"({"o": {"a": 1, "a": 2}})", {}), Error);
}

// What is written again must have the digits that were read.
TEST(Json, KeepsIntegersOrRefusesThem) {
  const std::string text = R"([18446744073709551615,-9223372036854775808,0.5,1e+30])";
  EXPECT_EQ(parse_ordered_json(text, {}).dump(), text);
  const auto message = [](const std::string& refused) {
    return thrown_error([&] { parse_ordered_json(refused, {"c.json"}); }).message;
  };
  EXPECT_EQ(message(R"({"a": {"maximum": 18446744073709551616}})"),
            "c.json: maximum: the integer 18446744073709551616 does not fit in 64 bits");
  EXPECT_EQ(message("[1, -9223372036854775809]"),
            "c.json: the integer -9223372036854775809 does not fit in 64 bits");
  EXPECT_EQ(parse_ordered_json(R"({"x": 18446744073709551616, "y": 1})", {}, {.left_out = "x"}),
            nlohmann::ordered_json({{"y", 1}}));
}

// Long work can be ended: whoever asks is called every quarter of a megabyte.
TEST(Json, PausesInLongTexts) {
  int num_pauses = 0;
  const auto pauses_of = [&](const std::string& text) {
    num_pauses = 0;
    parse_ordered_json(text, {}, {.pause = [&] { ++num_pauses; }});
    return num_pauses;
  };
  const std::string megabyte(size_t{1} << 20, 'a');
  EXPECT_EQ(pauses_of(R"(["a", 1])"), 0);
  EXPECT_EQ(pauses_of(concat("[\"", megabyte, "\"]")), 4) << "within one string";
  std::string numbers = "[0";
  for (int i = 0; i < 1 << 18; ++i) numbers += ",0";
  EXPECT_EQ(pauses_of(numbers + "]"), 2);
  EXPECT_THROW(parse_ordered_json(numbers + "]", {}, {.pause = [] { throw 1; }}), int);
}

TEST(Json, LeavesOutWhatHasAKey) {
  const auto parsed = [](const std::string& text) {
    return parse_ordered_json(text, {}, {.left_out = "x"}).dump();
  };
  EXPECT_EQ(parsed(R"({"b": 1, "x": [2, {"x": {}, "c": []}, []], "a": {"x": 3, "d": "x"}})"),
            R"({"b":1,"a":{"d":"x"}})");
  EXPECT_EQ(parsed(R"([{"x": {"x": 1, "x": 2}}, {"x": null}, "x"])"), R"([{},{},"x"])");
  EXPECT_THROW(parsed(R"({"x": 1, "a": 2, "a": 3})"), Error);
  EXPECT_THROW(parsed(R"({"x": [1, "a": 2})"), Error);
  std::string many = R"({"a": 1, "x": [0)";
  for (int i = 0; i < 2'000'000; ++i) many += ",0";
  EXPECT_EQ(parsed(many + "]}"), R"({"a":1})");
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_EQ(parse_message("\xEF\xBB\xBF{}"),
            "c.json: invalid JSON at byte 0: the text begins with a byte order mark");
  EXPECT_EQ(parse_message("\xFF\xFE{\0}\0"sv),
            "c.json: invalid JSON at byte 0: the text is UTF-16, JSON is UTF-8");
  EXPECT_EQ(parse_message("{}\0garbage"sv), "c.json: invalid JSON at byte 2");
  EXPECT_EQ(parse_message("{} x"), "c.json: invalid JSON at byte 3");
  EXPECT_EQ(parse_message(R"({"a": 1)"), "c.json: invalid JSON at byte 7: the text ends too early");
  EXPECT_EQ(parse_message(""), "c.json: invalid JSON at byte 0: there is none");
  EXPECT_EQ(parse_message("{ // a\n}"), "c.json: invalid JSON at byte 2: JSON has no comments");
  EXPECT_EQ(parse_message("{\n\"a\": 1,\n}"),
            "c.json: invalid JSON at byte 10 (line 3): a comma stands before the last '}'");
  EXPECT_EQ(parse_message("{\n\"a\": x}"), "c.json: invalid JSON at byte 7 (line 2)");
  for (const char* const text :
       {"{\"a\": 1,}", "{/**/}", "{\"a\": NaN}", "{\"a\": 01}", "{\"a\": +1}", "{'a': 1}",
        "{\"a\": \"\xff\"}", "{\"a\": \"\xc0\xaf\"}", "{\"a\": \"\\ud800\"}", "{\"a\": \"\n\"}"}) {
    EXPECT_THAT(parse_message(text), HasSubstr("c.json: invalid JSON at byte ")) << text;
  }
  EXPECT_EQ(parse_message(R"({"a": 1e999})"),
            "c.json: the number 1e999 at byte 6 is too large (limit 1.79769e+308)");
  EXPECT_EQ(parse_message(R"({"a": [1, -1e400 ]})"),
            "c.json: the number -1e400 at byte 10 is too large (limit 1.79769e+308)");
  EXPECT_EQ(parse_message("[1, 2]"), "c.json: must be a JSON object, got a list of 2");
}

TEST(Json, LimitsNestingAndStrings) {
  EXPECT_THAT(parse_message(std::string(100'000, '[')), HasSubstr("JSON nesting too deep"));
  EXPECT_EQ(parse_message("{\"a\": \"" + std::string(1000, '[') + "\"}"), "");
  EXPECT_EQ(parse_message(R"({"a": "\"[[[[\\", "b": "]"})"), "");
  std::string many = "{\"a\": [0";
  for (int i = 0; i < 2'000'000; ++i) many += ",0";
  EXPECT_EQ(parse_message(many + "]}"), "c.json: has more than 2000000 JSON values");
  EXPECT_THAT(parse_message("{\"" + std::string((16 << 20) + 1, 'x') + "\": 1}"),
              HasSubstr("is longer than 16777216 bytes"));
}

TEST(Json, ReadsFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(JsonObject::read(folder.write("a.json", R"({"k": 1})")).get_integer("k", 0, 9), 1);
  const std::string path = folder.write("b.json", "nonsense");
  EXPECT_THAT(thrown_error([&] { JsonObject::read(path); }).message,
              HasSubstr(path + ": invalid JSON at byte "));
}

TEST(Json, RecognisesFailedDownloads) {
  const TemporaryFolder folder;
  const auto error = [&](std::string_view text) {
    const std::string path = folder.write("c.json", text);
    return thrown_error([&] { JsonObject::read(path); });
  };
  const std::string path = folder.path("c.json");
  EXPECT_EQ(error("").message, path + ": file is empty; expected JSON");
  EXPECT_EQ(error("").hint, "download the model again");
  const ThrownError pointer = error("version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_EQ(pointer.message, path + ": this is a Git LFS pointer, not JSON");
  EXPECT_EQ(pointer.hint, "run git lfs pull in the model folder");
  EXPECT_EQ(error("<html>").message, path + ": starts with '<htm': looks like a failed download");
}

}  // namespace
}  // namespace tessera
