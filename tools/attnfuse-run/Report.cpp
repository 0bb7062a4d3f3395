//===- Report.cpp - what attnfuse-run prints -------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "AttnFuse/Analysis/Chip.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <nlohmann/json.hpp>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::run;

std::string attnfuse::run::describeHost(unsigned threads) {
  unsigned count = llvm::hardware_concurrency(threads).compute_thread_count();
  std::string text = "cpu (" + llvm::sys::getHostCPUName().str() + ", " +
                     std::to_string(count) +
                     (count == 1 ? " thread" : " threads");
  if (auto chip = lookupChip("cpu")) {
    text += ", " + std::to_string(chip->vectorBits) + "-bit vectors";
  } else {
    llvm::consumeError(chip.takeError());
  }
  return text + ")";
}

double attnfuse::run::countFlops(func::FuncOp function,
                                 ArrayRef<HostTensor> inputs) {
  // Extents of the tensors an attention reads: its arguments, rotated or not.
  auto shapeOf = [&](Value value) -> ArrayRef<int64_t> {
    while (auto rope = value.getDefiningOp<attn::RopeOp>()) {
      value = rope.getInput();
    }
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner()->getParentOp() == function
               ? inputs[argument.getArgNumber()].shape()
               : ArrayRef<int64_t>();
  };
  double flops = 0;
  function.walk([&](attn::AggregateOp aggregate) {
    Operation *op = aggregate.getWeights().getDefiningOp();
    while (op && !isa<attn::ScaledDotProductOp>(op)) {
      op = op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr;
    }
    auto product = dyn_cast_or_null<attn::ScaledDotProductOp>(op);
    if (!product) {
      return;
    }
    ArrayRef<int64_t> q = shapeOf(product.getQuery());
    ArrayRef<int64_t> k = shapeOf(product.getKey());
    if (q.size() == 4 && k.size() == 4) {
      double width = static_cast<double>(
          q[3] + aggregate.getValue().getType().getDimSize(3));
      flops += 2.0 * q[0] * q[1] * q[2] * k[2] * width;
    }
  });
  return flops;
}

static std::string typeOf(const HostTensor &tensor) {
  return dtypeName(tensor.dtype()).str() + " " + shapeToString(tensor.shape());
}

void attnfuse::run::printReport(llvm::raw_ostream &os, const Report &report,
                                const Options &options) {
  auto ms = [](double seconds) {
    return llvm::format("%.3f ms", seconds * 1e3);
  };
  os << "device: " << report.device << "\n";
  os << "program: " << report.program << " @" << report.function << "\n";
  for (const Argument &argument : report.arguments) {
    os << "  " << argument.name << ": " << typeOf(argument.value) << ", "
       << argument.origin << "\n";
  }
  for (const HostTensor &result : report.results) {
    os << "  -> " << typeOf(result) << "\n";
  }
  os << "compile: " << ms(report.passSeconds + report.codeSeconds)
     << " (passes " << ms(report.passSeconds) << ", machine code "
     << ms(report.codeSeconds) << ")";
  if (report.loadSeconds > 0) {
    os << ", load " << ms(report.loadSeconds);
  }
  os << "\n";
  if (options.explain) {
    for (const std::string &line : report.explanation) {
      os << "explain: " << line << "\n";
    }
    for (auto &[name, spent] : report.kernelTimes) {
      os << "explain: " << name << " took " << ms(spent)
         << " in the last run\n";
    }
  }
  if (report.timing) {
    const Timing &timing = *report.timing;
    os << "time: median " << ms(timing.median()) << ", quartiles "
       << ms(timing.quantile(0.25)) << " to " << ms(timing.quantile(0.75))
       << ", " << timing.runs.size() << " runs after " << timing.warmup
       << " for warm-up";
    if (report.flops > 0) {
      os << "; " << llvm::format("%.1f", report.flops / timing.median() * 1e-9)
         << " GFLOP/s counting every pair";
      if (!report.roofline.empty()) {
        os << ", " << report.roofline;
      }
    }
    os << "\n";
  } else {
    os << "time: " << ms(report.firstRunSeconds)
       << ", first run (--bench repeats it)\n";
  }
  for (auto [place, check] : llvm::enumerate(report.checks)) {
    os << "check: " << (check.passed() ? "ok" : "FAILED") << ", result "
       << place << ", " << check.compared << " of "
       << report.results[place].numElements()
       << " elements against the float64 oracle: worst error "
       << llvm::format("%.3g", check.worstError) << " at [" << check.worstPlace
       << "], " << llvm::format("%.3g", check.worstShare)
       << " of its tolerance\n";
  }
}

