//===- Manifest.cpp - how compiled kernels are launched --------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Target/NVPTX/Manifest.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"
#include "AttnFuse/Support/ElementTypes.h"
#include "AttnFuse/Support/HostTensor.h"
#include "AttnFuse/Target/NVPTX/NVPTX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Base64.h"

#include <nlohmann/json.hpp>

using namespace mlir;
using namespace attnfuse;
using nlohmann::json;

static llvm::Error errorAt(Location loc, const llvm::Twine &message) {
  std::string place;
  llvm::raw_string_ostream(place) << loc;
  StringRef text(place);
  text.consume_front("loc(");
  text.consume_back(")");
  return llvm::createStringError(text + ": " + message);
}

static std::string dtypeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text == "index" ? "i64" : text;
}

namespace {
/// Follows a host function's values: tensors are references to arguments,
/// temporaries, constants or results; scalars are extents or numbers.
class ManifestWriter {
public:
  ManifestWriter(ModuleOp module, StringRef chip) : module(module) {
    manifest["version"] = 1;
    manifest["chip"] = chip.str();
    manifest["ptx"] = ptxVersionFor(chip);
    for (const char *list :
         {"arguments", "results", "temporaries", "constants", "steps"}) {
      manifest[list] = json::array();
    }
  }

  llvm::Error write(func::FuncOp function, ArrayRef<std::string> names) {
    manifest["entry"] = function.getSymName().str();
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      json entry;
      entry["name"] = number < names.size() && !names[number].empty()
                          ? names[number]
                          : "argument" + std::to_string(number);
      auto tensor = dyn_cast<RankedTensorType>(argument.getType());
      entry["dtype"] =
          dtypeName(tensor ? tensor.getElementType() : argument.getType());
      if (tensor) {
        json shape = json::array();
        for (int64_t extent : tensor.getShape()) {
          shape.push_back(ShapedType::isDynamic(extent) ? json(nullptr)
                                                        : json(extent));
        }
        entry["shape"] = shape;
      }
      manifest["arguments"].push_back(entry);
      values[argument] = {{"argument", number}};
    }
    SmallVector<Value> returned;
    if (llvm::Error error = execute(function, returned)) {
      return error;
    }
    return placeResults(function, returned);
  }

  std::string text() const { return manifest.dump(1); }
  json manifest;

private:
  llvm::Error execute(func::FuncOp function, SmallVectorImpl<Value> &returned) {
    for (Operation &op : function.getBody().front()) {
      if (auto ret = dyn_cast<func::ReturnOp>(op)) {
        returned.assign(ret.getOperands().begin(), ret.getOperands().end());
        return llvm::Error::success();
      }
      if (llvm::Error error = execute(&op)) {
        return error;
      }
    }
    return errorAt(function.getLoc(), "the function does not return");
  }

  llvm::Error execute(Operation *op) {
    return llvm::TypeSwitch<Operation *, llvm::Error>(op)
        .Case([&](func::CallOp call) { return executeCall(call); })
        .Case([&](tile::LaunchOp launch) { return executeLaunch(launch); })
        .Case([&](tensor::EmptyOp empty) {
          json shape = json::array();
          size_t next = 0;
          for (int64_t extent : empty.getType().getShape()) {
            shape.push_back(ShapedType::isDynamic(extent)
                                ? values[empty.getDynamicSizes()[next++]]
                                : json(extent));
          }
          json entry{{"dtype", dtypeName(empty.getType().getElementType())},
                     {"shape", shape}};
          values[empty.getResult()] = {
              {"temporary", manifest["temporaries"].size()}};
          manifest["temporaries"].push_back(entry);
          return llvm::Error::success();
        })
        .Case([&](arith::ConstantOp constant) {
          return executeConstant(constant);
        })
        .Case([&](tensor::DimOp dim) -> llvm::Error {
          std::optional<int64_t> place = dim.getConstantIndex();
          auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
          if (!place || !type) {
            return errorAt(dim.getLoc(), "a manifest needs tensor.dim of a "
                                         "constant dimension");
          }
          values[dim.getResult()] = extentOf(dim.getSource(), *place);
          return llvm::Error::success();
        })
        .Default([&](Operation *other) {
          return errorAt(other->getLoc(),
                         "a program for a GPU cannot hold '" +
                             other->getName().getStringRef() +
                             "' in host code; supported: attention, calls, "
                             "constants, tensor.dim and tensor.empty");
        });
  }

