// The Error that a piece of code throws, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/tensor/check.h"

namespace tessera {

struct ThrownError {
  std::string message;  // "" when nothing was thrown
  std::string hint;
};

template <typename Action>
ThrownError thrown_error(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.what(), error.hint()};
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a tessera::Error: " << error.what();
  }
  return {};
}

}  // namespace tessera
