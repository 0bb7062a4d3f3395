//===- Options.cpp - the command line of attnfuse-run ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "AttnFuse/Pipelines/Pipelines.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

namespace cl = llvm::cl;
using namespace attnfuse::run;

namespace {
/// The flags. LLVM's libraries register options of their own, some of the same
/// names; the parser is emptied before these are made.
struct Flags {
  cl::OptionCategory category{"attnfuse-run options"};

  cl::opt<std::string> program{cl::Positional, cl::desc("PROGRAM.mlir"),
                               cl::Required, cl::cat(category)};
  cl::opt<std::string> entry{
      "entry", cl::desc("Function to run (default: the first public one)"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> device{
      "device",
      cl::desc("cpu or cuda[:n] (default: a GPU if there is one, else cpu)"),
      cl::value_desc("device"), cl::cat(category)};
  cl::list<std::string> sets{
      "set",
      cl::desc("Value of a dynamic extent or an integer argument, e.g. N=8192"),
      cl::value_desc("name=value"), cl::CommaSeparated, cl::cat(category)};
  cl::list<std::string> inputs{
      "input",
      cl::desc("File of an argument, by name or number: q=q.npy, "
               "1=model.safetensors:layer.k (default: random by seed)"),
      cl::value_desc("arg=file"), cl::cat(category)};
  cl::list<std::string> outputs{
      "output",
      cl::desc("File for a result, by number: 0=out.npy; a file alone "
               "takes the next result"),
      cl::value_desc("[n=]file"), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::desc("Seed of random inputs"), cl::init(0),
                         cl::cat(category)};
  cl::opt<unsigned> threads{"threads",
                            cl::desc("CPU threads (default: one per core)"),
                            cl::init(0), cl::cat(category)};
  cl::opt<bool> allowEmpty{
      "allow-empty",
      cl::desc("Accept extents of 0: results are zeros or empty"),
      cl::cat(category)};
  cl::opt<bool> check{"check",
                      cl::desc("Compare every result with the float64 oracle"),
                      cl::cat(category)};
  cl::opt<int64_t> checkRows{
      "check-rows",
      cl::desc("Rows per head that --check compares, evenly spaced; 0: "
               "all, as far as about 10 seconds allow"),
      cl::init(0), cl::cat(category)};
  cl::opt<bool> bench{"bench",
                      cl::desc("Time the program: warm-up, then repetitions"),
                      cl::cat(category)};
  cl::opt<bool> flush{
      "flush-l2",
      cl::desc("Put other data into a GPU's L2 cache before each timed run"),
      cl::cat(category)};
  cl::opt<int64_t> warmup{"warmup", cl::desc("Runs before timing"), cl::init(3),
                          cl::cat(category)};
  cl::opt<int64_t> repetitions{
      "repetitions", cl::desc("Timed runs; 0: for about a second, 5 to 1000"),
      cl::init(0), cl::cat(category)};
  cl::opt<bool> explain{"explain",
                        cl::desc("Say what was chosen for each kernel and why"),
                        cl::cat(category)};
  cl::opt<std::string> emit{
      "emit",
      cl::desc("Print the program in a form and stop: tile, llvm, ptx, cubin "
               "or manifest"),
      cl::value_desc("form"), cl::cat(category)};
  cl::opt<std::string> dumpPhases{
      "dump-phases", cl::desc("Write the program after each pass to a folder"),
      cl::value_desc("dir"), cl::cat(category)};
  cl::opt<std::string> json{
      "json", cl::desc("Write the report as JSON; - is the output"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> rope{
      "rope",
      cl::desc("Place of key rotations: in_loop or once (default: "
               "by predicted cost)"),
      cl::value_desc("place"), cl::cat(category)};
  cl::opt<std::string> chip{
      "chip",
      cl::desc("Chip to emit code for: sm_80 ... sm_120, sm_90a, cpu "
               "(default: the device's)"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> pipeline{
      "pipeline-options",
      cl::desc("Further options of the compiler's pipeline, e.g. "
               "'rescale=0 scheduler=grid path=portable'"),
      cl::value_desc("options"), cl::cat(category)};
  cl::opt<std::string> assembler{
      "assembler",
      cl::desc("Who makes machine code for a GPU: driver or ptxas (default: "
               "driver)"),
      cl::value_desc("name"), cl::init("driver"), cl::cat(category)};
  cl::opt<int64_t> warps{
      "warps", cl::desc("Warps per query tile on a GPU (default: the chip's)"),
      cl::init(0), cl::cat(category)};
  cl::opt<int64_t> stages{
      "stages",
      cl::desc("Slots of the rings of keys and values (default: the chip's)"),
      cl::init(0), cl::cat(category)};
  cl::opt<int64_t> blockM{"block-m",
                          cl::desc("Query rows per tile (default: the chip's)"),
                          cl::init(0), cl::cat(category)};
  cl::opt<int64_t> blockN{"block-n",
                          cl::desc("Key rows per tile (default: the chip's)"),
                          cl::init(0), cl::cat(category)};
};
} // namespace

llvm::Expected<Options> attnfuse::run::parseOptions(int argc, char **argv) {
  cl::ResetCommandLineParser();
  static Flags flags;
  cl::ParseCommandLineOptions(
      argc, argv,
      "Runs, checks and times an attention program.\n\n"
      "  attnfuse-run examples/llama3_prefill.mlir --set N=2048 --check\n");
  Options options;
  options.program = flags.program;
  options.entry = flags.entry;
  options.device = flags.device;
  options.seed = flags.seed;
  options.threads = flags.threads;
  options.allowEmpty = flags.allowEmpty;
  options.check = flags.check;
  options.checkRows = flags.checkRows;
  options.bench = flags.bench;
  options.flush = flags.flush;
  options.warmup = flags.warmup;
  options.repetitions = flags.repetitions;
  options.explain = flags.explain;
  options.emit = flags.emit;
  options.dumpPhases = flags.dumpPhases;
  options.json = flags.json;
  options.rope = flags.rope;
  options.chip = flags.chip;
  options.warps = flags.warps;
  options.pipeline = flags.pipeline;
  options.assembler = flags.assembler;
  options.stages = flags.stages;
  options.blockM = flags.blockM;
  options.blockN = flags.blockN;
  for (llvm::StringRef set : flags.sets) {
    auto [name, text] = set.split('=');
    int64_t value;
    if (name.empty() || text.getAsInteger(10, value) || value < 0) {
      return llvm::createStringError(
          "--set takes NAME=VALUE with a whole number of at least 0, got '" +
          set + "'");
    }
    options.extents[name.str()] = value;
  }
  for (llvm::StringRef input : flags.inputs) {
    auto [name, file] = input.split('=');
    if (name.empty() || file.empty()) {
      return llvm::createStringError(
          "--input takes ARGUMENT=FILE, by name or number, got '" + input +
          "'");
    }
    name.consume_front("%");
    auto [known, isNew] = options.inputs.try_emplace(name.str(), file.str());
    if (!isNew) {
      return llvm::createStringError("--input names two files for argument '" +
                                     name + "': '" + known->second + "' and '" +
                                     file + "'");
    }
  }
  size_t next = 0;
  for (llvm::StringRef output : flags.outputs) {
    auto [name, file] = output.split('=');
    size_t place;
    if (file.empty()) {
      place = next;
      file = output;
    } else if (name.getAsInteger(10, place)) {
      return llvm::createStringError("--output takes [NUMBER=]FILE, got '" +
                                     output + "'");
    }
    auto [known, isNew] =
        options.outputs.try_emplace(std::to_string(place), file.str());
    if (!isNew) {
      return llvm::createStringError("--output names two files for result " +
                                     llvm::Twine(place) + ": '" +
                                     known->second + "' and '" + file + "'");
    }
    next = place + 1;
  }
  for (auto [value, name] :
       {std::pair<int64_t, const char *>(flags.warmup, "--warmup"),
        std::pair<int64_t, const char *>(flags.repetitions, "--repetitions"),
        std::pair<int64_t, const char *>(flags.checkRows, "--check-rows"),
        std::pair<int64_t, const char *>(flags.warps, "--warps"),
        std::pair<int64_t, const char *>(flags.stages, "--stages"),
        std::pair<int64_t, const char *>(flags.blockM, "--block-m"),
        std::pair<int64_t, const char *>(flags.blockN, "--block-n")}) {
    if (value < 0) {
      return llvm::createStringError(llvm::Twine(name) +
                                     " takes a number of at least 0, got " +
                                     llvm::Twine(value));
    }
  }
  static constexpr llvm::StringLiteral forms[] = {"",    "tile",  "llvm",
                                                  "ptx", "cubin", "manifest"};
  if (!llvm::is_contained(forms, options.emit)) {
    return llvm::createStringError("--emit takes 'tile', 'llvm', 'ptx', "
                                   "'cubin' or 'manifest', got '" +
                                   options.emit + "'");
  }
  PipelineOptions pipeline;
  std::string refusal;
  llvm::raw_string_ostream refused(refusal);
  if (mlir::failed(pipeline.parseFromString(options.pipeline, refused))) {
    return llvm::createStringError("--pipeline-options: " + refusal);
  }
  for (auto [given, name] :
       {std::pair<bool, const char *>(pipeline.chip.hasValue(), "chip"),
        std::pair<bool, const char *>(pipeline.rope.hasValue(), "rope"),
        std::pair<bool, const char *>(pipeline.warps.hasValue(), "warps"),
        std::pair<bool, const char *>(pipeline.stages.hasValue(), "stages"),
        std::pair<bool, const char *>(pipeline.blockM.hasValue(), "block-m"),
        std::pair<bool, const char *>(pipeline.blockN.hasValue(), "block-n")}) {
    if (given) {
      return llvm::createStringError(llvm::Twine("--pipeline-options: '") +
                                     name + "' has a flag of its own, use --" +
                                     name);
    }
  }
  if (options.assembler != "driver" && options.assembler != "ptxas") {
    return llvm::createStringError("--assembler takes 'driver' or 'ptxas', "
                                   "got '" +
                                   options.assembler + "'");
  }
  if (!options.rope.empty() && options.rope != "in_loop" &&
      options.rope != "once") {
    return llvm::createStringError("--rope takes 'in_loop' or 'once', got '" +
                                   options.rope + "'");
  }
  if (flags.threads > 4096) {
    return llvm::createStringError("--threads takes 1 to 4096, got " +
                                   llvm::Twine(flags.threads));
  }
  return options;
}
