// Every way known to us in which a safetensors file was, or could be, broken or malicious, with
// what the person must see. All must fail fast, in bounded memory and without a crash.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "tests/model_loaders/safetensors_builder.h"

namespace tessera {

struct HostileFile {
  std::string name;  // of the test
  std::string bytes;
  std::string message;  // a part of it
  std::string hint;     // a part of it

  friend std::ostream& operator<<(std::ostream& stream, const HostileFile& file) {
    return stream << file.name;
  }
};

// A file with one tensor "w"; the data is 4 bytes.
inline HostileFile tensor(const std::string& name, const std::string& row,
                          const std::string& message) {
  return {name, safetensors_file("{\"w\": " + row + "}", "abcd"), message, ""};
}

// A file with this header and 4 bytes of data.
inline HostileFile header(const std::string& name, const std::string& text,
                          const std::string& message) {
  return {name, safetensors_file(text, "abcd"), message, ""};
}

inline const std::string kGoodRow = R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";
inline const std::string kGoodHeader = R"({"w": )" + kGoodRow + "}";

inline std::vector<HostileFile> broken_containers() {
  return {
      {"empty", "", "file is empty; expected a safetensors header", "download the model again"},
      {"seven_bytes", "1234567", "too short for the 8-byte header length", ""},
      {"length_above_limit", length_prefix(100'000'001) + "{}",
       "header length 100000001 exceeds limit 100000000", ""},
      {"length_maximum", length_prefix(~uint64_t{0}) + "{}",
       "header length 18446744073709551615 exceeds limit", ""},
      {"length_sign_bit", length_prefix(uint64_t{1} << 63) + "{}",
       "header length 9223372036854775808 exceeds limit", ""},
      {"length_above_file", length_prefix(1000) + std::string(60, ' '),
       "header claims 1000 bytes, file has 60", ""},
      // 60 is '<' and 640 starts like a pickle: a cut file must not be taken for one.
      {"length_like_html", length_prefix(60) + "{}", "header claims 60 bytes, file has 2", ""},
      {"length_like_pickle", length_prefix(640) + "{}", "header claims 640 bytes, file has 2", ""},
      {"length_zero", length_prefix(0), "header is empty", ""},
      {"no_tensors", safetensors_file("{}"), "holds no tensors", ""},
      {"lfs_pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n",
       "this is a Git LFS pointer, not weights", "git lfs pull"},
      {"html", "<!DOCTYPE html><html>", "starts with '<!DO': looks like a failed download",
       "download the model again"},
      {"json_error_page", R"({"error": "not found"})", "looks like a failed download", ""},
      {"pickle", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "PyTorch pickle is not supported",
       "safetensors"},
      {"zip", std::string("PK\x03\x04\0\0\b\b\0\0\0\0", 12),
       "PyTorch pickle is not supported (unsafe", ""},
      {"gguf", std::string("GGUF\3\0\0\0\0\0\0\0", 12), "this is a GGUF file", ""},
      {"one_trailing_byte", safetensors_file(kGoodHeader, "abcd!"),
       "1 unexpected byte after tensor data", ""},
      {"appended_archive", safetensors_file(kGoodHeader, "abcdPK\3\4...."),
       "8 unexpected bytes after tensor data", ""},
      {"one_byte_short", safetensors_file(kGoodHeader, "abc"),
       "file is 1 byte short; tensor 'w' needs bytes up to 4", ""},
      {"no_data", safetensors_file(kGoodHeader), "file is 4 bytes short", ""},
  };
}

inline std::vector<HostileFile> broken_ranges() {
  const auto two = [](const std::string& name, const std::string& first, const std::string& second,
                      const std::string& message) {
    const auto row = [](const std::string& offsets) {
      return R"({"dtype": "F16", "shape": [1], "data_offsets": )" + offsets + "}";
    };
    return header(name, R"({"a": )" + row(first) + R"(, "b": )" + row(second) + "}", message);
  };
  return {
      two("hole", "[0, 2]", "[4, 6]",
          "2 unused bytes between tensor 'a' (bytes 0..2) and tensor 'b' (bytes 4..6)"),
      two("overlap", "[0, 2]", "[1, 3]",
          "data overlaps: tensor 'a' (bytes 0..2) and tensor 'b' (bytes 1..3)"),
      two("same_range", "[0, 2]", "[0, 2]",
          "data overlaps: tensor 'a' (bytes 0..2) and tensor 'b' (bytes 0..2)"),
      two("first_not_at_zero", "[2, 4]", "[4, 6]", "tensor 'a' (bytes 2..4) is the first"),
      two("reversed", "[2, 0]", "[2, 4]", "tensor 'a': data_offsets [2, 0] are reversed"),
      two("far_away", "[18446744073709551613, 18446744073709551615]", "[0, 2]",
          "18446744073709551611 unused bytes between"),
      tensor("too_few_bytes", R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]})",
             "F32 [2] needs 8 bytes, header gives 4"),
      tensor("truncated_by_a_lot",
             R"({"dtype": "F32", "shape": [1000000001], "data_offsets": [0, 4000000004]})",
             "file is 4000000000 bytes short; tensor 'w' needs bytes up to 4000000004"),
      // The product wraps around 2^64 to a handful of elements.
      tensor("wrapping_shape",
             R"({"dtype": "F32", "shape": [4194305, 4194305, 211106198978564],
                 "data_offsets": [0, 16]})",
             "tensor 'w': shape is too large"),
      tensor("shape_of_2_to_62",
             R"({"dtype": "F32", "shape": [281474976710656, 16384], "data_offsets": [0, 4]})",
             "tensor 'w': shape is too large"),
      tensor("wrapping_shape_before_zero",
             R"({"dtype": "F32", "shape": [281474976710656, 281474976710656, 0],
                 "data_offsets": [0, 0]})",
             "tensor 'w': shape is too large"),
      tensor("wrapping_shape_after_zero",
             R"({"dtype": "F32", "shape": [0, 281474976710656, 281474976710656],
                 "data_offsets": [0, 0]})",
             "tensor 'w': shape is too large"),
      tensor("huge_dimension_after_zero",
             R"({"dtype": "F32", "shape": [0, 18446744073709551615, 18446744073709551615],
                 "data_offsets": [0, 0]})",
             "dimension 18446744073709551615 is too large"),
  };
}

