//===- Base64.h - binary data in text --------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_BASE64_H
#define ATTNFUSE_LIB_RUNTIME_BASE64_H

#include <optional>
#include <string>
#include <string_view>

namespace attnfuse::runtime {

/// RFC 4648 with padding; nothing where the text is not that.
std::optional<std::string> decodeBase64(std::string_view text);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_BASE64_H
