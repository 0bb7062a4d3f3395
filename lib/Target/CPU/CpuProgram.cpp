//===- CpuProgram.cpp - a program compiled for this CPU --------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Target/CPU/CpuProgram.h"

#include "AttnFuse/Dialect/Tile/IR/Tile.h"
#include "AttnFuse/Support/ElementTypes.h"
#include "AttnFuse/Target/CPU/CpuKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ThreadPool.h"

#include <chrono>
#include <cstring>

using namespace mlir;
using namespace attnfuse;

CpuProgram::CpuProgram(ModuleOp module, std::unique_ptr<CpuKernels> kernels)
    : module(module), kernels(std::move(kernels)) {}

CpuProgram::~CpuProgram() = default;

llvm::Expected<std::unique_ptr<CpuProgram>>
CpuProgram::compile(ModuleOp module) {
  std::unique_ptr<CpuKernels> kernels;
  for (auto inner : module.getOps<ModuleOp>()) {
    auto compiled = CpuKernels::compile(inner);
    if (!compiled) {
      return compiled.takeError();
    }
    kernels = std::move(*compiled);
  }
  return std::unique_ptr<CpuProgram>(
      new CpuProgram(module, std::move(kernels)));
}

//===----------------------------------------------------------------------===//
// Host code
//===----------------------------------------------------------------------===//

namespace attnfuse {

static llvm::Error errorAt(Location loc, const llvm::Twine &message) {
  std::string place;
  llvm::raw_string_ostream(place) << loc;
  StringRef text(place);
  text.consume_front("loc(");
  text.consume_back(")");
  return llvm::createStringError(text + ": " + message);
}

/// Executes one host function; values are tensors, scalars of rank 0.
class HostExecutor {
public:
  HostExecutor(CpuProgram &program, llvm::ThreadPoolInterface &pool,
               bool poison)
      : program(program), pool(pool), poison(poison) {}

  llvm::Expected<std::vector<HostTensor>> run(func::FuncOp function,
                                              ArrayRef<HostTensor> arguments) {
    llvm::DenseMap<Value, HostTensor> values;
    for (auto [parameter, argument] :
         llvm::zip(function.getArguments(), arguments)) {
      values[parameter] = argument;
    }
    for (Operation &op : function.getBody().front()) {
      if (auto ret = dyn_cast<func::ReturnOp>(op)) {
        std::vector<HostTensor> results;
        for (Value result : ret.getOperands()) {
          results.push_back(values[result]);
        }
        return results;
      }
      if (llvm::Error error = execute(&op, values)) {
        return error;
      }
    }
    return errorAt(function.getLoc(), "the function does not return");
  }

private:
  using Values = llvm::DenseMap<Value, HostTensor>;

  static HostTensor scalar(int64_t value) {
    HostTensor tensor = llvm::cantFail(HostTensor::allocate(DType::I64, {}));
    std::memcpy(tensor.data(), &value, sizeof(value));
    return tensor;
  }

  llvm::Error execute(Operation *op, Values &values) {
    return llvm::TypeSwitch<Operation *, llvm::Error>(op)
        .Case([&](func::CallOp call) { return executeCall(call, values); })
        .Case([&](tile::LaunchOp op) { return executeLaunch(op, values); })
        .Case([&](tensor::EmptyOp op) { return executeEmpty(op, values); })
        .Case([&](arith::ConstantOp op) { return executeConstant(op, values); })
        .Case([&](tensor::DimOp dim) {
          int64_t place = values[dim.getIndex()].intAt({});
          values[dim.getResult()] =
              scalar(values[dim.getSource()].shape()[place]);
          return llvm::Error::success();
        })
        .Case([&](arith::IndexCastOp cast) {
          values[cast.getResult()] = scalar(values[cast.getIn()].intAt({}));
          return llvm::Error::success();
        })
        .Case<arith::AddIOp, arith::SubIOp, arith::MulIOp>([&](auto binary) {
          int64_t a = values[binary.getLhs()].intAt({});
          int64_t b = values[binary.getRhs()].intAt({});
          values[binary.getResult()] = scalar(isa<arith::AddIOp>(op)   ? a + b
                                              : isa<arith::SubIOp>(op) ? a - b
                                                                       : a * b);
          return llvm::Error::success();
        })
        .Default([&](Operation *other) {
          return errorAt(other->getLoc(),
                         "attnfuse-run does not execute '" +
                             other->getName().getStringRef() +
                             "'; supported in host code: attention, calls, "
                             "constants, tensor.dim, tensor.empty and index "
                             "arithmetic");
        });
  }