inline std::vector<HostileFile> broken_rows() {
  const std::string shape_message =
      "tensor 'w': shape must be a list of at most 8 non-negative integers";
  const std::string offsets_message = "data_offsets must be two non-negative integers";
  const auto shape = [&](const std::string& name, const std::string& value) {
    return tensor("shape_" + name,
                  R"({"dtype": "F32", "shape": )" + value + R"(, "data_offsets": [0, 4]})",
                  shape_message);
  };
  const auto offsets = [&](const std::string& name, const std::string& value) {
    return tensor("offsets_" + name,
                  R"({"dtype": "F32", "shape": [1], "data_offsets": )" + value + "}",
                  offsets_message);
  };
  const auto dtype = [](const std::string& name, const std::string& value,
                        const std::string& message) {
    return tensor("dtype_" + name,
                  R"({"dtype": )" + value + R"(, "shape": [1], "data_offsets": [0, 4]})", message);
  };
  std::string many_ones = "[1";
  for (int i = 1; i < 100'000; ++i) many_ones += ",1";
  return {
      shape("negative", "[-1]"),
      shape("minus_zero", "[-0]"),
      shape("fraction", "[1.0]"),
      shape("exponent", "[1e0]"),
      shape("string", "[\"1\"]"),
      shape("true", "[true]"),
      shape("2_to_64", "[18446744073709551616]"),
      shape("not_a_list", "1"),
      shape("null", "null"),
      shape("object", "{}"),
      shape("nested", "[[1]]"),
      shape("100000_dimensions", many_ones + "]"),
      shape("nine_dimensions", "[1,1,1,1,1,1,1,1,1]"),
      offsets("one", "[0]"),
      offsets("three", "[0, 4, 4]"),
      offsets("none", "[]"),
      offsets("object", "{}"),
      offsets("minus_zero", "[-0, 4]"),
      offsets("negative", "[-4, 0]"),
      offsets("fraction", "[0, 4.0]"),
      dtype("quantised", "\"Q4_0\"",
            "dtype 'Q4_0' of tensor 'w' is not supported; supported: F32 F16 BF16"),
      dtype("lower_case", "\"f32\"", "dtype 'f32' of tensor 'w' is not supported"),
      dtype("fp8", "\"F8_E4M3FN\"", "dtype 'F8_E4M3FN' of tensor 'w' is not supported"),
      dtype("not_usable", "\"I32\"", "dtype 'I32' of tensor 'w' is not supported"),
      header("dtype_of_gptq",
             R"({"l.qweight": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}})",
             "quantised checkpoints are not supported: tensor 'l.qweight' is I32"),
      dtype("with_escape", R"("\u001b[2J")", "dtype '\\x1b[2J' of tensor 'w'"),
      dtype("number", "32", "tensor 'w': dtype must be a string"),
      tensor("no_dtype", R"({"shape": [1], "data_offsets": [0, 4]})", "tensor 'w' has no dtype"),
      tensor("no_shape", R"({"dtype": "F32", "data_offsets": [0, 4]})", "has no shape"),
      tensor("no_offsets", R"({"dtype": "F32", "shape": [1]})", "has no data_offsets"),
      tensor("unknown_field",
             R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "strides": [1]})",
             "tensor 'w': unknown field 'strides'"),
      tensor("duplicate_field",
             R"({"dtype": "F16", "shape": [1], "dtype": "F32", "data_offsets": [0, 4]})",
             "tensor 'w': duplicate field 'dtype'"),
      tensor("row_as_list", R"(["F32", [1], [0, 4]])", "tensor 'w' must be a JSON object"),
      tensor("row_as_number", "1", "tensor 'w' must be a JSON object"),
      tensor("row_null", "null", "tensor 'w' must be a JSON object"),
  };
}

