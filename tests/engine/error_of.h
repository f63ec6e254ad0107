// The Error that a piece of code throws, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include "kernels/tensor/check.h"

namespace tessera {

// What `action` throws; a test failure when it throws nothing.
template <typename Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error("");
}

}  // namespace tessera
