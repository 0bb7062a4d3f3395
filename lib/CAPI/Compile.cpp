//===- Compile.cpp - the C API of the compiler -----------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "attnfuse-c/Compile.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/InitAll.h"
#include "AttnFuse/Pipelines/ArgumentNames.h"
#include "AttnFuse/Pipelines/GpuCompiler.h"
#include "AttnFuse/Pipelines/Pipelines.h"
#include "AttnFuse/Target/NVPTX/GpuSession.h"
#include "Runtime/DiskCache.h"
#include "Runtime/LastError.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <dlfcn.h>

using namespace attnfuse;
using runtime::Status;

struct attnfuse_artifact {
  std::string code, manifest, explanation;
};

static constexpr char kVersion[] = "0.1.0 (LLVM " LLVM_VERSION_STRING ")";

const char *attnfuse_version(void) { return kVersion; }

/// What tells this build of the compiler from another: its file's size and
/// time.
static std::string buildIdentity() {
  Dl_info info;
  llvm::sys::fs::file_status status;
  if (!dladdr(reinterpret_cast<void *>(&attnfuse_version), &info) ||
      llvm::sys::fs::status(info.dli_fname, status)) {
    return "";
  }
  auto time = status.getLastModificationTime().time_since_epoch().count();
  return std::to_string(status.getSize()) + "-" + std::to_string(time);
}

//===----------------------------------------------------------------------===//
// Entries of the disk cache: three texts, each behind its length
//===----------------------------------------------------------------------===//

static std::string pack(const attnfuse_artifact &artifact) {
  std::string entry;
  for (const std::string *text :
       {&artifact.code, &artifact.manifest, &artifact.explanation}) {
    entry += std::to_string(text->size()) + "\n" + *text;
  }
  return entry;
}

static bool unpack(llvm::StringRef entry, attnfuse_artifact &artifact) {
  for (std::string *text :
       {&artifact.code, &artifact.manifest, &artifact.explanation}) {
    auto [length, rest] = entry.split('\n');
    size_t size;
    if (length.getAsInteger(10, size) || size > rest.size()) {
      return false;
    }
    *text = rest.take_front(size).str();
    entry = rest.drop_front(size);
  }
  return entry.empty();
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// The function to compile: the one named, else the first public one.
static mlir::func::FuncOp findEntry(mlir::ModuleOp module,
                                    llvm::StringRef name) {
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    if (!function.isExternal() &&
        (name.empty() ? function.isPublic() : function.getSymName() == name)) {
      return function;
    }
  }
  return {};
}

static Status compile(llvm::StringRef text, llvm::StringRef entry,
                      llvm::StringRef chip, llvm::StringRef options,
                      attnfuse_artifact &artifact) {
  auto description = lookupChip(chip);
  if (!description) {
    return runtime::invalid(llvm::toString(description.takeError()));
  }
  if (description->kind != ChipDescription::GPU) {
    return runtime::invalid("the chip '", chip.str(),
                            "' is no GPU: use sm_80 ... sm_120 or sm_90a");
  }
  PipelineOptions pipeline;
  std::string refusal;
  llvm::raw_string_ostream refused(refusal);
  if (mlir::failed(pipeline.parseFromString(options, refused))) {
    return runtime::invalid("options '", options.str(), "': ",
                            refusal.empty() ? "not understood" : refusal);
  }
  pipeline.chip = chip.str();

  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string said;
  llvm::raw_string_ostream stream(said);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, "program"), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context, stream);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module) {
    return runtime::failure(ATTNFUSE_COMPILE_ERROR,
                            "the program is not valid:\n", said);
  }
  mlir::func::FuncOp function = findEntry(*module, entry);
  if (!function) {
    return runtime::invalid(
        entry.empty()
            ? std::string("the program has no public function with a body")
            : "the program has no function '" + entry.str() + "' with a body");
  }
  std::vector<std::string> names;
  for (mlir::BlockArgument argument : function.getArguments()) {
    names.push_back(argumentName(argument, text));
  }
  auto program = compileForGpu(*module, function, pipeline, names);
  if (!program) {
    return runtime::failure(ATTNFUSE_COMPILE_ERROR,
                            llvm::toString(program.takeError()), "\n", said);
  }
  artifact.code = std::move(program->ptx);
  artifact.manifest = std::move(program->manifest);
  for (const std::string &line : program->explanation) {
    artifact.explanation += line + "\n";
  }
  return {};
}

attnfuse_status attnfuse_compile(const char *text, size_t textSize,
                                 const char *entry, const char *chip,
                                 const char *options,
                                 attnfuse_artifact **artifact) {
  if (!text || !chip || !artifact) {
    return runtime::report(
        runtime::invalid("attnfuse_compile needs text, chip and artifact"));
  }
  *artifact = nullptr;
  std::string source(text, textSize), name = entry ? entry : "",
                                      flags = options ? options : "";
  auto made = std::make_unique<attnfuse_artifact>();
  runtime::DiskCache cache;
  std::string key = runtime::DiskCache::key(
      {"compile", source, name, chip, flags, kVersion, buildIdentity()});
  if (auto entryText = cache.get(key)) {
    if (unpack(*entryText, *made)) {
      *artifact = made.release();
      return ATTNFUSE_OK;
    }
    cache.remove(key);
  }
  Status status = compile(source, name, chip, flags, *made);
  if (!status.ok()) {
    return runtime::report(std::move(status));
  }
  cache.put(key, pack(*made));
  *artifact = made.release();
  return ATTNFUSE_OK;
}

void attnfuse_artifact_destroy(attnfuse_artifact *artifact) { delete artifact; }

static const char *textOf(const std::string &text, size_t *size) {
  if (size) {
    *size = text.size();
  }
  return text.c_str();
}

const char *attnfuse_artifact_code(const attnfuse_artifact *artifact,
                                   size_t *size) {
  return textOf(artifact->code, size);
}

const char *attnfuse_artifact_manifest(const attnfuse_artifact *artifact,
                                       size_t *size) {
  return textOf(artifact->manifest, size);
}

const char *attnfuse_artifact_explanation(const attnfuse_artifact *artifact,
                                          size_t *size) {
  return textOf(artifact->explanation, size);
}

attnfuse_status attnfuse_chip_for_device(int32_t device, char name[16]) {
  attnfuse_device_info info;
  attnfuse_status status = attnfuse_device_describe(device, &info);
  if (status != ATTNFUSE_OK) {
    return status;
  }
  auto chip = chipForDevice(info);
  if (!chip) {
    return runtime::report(runtime::failure(ATTNFUSE_WRONG_CHIP,
                                            llvm::toString(chip.takeError())));
  }
  std::strncpy(name, chip->c_str(), 15);
  name[15] = '\0';
  return ATTNFUSE_OK;
}
