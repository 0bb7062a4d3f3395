//===- ManifestTest.cpp - reading manifests --------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include "Runtime/Manifest.h"

using namespace attnfuse::runtime;

namespace {

/// The message of a manifest that is wrong.
std::string errorOf(const std::string &text) {
  Manifest manifest;
  Status status = Manifest::parse(text, manifest);
  EXPECT_EQ(status.code,
            status.message.empty() ? ATTNFUSE_OK : ATTNFUSE_INVALID_ARGUMENT);
  return status.message;
}

/// A manifest with a text in it replaced.
std::string with(const std::string &from, const std::string &to,
                 std::string text = copyManifest()) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ManifestTest, ReadsTheDocumentedForm) {
  Manifest manifest;
  Status status = Manifest::parse(R"({
    "version": 1, "chip": "sm_90a", "ptx": 80, "entry": "llama3_prefill",
    "arguments": [
      {"name": "q", "dtype": "bf16", "shape": [1, 32, null, 128]},
      {"name": "k", "dtype": "bf16", "shape": [1, 8, null, 128]},
      {"name": "offset", "dtype": "i32"}],
    "results": [{"dtype": "bf16",
      "shape": [1, 32, {"argument": 0, "dimension": 2}, 128]}],
    "equal": [[{"argument": 0, "dimension": 2}, {"argument": 1, "dimension": 2},
               {"argument": 0, "dimension": 3}]],
    "temporaries": [{"dtype": "f32", "shape": [4, {"argument": 1, "dimension": 2}]}],
    "constants": [{"dtype": "i32", "shape": [2], "data": "AQAAAP////8="}],
    "steps": [{
      "kernel": "k0", "threads": 128, "shared": 65536,
      "grid": [{"operand": 3, "dimension": 2, "divisor": 128},
               {"operand": 3, "dimension": 1, "divisor": 1}],
      "operands": [{"argument": 0}, {"temporary": 0}, {"constant": 0},
                   {"result": 0}, {"argument": 2}],
      "extras": [{"tensor_map": 0, "box": [64, 64], "swizzle": 128},
                 {"counter": true}],
      "persistent": 2,
      "otherwise": {"kernel": "k1", "threads": 64, "operands": [{"argument": 0}],
                    "extras": [{"counter": true}]}}]})",
                                  manifest);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(manifest.chipNumber, 90);
  EXPECT_TRUE(manifest.chipSpecific);
  EXPECT_EQ(manifest.arguments[0].shape[2].value, -1);
  EXPECT_EQ(manifest.arguments[0].shape[3].value, 128);
  EXPECT_TRUE(manifest.arguments[2].scalar);
  EXPECT_EQ(manifest.results[0].shape[2].source.argument, 0);
  EXPECT_EQ(manifest.equal.size(), 2u);
  EXPECT_EQ(manifest.constants[0].data,
            std::string("\1\0\0\0\xff\xff\xff\xff", 8));
  ASSERT_EQ(manifest.order.size(), 1u);
  ASSERT_EQ(manifest.steps.size(), 2u);
  const Step &step = manifest.steps[manifest.order[0]];
  EXPECT_EQ(step.kernel, "k0");
  EXPECT_EQ(step.persistent, 2);
  EXPECT_EQ(step.grid.size(), 2u);
  EXPECT_EQ(manifest.steps[step.otherwise].kernel, "k1");
  EXPECT_EQ(manifest.tensorMaps, 1);
  EXPECT_EQ(manifest.counters, 2);
}

TEST(ManifestTest, NotAManifest) {
  EXPECT_EQ(errorOf(""), "manifest: not JSON");
  EXPECT_EQ(errorOf("{"), "manifest: not JSON");
  EXPECT_EQ(errorOf("[]"), "manifest: not an object");
  EXPECT_EQ(errorOf("{}"), "manifest: has no 'version'");
  EXPECT_EQ(errorOf(R"({"version": 2})"),
            "manifest: is of version 2; this runtime reads version 1: use the "
            "runtime that came with the compiler");
}

