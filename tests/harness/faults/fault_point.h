// Which call of this process fails, as the environment says:
//
//   FAULT_CALL    the kind of call: a heading of failing_calls.cpp, such as memory or read
//   FAULT_AT      the first call of that kind that fails, from 1; 0: none does
//   FAULT_ERRNO   what errno says then; 0: no error, but a read or write of half the bytes
//   FAULT_ONWARD  1: every later call fails too
//   FAULT_FOLDER  only files in this folder, an absolute path, count; "": all
//   FAULT_COUNT   a file of 8 bytes that holds the number of calls, kept even if the process dies
//
// Calls that the dynamic loader makes before this library is set up are neither counted nor failed:
// the program cannot know of them.
#pragma once

#include <cstddef>
#include <string_view>

// Counts a call. True, with errno set, when it is to fail.
bool fails(std::string_view call);
// The same for a call that concerns a file.
bool fails(std::string_view call, const char* path);

// The bytes to transfer: all, or half when the call is to be cut short, or nothing when it fails.
enum class Transfer { kAll, kHalf, kNone };
Transfer transfer(std::string_view call, int descriptor);
size_t bytes_of(Transfer transfer, size_t bytes);

// What errno says of a failure.
int fault_errno();
