//===- TensorIOTest.cpp -----------------------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Support/TensorIO.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <gmock/gmock.h>

#include <cstring>

using namespace attnfuse;
using testing::HasSubstr;

namespace {

class TensorFiles : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attnfuse", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) {
    llvm::SmallString<128> full(folder);
    llvm::sys::path::append(full, name);
    return full.str().str();
  }
  std::string read(llvm::StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(path(name));
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  void write(llvm::StringRef name, llvm::StringRef bytes) {
    std::error_code failed;
    llvm::raw_fd_ostream(path(name), failed) << bytes;
  }
  std::string errorOf(llvm::StringRef spec) {
    auto tensor = readTensor(path(spec));
    return tensor ? "" : llvm::toString(tensor.takeError());
  }
  size_t filesInFolder() {
    std::error_code failed;
    size_t count = 0;
    for (llvm::sys::fs::directory_iterator it(folder, failed), end; it != end;
         it.increment(failed)) {
      ++count;
    }
    return count;
  }

  llvm::SmallString<128> folder;
};

HostTensor sample(DType type, llvm::ArrayRef<int64_t> shape) {
  HostTensor tensor = llvm::cantFail(HostTensor::allocate(type, shape));
  if (isFloat(type)) {
    fillRandomNormal(tensor, 5);
  } else {
    fillRandomInts(tensor, 5, 0, 2);
  }
  return tensor;
}

bool sameBytes(const HostTensor &a, const HostTensor &b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.sizeInBytes()) == 0;
}

TEST_F(TensorFiles, RoundTripOfEveryType) {
  for (DType type : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::I1,
                     DType::I8, DType::I32, DType::I64}) {
    for (llvm::SmallVector<int64_t> shape :
         {llvm::SmallVector<int64_t>{}, llvm::SmallVector<int64_t>{3},
          llvm::SmallVector<int64_t>{2, 0, 4},
          llvm::SmallVector<int64_t>{2, 3, 5, 7}}) {
      HostTensor tensor = sample(type, shape);
      for (const char *name : {"t.npy", "t.safetensors:out"}) {
        ASSERT_FALSE(writeTensor(path(name), tensor));
        auto back = readTensor(path(name));
        ASSERT_TRUE(static_cast<bool>(back))
            << llvm::toString(back.takeError());
        EXPECT_TRUE(sameBytes(tensor, *back)) << name;
      }
    }
  }
}

TEST_F(TensorFiles, StridedTensorsAreWrittenInOrder) {
  HostTensor tensor = sample(DType::F32, {4, 6});
  HostTensor turned =
      HostTensor::wrap(DType::F32, {6, 4}, {1, 6}, tensor.data(), nullptr);
  ASSERT_FALSE(writeTensor(path("t.npy"), turned));
  HostTensor back = llvm::cantFail(readTensor(path("t.npy")));
  EXPECT_EQ(back.toDouble(), turned.toDouble());
}

TEST_F(TensorFiles, FortranOrderIsRead) {
  HostTensor tensor = sample(DType::F32, {6});
  ASSERT_FALSE(writeTensor(path("t.npy"), tensor));
  std::string bytes = read("t.npy");
  size_t order = bytes.find("False");
  bytes.replace(order, 5, "True ");
  bytes.replace(bytes.find("(6, )"), 5, "(2,3)");
  write("f.npy", bytes);
  auto back = readTensor(path("f.npy"));
  ASSERT_TRUE(static_cast<bool>(back)) << llvm::toString(back.takeError());
  EXPECT_EQ(back->at({1, 2}), tensor.at({5}));
  EXPECT_EQ(back->at({0, 1}), tensor.at({2}));
}

TEST_F(TensorFiles, EveryTruncationIsAnError) {
  HostTensor tensor = sample(DType::F32, {2, 3});
  for (auto [name, spec] : {std::pair("t.npy", "x.npy"),
                            std::pair("t.safetensors", "x.safetensors:out")}) {
    ASSERT_FALSE(writeTensor(path(name), tensor));
    std::string bytes = read(name);
    ASSERT_FALSE(bytes.empty());
    for (size_t length = 0; length < bytes.size(); ++length) {
      write(llvm::StringRef(spec).split(':').first,
            llvm::StringRef(bytes).take_front(length));
      EXPECT_THAT(errorOf(spec), HasSubstr("x.")) << length;
    }
  }
}

TEST_F(TensorFiles, DamageNeverCrashes) {
  HostTensor tensor = sample(DType::F32, {2, 3});
  uint64_t state = 99;
  for (auto [name, spec] : {std::pair("t.npy", "x.npy"),
                            std::pair("t.safetensors", "x.safetensors:out")}) {
    ASSERT_FALSE(writeTensor(path(name), tensor));
    std::string whole = read(name);
    for (int round = 0; round < 2000; ++round) {
      std::string bytes = whole;
      for (int change = 0; change < 3; ++change) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        bytes[(state >> 20) % bytes.size()] = static_cast<char>(state >> 50);
      }
      write(llvm::StringRef(spec).split(':').first, bytes);
      auto result = readTensor(path(spec));
      if (!result) {
        EXPECT_FALSE(llvm::toString(result.takeError()).empty());
      }
    }
  }
}

TEST_F(TensorFiles, MessagesSayWhatWasFound) {
  EXPECT_THAT(errorOf("missing.npy"), HasSubstr("No such file"));
  EXPECT_THAT(errorOf("t.txt"), HasSubstr("supported: FILE.npy"));
  write("junk.npy", "not numpy at all");
  EXPECT_THAT(errorOf("junk.npy"), HasSubstr("not a .npy file"));
  HostTensor tensor = sample(DType::F32, {2});
  ASSERT_FALSE(writeSafetensors(path("t.safetensors"),
                                {{"left", tensor}, {"right", tensor}}));
  EXPECT_THAT(errorOf("t.safetensors:up"), HasSubstr("left, right"));
  EXPECT_THAT(errorOf("t.safetensors"), HasSubstr("NAME"));
  ASSERT_FALSE(writeTensor(path("big.npy"), tensor));
  std::string bytes = read("big.npy");
  bytes.replace(bytes.find("<f4"), 3, ">f4");
  write("big.npy", bytes);
  EXPECT_THAT(errorOf("big.npy"), HasSubstr("little-endian"));
}

TEST_F(TensorFiles, FailedWritesLeaveNothing) {
  HostTensor tensor = sample(DType::F32, {2});
  llvm::Error error = writeTensor(path("no/such/folder/t.npy"), tensor);
  ASSERT_TRUE(static_cast<bool>(error));
  EXPECT_THAT(llvm::toString(std::move(error)), HasSubstr("cannot be written"));
  EXPECT_EQ(filesInFolder(), 0u);
  error = checkWritable(path("no/such/t.npy"));
  ASSERT_TRUE(static_cast<bool>(error));
  EXPECT_THAT(llvm::toString(std::move(error)), HasSubstr("no folder"));
  EXPECT_FALSE(checkWritable(path("t.npy")));
  EXPECT_EQ(filesInFolder(), 0u);
}

} // namespace
