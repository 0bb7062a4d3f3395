//===- Status.h - outcomes of the runtime's functions ----- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_STATUS_H
#define ATTNFUSE_LIB_RUNTIME_STATUS_H

#include "attnfuse-c/Runtime.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace attnfuse::runtime {

/// Success, or a code and one message for the user. Success costs no memory.
struct [[nodiscard]] Status {
  attnfuse_status code = ATTNFUSE_OK;
  std::string message;

  bool ok() const { return code == ATTNFUSE_OK; }
};

namespace detail {
inline void append(std::string &text, std::string_view piece) { text += piece; }
template <typename Number>
std::enable_if_t<std::is_arithmetic_v<Number>> append(std::string &text,
                                                      Number piece) {
  text += std::to_string(piece);
}
} // namespace detail

/// The pieces (texts and numbers) one after the other.
template <typename... Pieces> std::string concat(const Pieces &...pieces) {
  std::string text;
  (detail::append(text, pieces), ...);
  return text;
}

template <typename... Pieces>
Status failure(attnfuse_status code, const Pieces &...pieces) {
  return {code, concat(pieces...)};
}

template <typename... Pieces> Status invalid(const Pieces &...pieces) {
  return {ATTNFUSE_INVALID_ARGUMENT, concat(pieces...)};
}

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_STATUS_H