TEST(ManifestTest, Errors) {
  EXPECT_EQ(errorOf(copyManifest()), "");
  EXPECT_EQ(errorOf(with("sm_80", "sm_x")),
            "manifest: chip is 'sm_x', not sm_NN or sm_NNa");
  EXPECT_EQ(errorOf(with("sm_80", "90a")),
            "manifest: chip is '90a', not sm_NN or sm_NNa");
  EXPECT_EQ(errorOf(with("bf16", "f8")),
            "manifest: arguments[0].dtype is 'f8', not f32, bf16, f16, i64, "
            "i32, i8 or i1");
  EXPECT_EQ(errorOf(with("[1, 2, null, 64]", "[1, -2]")),
            "manifest: arguments[0].shape[1] is -2, not from 0 to 2147483647");
  EXPECT_EQ(errorOf(with("[1, 2, null, 64]", "[1, 2.5]")),
            "manifest: arguments[0].shape[1] is not an integer");
  EXPECT_EQ(errorOf(with("[1, 2, null, 64]", "[18446744073709551615]")),
            "manifest: arguments[0].shape[0] is 18446744073709551615, not from "
            "0 to 2147483647");
  EXPECT_EQ(errorOf(with("[1, 2, null, 64]", "[1,1,1,1,1,1,1,1,1]")),
            "manifest: arguments[0].shape is not a list of at most 8 extents");
  EXPECT_EQ(errorOf(with("\"argument\": 0, \"dimension\": 2",
                         "\"argument\": 1, \"dimension\": 2")),
            "manifest: results[0].shape[2].argument is 1, not from 0 to 0");
  EXPECT_EQ(errorOf(with("\"argument\": 0, \"dimension\": 2",
                         "\"argument\": 0, \"dimension\": 4")),
            "manifest: results[0].shape[2] names dimension 4 of argument 0, "
            "which has 4");
  EXPECT_EQ(errorOf(with("\"threads\": 128", "\"threads\": 2048")),
            "manifest: steps[0].threads is 2048, not from 1 to 1024");
  EXPECT_EQ(errorOf(with("\"threads\": 128, ", "")),
            "manifest: steps[0] has no 'threads'");
  EXPECT_EQ(errorOf(with("\"divisor\": 64", "\"divisor\": 0")),
            "manifest: steps[0].grid[0].divisor is 0, not from 1 to "
            "2147483647");
  EXPECT_EQ(errorOf(with("{\"result\": 0}", "{\"temporary\": 0}")),
            "manifest: steps[0].operands[1] names a temporary, of which there "
            "are none");
  EXPECT_EQ(errorOf(with("{\"result\": 0}", "{\"other\": 0}")),
            "manifest: steps[0].operands[1] is no argument, temporary, "
            "constant or result");
  EXPECT_EQ(errorOf(with("{\"operand\": 0, \"dimension\": 1",
                         "{\"operand\": 2, \"dimension\": 1")),
            "manifest: steps[0].grid[1].operand is 2, not from 0 to 1");
  EXPECT_EQ(errorOf(with("\"kernel\": \"copy_kernel\"", "\"kernel\": 7")),
            "manifest: steps[0].kernel is not a text");
}

TEST(ManifestTest, ScalarsAreIntegersOrF32) {
  EXPECT_EQ(errorOf(with(", \"shape\": [1, 2, null, 64]", "")),
            "manifest: arguments[0] is a scalar of type bf16; scalars are f32 "
            "or integers");
}

