//===- RuntimeTest.cpp - what the tests share ------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

using namespace attnfuse::runtime;

namespace {
/// Before anything opens a driver, in processes of death tests too.
struct Environment {
  Environment() {
    setenv("ATTNFUSE_LIBCUDA", FAKE_CUDA_PATH, /*overwrite=*/0);
    setenv("ATTNFUSE_CACHE_DIR", "", 1);
  }
};
} // namespace
static Environment environment;

template <typename Function> static Function *symbol(const char *name) {
  static void *library = dlopen(FAKE_CUDA_PATH, RTLD_NOW);
  return reinterpret_cast<Function *>(dlsym(library, name));
}

FakeCuda &fake() { return *symbol<FakeCuda *()>("fakeCuda")(); }

void addMemory(uint64_t address, size_t bytes, bool host) {
  symbol<void(uint64_t, size_t, bool)>("fakeCudaAddMemory")(address, bytes,
                                                            host);
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "attnfuse-XXXXXX").string();
  folder = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

Tensor::Tensor(void *data, attnfuse_dtype dtype, std::vector<int64_t> shape,
               std::vector<int64_t> strides)
    : data(data), dtype(dtype), shape(std::move(shape)),
      strides(std::move(strides)) {
  if (this->strides.empty()) {
    this->strides.resize(this->shape.size());
    int64_t stride = 1;
    for (size_t d = this->shape.size(); d-- > 0;) {
      this->strides[d] = stride;
      stride *= this->shape[d];
    }
  }
}

void RuntimeTest::SetUp() {
  // In a process of their own, in which no driver has been opened.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  fake() = FakeCuda();
  setenv("ATTNFUSE_CACHE_DIR", "", 1);
}

void RuntimeTest::TearDown() { devices.clear(); }

void *RuntimeTest::alloc(size_t bytes, int device) {
  while (static_cast<int>(devices.size()) <= device) {
    Status status;
    devices.push_back(Device::open(static_cast<int>(devices.size()), status));
    EXPECT_TRUE(status.ok()) << status.message;
  }
  void *address = nullptr;
  Status status = devices[device]->allocate(bytes, address);
  EXPECT_TRUE(status.ok()) << status.message;
  return address;
}

ProgramHandle RuntimeTest::load(const std::string &manifest,
                                attnfuse_status expected,
                                const std::string &code, int device) {
  attnfuse_program *program = nullptr;
  attnfuse_status status =
      attnfuse_program_load(code.data(), code.size(), manifest.data(),
                            manifest.size(), device, &program);
  EXPECT_EQ(status, expected) << (status ? error() : "");
  EXPECT_EQ(program != nullptr, status == ATTNFUSE_OK);
  return ProgramHandle(program);
}

attnfuse_status RuntimeTest::launch(const ProgramHandle &program,
                                    std::vector<attnfuse_tensor> inputs,
                                    std::vector<attnfuse_tensor> outputs,
                                    void *workspace, size_t bytes,
                                    void *stream) {
  return attnfuse_program_launch(
      program.get(), inputs.data(), static_cast<int32_t>(inputs.size()),
      outputs.data(), static_cast<int32_t>(outputs.size()), workspace, bytes,
      stream);
}

FakeTensorMap RuntimeTest::mapIn(const FakeLaunch &launch, size_t offset) {
  FakeTensorMap map = {};
  EXPECT_LE(offset + sizeof(map), launch.parameters.size());
  if (offset + sizeof(map) <= launch.parameters.size()) {
    std::memcpy(&map, launch.parameters.data() + offset, sizeof(map));
  }
  return map;
}

std::string copyManifest(const std::string &more, const std::string &top) {
  return R"({
    "version": 1, "chip": "sm_80", "ptx": 80, "entry": "copy",
    "arguments": [{"name": "q", "dtype": "bf16", "shape": [1, 2, null, 64]}],
    "results": [{"dtype": "bf16",
                 "shape": [1, 2, {"argument": 0, "dimension": 2}, 64]}],
    )" + top +
         R"("steps": [{
      "kernel": "copy_kernel", "threads": 128, "shared": 65536,
      "grid": [{"operand": 0, "dimension": 2, "divisor": 64},
               {"operand": 0, "dimension": 1, "divisor": 1}],
      )" +
         more +
         R"("operands": [{"argument": 0}, {"result": 0}]
    }]})";
}
