//===- PtxVersion.h - PTX versions and the drivers that load them -*- C++
//-*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_PTXVERSION_H
#define ATTNFUSE_LIB_RUNTIME_PTXVERSION_H

#include <string>

namespace attnfuse::runtime {

/// The highest PTX version, times ten, that a CUDA driver loads; the driver's
/// version is as cuDriverGetVersion gives it (12040 for 12.4). 0 for drivers
/// before 9.0.
int ptxVersionOfDriver(int driver);

/// The first CUDA driver that loads a PTX version (80 for 8.0); its inverse.
int driverVersionForPtx(int ptx);

/// "12.4" for 12040.
std::string driverVersionText(int driver);
/// "8.4" for 84.
std::string ptxVersionText(int ptx);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_PTXVERSION_H