  /// A number, or an extent of an argument.
  json extentOf(Value tensor, int64_t dimension) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (!type.isDynamicDim(dimension)) {
      return type.getDimSize(dimension);
    }
    json reference = values[tensor];
    if (reference.contains("argument")) {
      return {{"argument", reference["argument"]}, {"dimension", dimension}};
    }
    return manifest["temporaries"][reference["temporary"].get<size_t>()]
                   ["shape"][dimension];
  }

  llvm::Error executeCall(func::CallOp call) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal()) {
      return errorAt(call.getLoc(), "the function '" + call.getCallee() +
                                        "' has no body to execute");
    }
    for (auto [parameter, operand] :
         llvm::zip(callee.getArguments(), call.getOperands())) {
      values[parameter] = values[operand];
    }
    SmallVector<Value> returned;
    if (llvm::Error error = execute(callee, returned)) {
      return error;
    }
    for (auto [result, value] : llvm::zip(call.getResults(), returned)) {
      values[result] = values[value];
    }
    return llvm::Error::success();
  }

  llvm::Error executeConstant(arith::ConstantOp op) {
    if (auto integer = dyn_cast<IntegerAttr>(op.getValue())) {
      values[op.getResult()] = integer.getValue().getSExtValue();
      return llvm::Error::success();
    }
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    std::optional<DType> type =
        dense ? dtypeOf(dense.getElementType()) : std::nullopt;
    if (!type) {
      return errorAt(op.getLoc(),
                     "constants are integers or dense tensors, got " +
                         dtypeName(op.getType()));
    }
    auto tensor = HostTensor::allocate(*type, dense.getType().getShape());
    if (!tensor) {
      return tensor.takeError();
    }
    fillFrom(dense, *tensor);
    int64_t count = dense.getNumElements();
    int64_t bytes = dense.getElementType().isInteger(1)
                        ? 1
                        : dense.getElementType().getIntOrFloatBitWidth() / 8;
    StringRef raw(static_cast<const char *>(tensor->data()), count * bytes);
    json shape = json::array();
    for (int64_t extent : dense.getType().getShape()) {
      shape.push_back(extent);
    }
    values[op.getResult()] = {{"constant", manifest["constants"].size()}};
    manifest["constants"].push_back(
        {{"dtype", dtypeName(dense.getElementType())},
         {"shape", shape},
         {"data", llvm::encodeBase64(raw)}});
    return llvm::Error::success();
  }

  /// The step that runs a kernel on operands.
  llvm::Expected<json> stepFor(tile::LaunchOp op, SymbolRefAttr symbol,
                               ArrayAttr grid, const json &operands) {
    auto function = dyn_cast_or_null<LLVM::LLVMFuncOp>(
        SymbolTable::lookupNearestSymbolFrom(module, symbol));
    if (!function || !grid) {
      return errorAt(op.getLoc(), "the launch's kernel has not been lowered");
    }
    json step;
    step["kernel"] = symbol.getLeafReference().str();
    step["threads"] =
        function->getAttrOfType<IntegerAttr>("attnfuse.threads").getInt();
    step["shared"] =
        function->getAttrOfType<IntegerAttr>("attnfuse.shared_bytes").getInt();
    step["grid"] = json::array();
    for (Attribute attr : grid) {
      auto extent = cast<tile::ExtentAttr>(attr);
      step["grid"].push_back({{"operand", extent.getArg()},
                              {"dimension", extent.getDim()},
                              {"divisor", extent.getDiv()}});
    }
    step["operands"] = operands;
    step["extras"] = json::array();
    if (auto extras = function->getAttrOfType<StringAttr>("attnfuse.extras")) {
      step["extras"] = json::parse(extras.getValue().str());
    }
    if (auto persistent =
            function->getAttrOfType<IntegerAttr>("attnfuse.persistent")) {
      step["persistent"] = persistent.getInt();
    }
    return step;
  }

  llvm::Error executeLaunch(tile::LaunchOp op) {
    json operands = json::array();
    SmallVector<Value> list(op.getInputs());
    llvm::append_range(list, op.getInits());
    for (Value operand : list) {
      if (!values[operand].is_object()) {
        return errorAt(op.getLoc(), "a launch takes tensors and scalar "
                                    "arguments of the function");
      }
      operands.push_back(values[operand]);
    }
    auto step = stepFor(op, op.getKernelAttr(),
                        op->getAttrOfType<ArrayAttr>("grid"), operands);
    if (!step) {
      return step.takeError();
    }
    // What is done where tensor maps cannot serve the strides: another kernel,
    // or marks (the last output) for the launch that follows.
    Attribute otherwise = op->getAttr("otherwise");
    if (auto symbol = dyn_cast_or_null<SymbolRefAttr>(otherwise)) {
      auto other = stepFor(
          op, symbol, op->getAttrOfType<ArrayAttr>("otherwise_grid"), operands);
      if (!other) {
        return other.takeError();
      }
      (*step)["otherwise"] = *other;
    } else if (otherwise) {
      (*step)["otherwise_fill"] = operands.back();
    }
    manifest["steps"].push_back(*step);
    for (auto [result, init] : llvm::zip(op.getOutputs(), op.getInits())) {
      values[result] = values[init];
    }
    return llvm::Error::success();
  }

  /// Temporaries that the function returns become results.
  llvm::Error placeResults(func::FuncOp function, ArrayRef<Value> returned) {
    llvm::DenseMap<size_t, size_t> results;
    for (auto [number, value] : llvm::enumerate(returned)) {
      const json &reference = values[value];
      if (!reference.contains("temporary") ||
          results.count(reference["temporary"].get<size_t>())) {
        return errorAt(function.getLoc(),
                       "result " + llvm::Twine(number) +
                           " is an argument, a constant or another result; a "
                           "program for a GPU returns what it computes, once");
      }
      size_t temporary = reference["temporary"];
      results[temporary] = number;
      manifest["results"].push_back(manifest["temporaries"][temporary]);
    }
    json kept = json::array();
    llvm::DenseMap<size_t, size_t> moved;
    for (size_t n = 0; n < manifest["temporaries"].size(); ++n) {
      if (!results.count(n)) {
        moved[n] = kept.size();
        kept.push_back(manifest["temporaries"][n]);
      }
    }
    manifest["temporaries"] = kept;
    auto rename = [&](json &operand) {
      if (operand.contains("temporary")) {
        size_t number = operand["temporary"];
        operand = results.count(number) ? json{{"result", results[number]}}
                                        : json{{"temporary", moved[number]}};
      }
    };
    for (json &step : manifest["steps"]) {
      for (json &operand : step["operands"]) {
        rename(operand);
      }
      if (step.contains("otherwise_fill")) {
        rename(step["otherwise_fill"]);
      }
      if (step.contains("otherwise")) {
        for (json &operand : step["otherwise"]["operands"]) {
          rename(operand);
        }
      }
    }
    return llvm::Error::success();
  }

  ModuleOp module;
  llvm::DenseMap<Value, json> values;
};
} // namespace

