//===- Chip.cpp - the table of chips ---------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/Chip.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/TargetParser/Host.h"

#include <thread>

using namespace attnfuse;

/// A CPU of so many cores with vectors of so many bits. Clock and bandwidth
/// are those of an ordinary server core and of two DDR channels: they only
/// weigh arithmetic against memory, which needs no better.
static ChipDescription cpu(llvm::StringRef name, int64_t cores, int64_t bits,
                           int64_t registers) {
  ChipDescription chip;
  chip.name = name.str();
  chip.units = cores;
  chip.clock = 3.0e9;
  chip.bandwidth = 2.0e10;
  chip.lanes = static_cast<double>(bits) / 32;
  // Waking the threads of the pool.
  chip.launch = 10e-6;
  chip.vectorBits = bits;
  chip.vectorRegisters = registers;
  // About 60 vector instructions make a vector of angles (the product and the
  // whole turns in f64, two polynomials in f32), and 10 rotate a vector.
  chip.cyclesPerAngle = 60 / chip.lanes;
  chip.cyclesPerPair = 10 / chip.lanes;
  chip.hidden = 0;
  return chip;
}

static ChipDescription thisMachine() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto has = [&](llvm::StringRef feature) { return features.lookup(feature); };
  int64_t bits = 128, registers = 16;
  if (has("avx512f") && has("avx512vl") && has("avx512dq")) {
    bits = 512;
    registers = 32;
  } else if (has("avx2") && has("fma")) {
    bits = 256;
  } else if (has("neon")) {
    registers = 32;
  }
  int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return cpu("cpu", cores, bits, registers);
}

struct GpuRow {
  llvm::StringLiteral name;
  int64_t units;
  double clock, bandwidth, matrixFlops;
  int64_t sharedMemory;
};

/// Vendor's figures, but for sm_90: 788 TFLOP/s on random bf16 data and a copy
/// at 4.3 TB/s were measured on an H200.
static constexpr GpuRow kGpus[] = {
    {"sm_80", 108, 1.41e9, 1.6e12, 312e12, 163 * 1024},
    {"sm_86", 84, 1.70e9, 0.8e12, 142e12, 99 * 1024},
    {"sm_89", 142, 2.20e9, 0.8e12, 330e12, 99 * 1024},
    {"sm_90", 132, 1.70e9, 4.3e12, 788e12, 227 * 1024},
    {"sm_90a", 132, 1.70e9, 4.3e12, 788e12, 227 * 1024},
    {"sm_100", 148, 1.85e9, 7.0e12, 2250e12, 227 * 1024},
    {"sm_120", 170, 2.40e9, 1.5e12, 420e12, 99 * 1024},
};

llvm::Expected<ChipDescription> attnfuse::lookupChip(llvm::StringRef name) {
  if (name == "cpu") {
    return thisMachine();
  }
  if (name == "cpu-avx2") {
    return cpu(name, 8, 256, 16);
  }
  if (name == "cpu-avx512") {
    return cpu(name, 8, 512, 32);
  }
  std::string known = "cpu, cpu-avx2, cpu-avx512";
  for (const GpuRow &row : kGpus) {
    if (row.name == name) {
      ChipDescription chip;
      chip.name = name.str();
      chip.kind = ChipDescription::GPU;
      chip.units = row.units;
      chip.clock = row.clock;
      chip.bandwidth = row.bandwidth;
      chip.lanes = 128;
      chip.matrixFlops = row.matrixFlops;
      chip.launch = 3e-6;
      chip.sharedMemory = row.sharedMemory;
      chip.registers = 65536;
      // Measured on an H200: about 730 instructions per warp and key tile of
      // 64 x 128 that contend with the softmax, angles by recurrence; 4 warps
      // share a tile, 4 schedulers issue one instruction a cycle each.
      chip.cyclesPerAngle = 0;
      chip.cyclesPerPair = 730.0 / (64 * 64);
      chip.hidden = 0;
      return chip;
    }
    known += ", " + row.name.str();
  }
  return llvm::createStringError("unknown chip '" + name +
                                 "'; known: " + known);
}
