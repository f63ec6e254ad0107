// Requests and their names in a few bytes each: a file may have millions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "apps/batch/request.h"

namespace tessera {

// The first 128 bits of the SHA-256 of a custom_id: no two that anybody writes have the same.
struct IdDigest {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const IdDigest&) const = default;
};
IdDigest digest_of_id(const std::string& custom_id);

// The first 64 bits of the SHA-256 of all that the request says about its answer: a request that is
// edited between two runs has another one. Never 0. Throws Interrupted on Ctrl-C.
uint64_t digest_of_request(const BatchRequest& request);

// A number as 16 hexadecimal digits, and the number that 16 such digits spell; 0 for other text.
inline constexpr size_t kHexadecimalDigits = 16;  // of 64 bits
std::string hexadecimal(uint64_t number);
uint64_t hexadecimal_number(std::string_view digits);

// What stands in a record's id before the number of its request's line. Records begin with their
// id.
inline constexpr std::string_view kRecordIdPrefix = "batch_req_";

// "req_" and the digest's 16 hexadecimal digits.
std::string request_id(uint64_t digest);
// The digest that request_id() was given; 0 for any other text.
uint64_t digest_in_request_id(const std::string& request_id);

}  // namespace tessera

template <>
struct std::hash<tessera::IdDigest> {
  size_t operator()(const tessera::IdDigest& digest) const noexcept { return digest.high; }
};