llvm::Error attnfuse::run::writeJson(StringRef path, const Report &report) {
  using nlohmann::ordered_json;
  auto tensor = [](const HostTensor &value) {
    ordered_json entry;
    entry["dtype"] = dtypeName(value.dtype()).str();
    entry["shape"] =
        std::vector<int64_t>(value.shape().begin(), value.shape().end());
    return entry;
  };
  ordered_json json;
  json["device"] = report.device;
  json["program"] = report.program;
  json["function"] = report.function;
  for (const Argument &argument : report.arguments) {
    ordered_json entry = tensor(argument.value);
    entry["name"] = argument.name;
    entry["origin"] = argument.origin;
    json["arguments"].push_back(entry);
  }
  json["compile_ms"] = {{"passes", report.passSeconds * 1e3},
                        {"code", report.codeSeconds * 1e3}};
  json["first_run_ms"] = report.firstRunSeconds * 1e3;
  json["flops"] = report.flops;
  json["explain"] = report.explanation;
  ordered_json result;
  if (report.timing) {
    const Timing &timing = *report.timing;
    std::vector<double> runs;
    for (double run : timing.runs) {
      runs.push_back(run * 1e3);
    }
    result["kernel_ms"] = {{"median", timing.median() * 1e3},
                           {"p25", timing.quantile(0.25) * 1e3},
                           {"p75", timing.quantile(0.75) * 1e3},
                           {"runs", runs}};
  }
  for (auto [place, value] : llvm::enumerate(report.results)) {
    ordered_json entry = tensor(value);
    if (place < report.checks.size()) {
      const reference::Comparison &check = report.checks[place];
      entry["check"] = {{"passed", check.passed()},
                        {"compared", check.compared},
                        {"worst_error", check.worstError},
                        {"worst_share_of_tolerance", check.worstShare}};
    }
    result["outputs"].push_back(entry);
  }
  json["results"] = ordered_json::array({result});
  std::string text =
      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (path == "-") {
    llvm::outs() << text;
    return llvm::Error::success();
  }
  auto fail = [&](std::error_code failed) {
    return llvm::createStringError("--json: '" + path +
                                   "' cannot be written: " + failed.message());
  };
  std::error_code failed;
  llvm::raw_fd_ostream stream(path, failed);
  if (failed) {
    return fail(failed);
  }
  stream << text;
  stream.close();
  if (stream.has_error()) {
    // The stream ends the process if nobody has seen its error.
    failed = stream.error();
    stream.clear_error();
    return fail(failed);
  }
  return llvm::Error::success();
}

llvm::Error attnfuse::run::checkJson(StringRef path) {
  StringRef folder = llvm::sys::path::parent_path(path);
  if (path.empty() || path == "-") {
    return llvm::Error::success();
  }
  if (!folder.empty() && !llvm::sys::fs::is_directory(folder)) {
    return llvm::createStringError("--json: '" + path +
                                   "' cannot be written: there is no folder '" +
                                   folder + "'");
  }
  if (llvm::sys::fs::is_directory(path)) {
    return llvm::createStringError("--json: '" + path +
                                   "' cannot be written: it is a directory");
  }
  return llvm::Error::success();
}
