//===- PtxVersion.cpp - PTX versions and drivers ----------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From the release notes of the PTX ISA. Each CUDA release brought the next
// minor version, but for 12.6, which brought none; each major release the next
// major version. Releases to come are assumed to keep to that.
//
//===----------------------------------------------------------------------===//

#include "PtxVersion.h"

using namespace attnfuse;

int runtime::ptxVersionOfDriver(int driver) {
  int major = driver / 1000;
  int minor = driver % 1000 / 10;
  if (major < 9) {
    return 0;
  }
  if (major == 9) {
    return 60 + minor;
  }
  if (major == 10) {
    return 63 + minor;
  }
  if (major == 12 && minor >= 6) {
    --minor;
  }
  return 10 * (major - 4) + minor;
}

int runtime::driverVersionForPtx(int ptx) {
  int major = ptx / 10;
  int minor = ptx % 10;
  if (major < 6) {
    return 9000;
  }
  if (major == 6) {
    return minor < 3 ? 9000 + 10 * minor : 10000 + 10 * (minor - 3);
  }
  if (major == 8 && minor >= 6) {
    ++minor;
  }
  return 1000 * (major + 4) + 10 * minor;
}

std::string runtime::driverVersionText(int driver) {
  return std::to_string(driver / 1000) + "." +
         std::to_string(driver % 1000 / 10);
}

std::string runtime::ptxVersionText(int ptx) {
  return std::to_string(ptx / 10) + "." + std::to_string(ptx % 10);
}