  llvm::Error executeCall(func::CallOp call, Values &values) {
    auto callee = program.module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal()) {
      return errorAt(call.getLoc(), "the function '" + call.getCallee() +
                                        "' has no body to execute");
    }
    std::vector<HostTensor> arguments;
    for (Value operand : call.getOperands()) {
      arguments.push_back(values[operand]);
    }
    auto results = run(callee, arguments);
    if (!results) {
      return results.takeError();
    }
    for (auto [result, value] : llvm::zip(call.getResults(), *results)) {
      values[result] = value;
    }
    return llvm::Error::success();
  }

  llvm::Error executeEmpty(tensor::EmptyOp op, Values &values) {
    auto type = op.getType();
    SmallVector<int64_t> shape(type.getShape());
    size_t next = 0;
    for (int64_t &extent : shape) {
      if (ShapedType::isDynamic(extent)) {
        extent = values[op.getDynamicSizes()[next++]].intAt({});
      }
    }
    HostTensor &kept = program.kept[op];
    if (!kept.ownsAlone() || kept.shape() != ArrayRef<int64_t>(shape)) {
      auto made = HostTensor::allocate(*dtypeOf(type.getElementType()), shape);
      if (!made) {
        return errorAt(op.getLoc(), llvm::toString(made.takeError()));
      }
      kept = *made;
    }
    if (poison) {
      kept.poison();
    }
    values[op.getResult()] = kept;
    return llvm::Error::success();
  }

  llvm::Error executeConstant(arith::ConstantOp op, Values &values) {
    if (auto integer = dyn_cast<IntegerAttr>(op.getValue())) {
      values[op.getResult()] = scalar(integer.getValue().getSExtValue());
      return llvm::Error::success();
    }
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    std::optional<DType> type =
        dense ? dtypeOf(dense.getElementType()) : std::nullopt;
    if (!type) {
      return errorAt(op.getLoc(), "attnfuse-run knows constants that are "
                                  "integers or dense tensors");
    }
    HostTensor &kept = program.kept[op];
    if (!kept.data()) {
      auto made = HostTensor::allocate(*type, dense.getType().getShape());
      if (!made) {
        return errorAt(op.getLoc(), llvm::toString(made.takeError()));
      }
      fillFrom(dense, *made);
      kept = *made;
    }
    values[op.getResult()] = kept;
    return llvm::Error::success();
  }

  llvm::Error executeLaunch(tile::LaunchOp op, Values &values) {
    auto start = std::chrono::steady_clock::now();
    SmallVector<KernelArgument> arguments;
    SmallVector<Value> operands(op.getInputs());
    llvm::append_range(operands, op.getInits());
    for (Value operand : operands) {
      const HostTensor &tensor = values[operand];
      KernelArgument argument;
      if (!isa<RankedTensorType>(operand.getType())) {
        Type type = operand.getType();
        argument.kind =
            type.isF32() ? KernelArgument::F32 : KernelArgument::I64;
        if (type.isF32()) {
          argument.real = tensor.at({});
        } else {
          argument.integer = tensor.intAt({});
        }
      } else {
        argument.array.data = tensor.data();
        argument.array.sizes.assign(tensor.shape().begin(),
                                    tensor.shape().end());
        argument.array.strides.assign(tensor.strides().begin(),
                                      tensor.strides().end());
      }
      arguments.push_back(std::move(argument));
    }
    int64_t points = 1;
    for (Attribute attr : op->getAttrOfType<ArrayAttr>("grid")) {
      auto extent = cast<tile::ExtentAttr>(attr);
      int64_t size = values[operands[extent.getArg()]].shape()[extent.getDim()];
      points *= (size + extent.getDiv() - 1) / extent.getDiv();
    }
    StringRef name = op.getKernelAttr().getLeafReference();
    if (llvm::Error error =
            program.kernels->launch(name, arguments, points, pool)) {
      return errorAt(op.getLoc(), llvm::toString(std::move(error)));
    }
    for (auto [result, init] : llvm::zip(op.getOutputs(), op.getInits())) {
      values[result] = values[init];
    }
    std::chrono::duration<double> spent =
        std::chrono::steady_clock::now() - start;
    program.times.push_back({name.str(), spent.count()});
    return llvm::Error::success();
  }

  CpuProgram &program;
  llvm::ThreadPoolInterface &pool;
  bool poison;
};

} // namespace attnfuse

llvm::Expected<std::vector<HostTensor>>
CpuProgram::run(func::FuncOp function, ArrayRef<HostTensor> arguments,
                llvm::ThreadPoolInterface &pool, bool poison) {
  times.clear();
  return HostExecutor(*this, pool, poison).run(function, arguments);
}