TEST(ManifestTest, Constants) {
  auto constant = [](const std::string &text) {
    return errorOf(copyManifest("", "\"constants\": [" + text + "],"));
  };
  EXPECT_EQ(constant(R"({"dtype": "i8", "shape": [3], "data": "Zm9v"})"), "");
  EXPECT_EQ(constant(R"({"dtype": "i8", "shape": [4], "data": "Zm9v"})"),
            "manifest: constants[0].data has 3 bytes, the shape 4");
  EXPECT_EQ(constant(R"({"dtype": "i8", "shape": [3], "data": "Zm9"})"),
            "manifest: constants[0].data is not base64");
  EXPECT_EQ(constant(R"({"dtype": "i8", "shape": [3]})"),
            "manifest: constants[0] has no 'data'");
  EXPECT_EQ(constant(R"({"dtype": "i8", "data": "Zm9v",
                         "shape": [{"argument": 0, "dimension": 2}]})"),
            "manifest: constants[0] has a shape that is not a constant's");
}

TEST(ManifestTest, TensorMaps) {
  auto map = [](const std::string &text) {
    // Extras are read after the operands, wherever they stand.
    return errorOf(copyManifest("\"extras\": [" + text + "],"));
  };
  EXPECT_EQ(map(R"({"tensor_map": 0, "box": [64, 64], "swizzle": 128})"), "");
  EXPECT_EQ(map(R"({"tensor_map": 2, "box": [64, 64]})"),
            "manifest: steps[0].extras[0].tensor_map is 2, not from 0 to 1");
  EXPECT_EQ(map(R"({"tensor_map": 0, "box": [64]})"),
            "manifest: steps[0].extras[0].box is not a list of columns and "
            "rows");
  EXPECT_EQ(map(R"({"tensor_map": 0, "box": [64, 512]})"),
            "manifest: steps[0].extras[0].box[1] is 512, not from 1 to 256");
  EXPECT_EQ(map(R"({"tensor_map": 0, "box": [60, 64]})"),
            "manifest: steps[0].extras[0].box is 120 bytes wide, not a "
            "multiple of 16");
  EXPECT_EQ(map(R"({"tensor_map": 0, "box": [128, 64], "swizzle": 128})"),
            "manifest: steps[0].extras[0].box is 256 bytes wide, the swizzle "
            "128");
  EXPECT_EQ(map(R"({"tensor_map": 0, "box": [64, 64], "swizzle": 100})"),
            "manifest: steps[0].extras[0].swizzle is 100, not 0, 32, 64 or "
            "128");
  EXPECT_EQ(map("{}"), "manifest: steps[0].extras[0] is neither a tensor_map "
                       "nor a counter");
}

TEST(ManifestTest, OtherwiseFill) {
  auto fill = [](const std::string &text) {
    return errorOf(
        copyManifest("\"otherwise_fill\": " + text + ",",
                     R"("temporaries": [{"dtype": "i8", "shape": [4]}],)"));
  };
  EXPECT_EQ(fill(R"({"temporary": 0})"), "");
  EXPECT_EQ(fill("null"), "");
  EXPECT_EQ(fill(R"({"temporary": 1})"),
            "manifest: steps[0].otherwise_fill.temporary is 1, not from 0 to "
            "0");
  EXPECT_EQ(fill(R"({"result": 0})"),
            "manifest: steps[0].otherwise_fill is not a temporary");
}

TEST(ManifestTest, TooManyParameters) {
  std::string operands = "{\"argument\": 0}";
  for (int i = 0; i < 60; ++i) {
    operands += ", {\"argument\": 0}";
  }
  EXPECT_EQ(errorOf(with("{\"argument\": 0}, {\"result\": 0}", operands)),
            "manifest: steps[0] has 4392 bytes of parameters; a kernel may "
            "have 4096");
}

/// Every prefix and every change of one byte is refused or read, without more.
TEST(ManifestTest, DamagedTextsDoNoHarm) {
  std::string text = copyManifest(
      R"("extras": [{"tensor_map": 0, "box": [64, 64], "swizzle": 128}],)",
      R"("equal": [[{"argument": 0, "dimension": 2}]],)");
  for (size_t i = 0; i < text.size(); ++i) {
    errorOf(text.substr(0, i));
    for (char byte : {'0', '9', '"', '}', ']', '-', '\x80'}) {
      std::string damaged = text;
      damaged[i] = byte;
      errorOf(damaged);
    }
  }
}

} // namespace