//===----------------------------------------------------------------------===//
// Extents that agree
//===----------------------------------------------------------------------===//

std::vector<std::pair<ArgumentExtent, ArgumentExtent>>
attnfuse::equalExtents(func::FuncOp function) {
  // The argument that a tensor's extents are those of, through rotations.
  std::vector<std::pair<ArgumentExtent, ArgumentExtent>> pairs;
  auto argumentOf = [](Value value) -> BlockArgument {
    while (auto rope = value.getDefiningOp<attn::RopeOp>()) {
      value = rope.getInput();
    }
    return dyn_cast<BlockArgument>(value);
  };
  auto same = [&](Value a, Value b, unsigned dimension) {
    BlockArgument x = argumentOf(a), y = argumentOf(b);
    if (!x || !y || x == y) {
      return;
    }
    auto dynamic = [&](BlockArgument argument) {
      return cast<RankedTensorType>(argument.getType()).isDynamicDim(dimension);
    };
    if (dynamic(x) || dynamic(y)) {
      pairs.push_back(
          {{x.getArgNumber(), dimension}, {y.getArgNumber(), dimension}});
    }
  };
  function.walk([&](attn::ScaledDotProductOp product) {
    same(product.getQuery(), product.getKey(), 0);
  });
  function.walk([&](attn::AggregateOp aggregate) {
    // The keys at the end of the chain of scores.
    Value value = aggregate.getWeights();
    while (Operation *op = value.getDefiningOp()) {
      if (auto product = dyn_cast<attn::ScaledDotProductOp>(op)) {
        same(product.getKey(), aggregate.getValue(), 0);
        same(product.getKey(), aggregate.getValue(), 2);
        return;
      }
      if (op->getNumOperands() == 0) {
        return;
      }
      value = op->getOperand(0);
    }
  });
  return pairs;
}

llvm::Expected<std::string> attnfuse::writeManifest(
    ModuleOp module, func::FuncOp function, StringRef chip,
    ArrayRef<std::pair<ArgumentExtent, ArgumentExtent>> equal,
    ArrayRef<std::string> argumentNames) {
  ManifestWriter writer(module, chip);
  if (llvm::Error error = writer.write(function, argumentNames)) {
    return std::move(error);
  }
  json pairs = json::array();
  for (const auto &[a, b] : equal) {
    pairs.push_back({{{"argument", a.argument}, {"dimension", a.dimension}},
                     {{"argument", b.argument}, {"dimension", b.dimension}}});
  }
  writer.manifest["equal"] = pairs;
  return writer.text();
}
