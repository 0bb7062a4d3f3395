//===- DeviceInfo.h - what GPUs there are ----------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_LIB_RUNTIME_DEVICEINFO_H
#define ATTNFUSE_LIB_RUNTIME_DEVICEINFO_H

#include "Driver.h"

namespace attnfuse::runtime {

/// The driver's device and what it says about it.
Status describeDevice(const Driver &driver, int ordinal, cuda::CUdevice &device,
                      attnfuse_device_info &info);

} // namespace attnfuse::runtime

#endif // ATTNFUSE_LIB_RUNTIME_DEVICEINFO_H
