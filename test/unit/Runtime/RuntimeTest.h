//===- RuntimeTest.h - what the tests of the runtime share - -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_TEST_UNIT_RUNTIME_RUNTIMETEST_H
#define ATTNFUSE_TEST_UNIT_RUNTIME_RUNTIMETEST_H

#include "FakeCuda.h"
#include "Runtime/Device.h"
#include "attnfuse-c/Runtime.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

/// The state of the fake driver, which the runtime opens too.
FakeCuda &fake();
void addMemory(uint64_t address, size_t bytes, bool host);

/// A folder that goes with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string &path() const { return folder; }

private:
  std::string folder;
};

/// A tensor with its shape; dense unless given strides.
class Tensor {
public:
  Tensor(void *data, attnfuse_dtype dtype, std::vector<int64_t> shape,
         std::vector<int64_t> strides = {});
  attnfuse_tensor get() const {
    return {data, dtype, static_cast<int32_t>(shape.size()), shape.data(),
            strides.data()};
  }
  operator attnfuse_tensor() const { return get(); }

  void *data;
  attnfuse_dtype dtype;
  std::vector<int64_t> shape, strides;
};

struct ProgramDeleter {
  void operator()(attnfuse_program *program) const {
    attnfuse_program_destroy(program);
  }
};
using ProgramHandle = std::unique_ptr<attnfuse_program, ProgramDeleter>;

/// Parameters as bytes, in order.
class Bytes {
public:
  template <typename T> Bytes &operator<<(T value) {
    text.resize((text.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    text.append(reinterpret_cast<const char *>(&value), sizeof(value));
    return *this;
  }
  Bytes &operator<<(void *address) {
    return *this << reinterpret_cast<uint64_t>(address);
  }
  /// The parameters of a tensor.
  Bytes &operator<<(const Tensor &tensor) {
    *this << tensor.data;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      *this << tensor.shape[d] << tensor.strides[d];
    }
    return *this;
  }
  operator std::string() const { return text; }

private:
  std::string text;
};

/// Starts each test with a new fake driver, without a disk cache, and with a
/// device that has memory for tensors.
class RuntimeTest : public testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;

  /// Memory of a device.
  void *alloc(size_t bytes, int device = 0);

  ProgramHandle load(const std::string &manifest, attnfuse_status expected,
                     const std::string &code = "// PTX", int device = 0);
  ProgramHandle load(const std::string &manifest) {
    return load(manifest, ATTNFUSE_OK);
  }
  attnfuse_status launch(const ProgramHandle &program,
                         std::vector<attnfuse_tensor> inputs,
                         std::vector<attnfuse_tensor> outputs,
                         void *workspace = nullptr, size_t bytes = 0,
                         void *stream = nullptr);
  /// The first parameters of a launch's bytes that are a tensor map.
  static FakeTensorMap mapIn(const FakeLaunch &launch, size_t offset);

  static std::string error() { return attnfuse_last_error(); }

private:
  std::vector<std::unique_ptr<attnfuse::runtime::Device>> devices;
};

/// A manifest of one step that copies q (1, 2, ?, 64) of bf16 to a result of
/// its shape; `more` is put into the step, `top` into the program.
std::string copyManifest(const std::string &more = "",
                         const std::string &top = "");

#endif // ATTNFUSE_TEST_UNIT_RUNTIME_RUNTIMETEST_H
