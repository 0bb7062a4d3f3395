//===- ProgramTest.cpp - loading programs ----------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include <cstdlib>

using testing::HasSubstr;
using testing::StartsWith;

namespace {

using ProgramTest = RuntimeTest;

std::string forChip(const std::string &chip) {
  std::string text = copyManifest();
  return text.replace(text.find("sm_80"), 5, chip);
}

const std::string kCubin = "\x7f"
                           "ELF...";

TEST_F(ProgramTest, LoadsAndUnloads) {
  {
    ProgramHandle program = load(copyManifest());
    EXPECT_EQ(attnfuse_program_num_inputs(program.get()), 1);
    EXPECT_EQ(attnfuse_program_num_outputs(program.get()), 1);
    EXPECT_EQ(fake().numContexts, 1);
    EXPECT_EQ(fake().numModules, 1);
    EXPECT_EQ(fake().functionAttributes["copy_kernel"], 65536);
  }
  EXPECT_EQ(fake().numContexts, 0);
  EXPECT_EQ(fake().numModules, 0);
  attnfuse_program_destroy(nullptr);
}

TEST_F(ProgramTest, NothingIsLeftAfterAFailure) {
  for (const char *call : {"cuModuleGetFunction", "cuFuncSetAttribute",
                           "cuFuncGetAttribute", "cuCtxPushCurrent"}) {
    fake().failures[call] = 999;
    load(copyManifest(), ATTNFUSE_DRIVER_ERROR);
    EXPECT_THAT(error(), StartsWith(std::string(call)));
    EXPECT_EQ(fake().numContexts, 0) << call;
    EXPECT_EQ(fake().numModules, 0) << call;
  }
}

TEST_F(ProgramTest, NullPointers) {
  attnfuse_program *program = nullptr;
  EXPECT_EQ(attnfuse_program_load(nullptr, 0, "", 0, 0, &program),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the code is a null pointer");
  EXPECT_EQ(attnfuse_program_launch(nullptr, nullptr, 0, nullptr, 0, nullptr, 0,
                                    nullptr),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(attnfuse_device_count(nullptr), ATTNFUSE_INVALID_ARGUMENT);
}

TEST_F(ProgramTest, BadManifest) {
  load("{}", ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "manifest: has no 'version'");
}

TEST_F(ProgramTest, NoSuchDevice) {
  load(copyManifest(), ATTNFUSE_NO_DEVICE, "// PTX", 5);
  EXPECT_EQ(error(), "there is no GPU 5; there are 2, numbered from 0");
}

TEST_F(ProgramTest, Chips) {
  // PTX runs on its chip and above, but for that of one chip alone.
  load(forChip("sm_80"));
  load(forChip("sm_90"));
  load(forChip("sm_90a"));
  load(forChip("sm_100"), ATTNFUSE_WRONG_CHIP);
  EXPECT_EQ(error(), "the program was compiled for sm_100, GPU 0 (Fake H100) "
                     "is sm_90: compile it for that chip");
  load(forChip("sm_80a"), ATTNFUSE_WRONG_CHIP);
  // A cubin runs on its chip and above within the major version.
  load(forChip("sm_90"), ATTNFUSE_OK, kCubin);
  load(forChip("sm_80"), ATTNFUSE_WRONG_CHIP, kCubin);
  EXPECT_THAT(error(), HasSubstr("compiled for sm_80 (a cubin)"));
  fake().devices[0].major = 8;
  fake().devices[0].minor = 6;
  load(forChip("sm_80"), ATTNFUSE_OK, kCubin);
  load(forChip("sm_90a"), ATTNFUSE_WRONG_CHIP);
}

TEST_F(ProgramTest, ChipSpecificCodeIsNotCompiledSeparately) {
  // The linker would ignore setmaxnreg.
  fake().failures["cuLinkCreate"] = 1;
  load(forChip("sm_90a"));
}

TEST_F(ProgramTest, PtxThatTheDriverDoesNotKnow) {
  std::string manifest = copyManifest();
  manifest.replace(manifest.find("\"ptx\": 80"), 9, "\"ptx\": 91");
  load(manifest, ATTNFUSE_DRIVER_TOO_OLD);
  EXPECT_EQ(error(),
            "the code needs PTX 9.1 (driver 13.1 or newer), the driver 13.0 "
            "loads up to 9.0: update the NVIDIA driver, or compile for an "
            "older PTX version");
  // A cubin needs no compiler.
  manifest.replace(manifest.find("sm_80"), 5, "sm_90");
  load(manifest, ATTNFUSE_OK, kCubin);
}

TEST_F(ProgramTest, PtxThatDoesNotCompile) {
  load(copyManifest(), ATTNFUSE_COMPILE_ERROR, "SYNTAX ERROR");
  EXPECT_EQ(error(), "cuModuleLoadDataEx failed with CUDA_ERROR_INVALID_PTX\n"
                     "the driver's compiler said:\nptxas: line 7: SYNTAX "
                     "ERROR\n");
}

TEST_F(ProgramTest, NoCompilerInTheDriver) {
  fake().failures["cuLinkAddData"] = 221;
  fake().failures["cuModuleLoadDataEx"] = 221;
  load(copyManifest(), ATTNFUSE_COMPILE_ERROR);
  EXPECT_THAT(error(), HasSubstr("libnvidia-ptxjitcompiler.so.1"));
}

TEST_F(ProgramTest, LoadsDirectlyWhereLinkingIsRefused) {
  fake().failures["cuLinkCreate"] = 1;
  load(copyManifest());
  EXPECT_EQ(fake().numCompilations, 1);
}

TEST_F(ProgramTest, TheLogIsKept) {
  fake().jitLog = "ptxas info: 255 registers";
  ProgramHandle program = load(copyManifest());
  EXPECT_STREQ(attnfuse_program_log(program.get()),
               "ptxas info: 255 registers");
  program = load(forChip("sm_90"), ATTNFUSE_OK, kCubin);
  EXPECT_STREQ(attnfuse_program_log(program.get()), "");
}

TEST_F(ProgramTest, CompilesOnce) {
  TemporaryFolder folder;
  setenv("ATTNFUSE_CACHE_DIR", folder.path().c_str(), 1);
  fake().jitLog = "said once";
  load(copyManifest());
  EXPECT_EQ(fake().numCompilations, 1);
  ProgramHandle program = load(copyManifest());
  EXPECT_EQ(fake().numCompilations, 1);
  EXPECT_STREQ(attnfuse_program_log(program.get()), "said once");
  // A zero byte at the end is not part of the text.
  load(copyManifest(), ATTNFUSE_OK, std::string("// PTX\0", 7));
  EXPECT_EQ(fake().numCompilations, 1);
  // Other code, another chip.
  load(copyManifest(), ATTNFUSE_OK, "// other PTX");
  EXPECT_EQ(fake().numCompilations, 2);
  fake().devices[0].minor = 5;
  load(copyManifest());
  EXPECT_EQ(fake().numCompilations, 3);
}

TEST_F(ProgramTest, CompilesAnewWhatTheDriverRefuses) {
  TemporaryFolder folder;
  setenv("ATTNFUSE_CACHE_DIR", folder.path().c_str(), 1);
  load(copyManifest());
  // The cubin on disk.
  fake().failures["cuModuleLoadDataEx"] = 200;
  load(copyManifest());
  EXPECT_EQ(fake().numCompilations, 2);
  load(copyManifest());
  EXPECT_EQ(fake().numCompilations, 2);
}

TEST_F(ProgramTest, KernelThatIsNotThere) {
  fake().kernels["copy_kernel"].missing = true;
  load(copyManifest(), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the code has no kernel 'copy_kernel': it does not belong "
                     "to the manifest");
}

TEST_F(ProgramTest, SharedMemoryAboveTheChips) {
  fake().devices[0].sharedMemory = 66000;
  fake().kernels["copy_kernel"].shared = 1000;
  load(copyManifest(), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(),
            "kernel 'copy_kernel' needs 66536 bytes of shared memory, a block "
            "may have 66000 on GPU 0 (Fake H100): compile the program for this "
            "chip, or with smaller tiles");
}

TEST_F(ProgramTest, SharedMemoryThatTheDriverRefuses) {
  fake().failures["cuFuncSetAttribute"] = 1;
  load(copyManifest(), ATTNFUSE_DRIVER_ERROR);
  EXPECT_EQ(error(),
            "cuFuncSetAttribute (kernel 'copy_kernel', 65536 bytes of shared "
            "memory beside 0; a block may have 232448) failed with "
            "CUDA_ERROR_INVALID_VALUE");
}

TEST_F(ProgramTest, MoreThreadsThanRegistersAllow) {
  fake().kernels["copy_kernel"].registers = 255;
  fake().kernels["copy_kernel"].maxThreads = 64;
  load(copyManifest(), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "kernel 'copy_kernel' has 128 threads; with its 255 "
                     "registers a block may have 64 on GPU 0 (Fake H100)");
}

TEST_F(ProgramTest, ParametersOfTheCode) {
  std::vector<std::pair<size_t, size_t>> &parameters =
      fake().kernels["copy_kernel"].parameters;
  for (size_t i = 0; i < 18; ++i) {
    parameters.emplace_back(8 * i, 8);
  }
  load(copyManifest());
  parameters[3].second = 4;
  load(copyManifest(), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(),
            "parameter 3 of the code's kernel 'copy_kernel' has 4 bytes, "
            "that of the manifest 8: they do not belong together");
  parameters[3].second = 8;
  parameters.pop_back();
  load(copyManifest(), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the code's kernel 'copy_kernel' has 17 parameters, the "
                     "manifest more: they do not belong together");
  parameters.emplace_back(136, 8);
  parameters.emplace_back(144, 8);
  load(copyManifest(), ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "the code's kernel 'copy_kernel' has more parameters than "
                     "the manifest's 18: they do not belong together");
}

TEST_F(ProgramTest, Kernels) {
  FakeKernel &kernel = fake().kernels["copy_kernel"];
  kernel.registers = 168;
  kernel.local = 48;
  kernel.shared = 16;
  ProgramHandle program = load(copyManifest());
  ASSERT_EQ(attnfuse_program_num_kernels(program.get()), 1);
  attnfuse_kernel_info info;
  ASSERT_EQ(attnfuse_program_kernel(program.get(), 0, &info), ATTNFUSE_OK);
  EXPECT_STREQ(info.name, "copy_kernel");
  EXPECT_EQ(info.threads, 128);
  EXPECT_EQ(info.registers, 168);
  EXPECT_EQ(info.spill_bytes, 48);
  EXPECT_EQ(info.blocks_per_unit, 16);
  EXPECT_EQ(info.shared_bytes, 65552);
  EXPECT_EQ(attnfuse_program_kernel(program.get(), 1, &info),
            ATTNFUSE_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "there is no kernel 1; the program has 1");
}

TEST_F(ProgramTest, SharedMemoryOfAKernelInTwoSteps) {
  auto manifest = [](int first, int second) {
    auto step = [](int shared) {
      return R"({"kernel": "k", "threads": 32, "operands": [{"argument": 0}],
                 "shared": )" +
             std::to_string(shared) + "}";
    };
    return R"({"version": 1, "chip": "sm_80", "ptx": 80,
               "arguments": [{"dtype": "f32", "shape": [4]}], "steps": [)" +
           step(first) + "," + step(second) + "]}";
  };
  load(manifest(1000, 60000));
  EXPECT_EQ(fake().functionAttributes["k"], 60000);
  ProgramHandle program = load(manifest(60000, 1000));
  EXPECT_EQ(fake().functionAttributes["k"], 60000);
  EXPECT_EQ(attnfuse_program_num_kernels(program.get()), 1);
}

} // namespace