inline std::vector<HostileFile> broken_json() {
  const std::string invalid = "invalid JSON at header byte ";
  return {
      header(
          "duplicate_name",
          R"({"w": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, "w": )" + kGoodRow + "}",
          "duplicate tensor 'w'"),
      header("duplicate_name_escaped", R"({"w": )" + kGoodRow + R"(, "\u0077": )" + kGoodRow + "}",
             "duplicate tensor 'w'"),
      header("duplicate_metadata",
             R"({"__metadata__": {}, "__metadata__": {}, "w": )" + kGoodRow + "}",
             "duplicate __metadata__"),
      header("duplicate_metadata_key",
             R"({"__metadata__": {"k": "1", "k": "2"}, "w": )" + kGoodRow + "}",
             "duplicate key 'k' in __metadata__"),
      header("metadata_number", R"({"__metadata__": {"k": 1}})",
             "__metadata__ values must be strings"),
      header("metadata_nested", R"({"__metadata__": {"k": {}}})",
             "__metadata__ values must be strings"),
      header("metadata_list", R"({"__metadata__": []})",
             "__metadata__ must be an object of strings"),
      header("name_with_escapes",
             R"({"\u001b[31m\u0000": {"dtype": "Q", "shape": [], "data_offsets": [0, 4]}})",
             "tensor '\\x1b[31m\\x00'"),
      header("header_list", "[1]", "the header must be a JSON object"),
      header("header_number", "1", "the header must be a JSON object"),
      header("invalid_utf8", "{\"w\xff\": " + kGoodRow + "}", invalid + "3"),
      header("overlong_utf8", "{\"w\xc0\xaf\": " + kGoodRow + "}", invalid),
      header("lone_surrogate", R"({"\ud800": )" + kGoodRow + "}", invalid),
      header("raw_control_character", "{\"\x01\": " + kGoodRow + "}", invalid),
      header("byte_order_mark", "\xEF\xBB\xBF" + kGoodHeader, invalid + "0"),
      header("nul_and_more", kGoodHeader + std::string("\0garbage", 8),
             invalid + std::to_string(kGoodHeader.size())),
      header("text_after_end", kGoodHeader + "{}", invalid),
      header("comment", "/* */" + kGoodHeader, invalid + "0"),
      header("trailing_comma", R"({"w": )" + kGoodRow + ",}", invalid),
      header("not_a_number", R"({"w": NaN})", invalid),
      header("leading_zero", R"({"w": {"shape": [01]}})", invalid),
      header("huge_number", R"({"w": {"shape": [1e999]}})", invalid),
      header("truncated", kGoodHeader.substr(0, 20), invalid + "20"),
      header("only_spaces", "    ", invalid + "4"),
      header("deep_lists", std::string(100'000, '['), "JSON nesting too deep"),
      header(
          "deep_objects",
          [] {
            std::string text;
            for (int i = 0; i < 100'000; ++i) text += "{\"\":";
            return text;
          }(),
          "JSON nesting too deep"),
  };
}

inline std::vector<HostileFile> hostile_safetensors() {
  std::vector<HostileFile> files;
  for (auto& group : {broken_containers(), broken_ranges(), broken_rows(), broken_json()}) {
    files.insert(files.end(), group.begin(), group.end());
  }
  return files;
}

}  // namespace tessera
