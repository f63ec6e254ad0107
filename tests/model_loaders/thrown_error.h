// The Error that a piece of code throws, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <exception>
#include <string>

#include "kernels/tensor/check.h"

namespace tessera {

struct ThrownError {
  std::string message;  // "" when nothing was thrown
  std::string hint;
  double cpu_seconds = 0.0;  // until it was thrown; other processes do not disturb it
};

template <typename Action>
ThrownError thrown_error(Action&& action) {
  const std::clock_t begin = std::clock();
  try {
    action();
  } catch (const Error& error) {
    const std::clock_t spent = std::clock() - begin;
    return {error.what(), error.hint(), static_cast<double>(spent) / CLOCKS_PER_SEC};
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a tessera::Error: " << error.what();
  }
  return {};
}

}  // namespace tessera
