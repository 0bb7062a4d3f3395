//===- Evaluator.cpp - the float64 oracle ----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Reference/Evaluator.h"

#include "Attention.h"

#include "AttnFuse/Support/ElementTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

llvm::Error attnfuse::reference::errorAt(Location loc,
                                         const llvm::Twine &message) {
  std::string place;
  llvm::raw_string_ostream(place) << loc;
  StringRef text(place);
  text.consume_front("loc(");
  text.consume_back(")");
  return llvm::createStringError(text + ": " + message);
}

static ArrayRefPtr scalar(double value) {
  auto array = std::make_shared<Array>();
  array->data = {value};
  return array;
}

namespace {
class Interpreter {
public:
  explicit Interpreter(const Options &options) : options(options) {}

  llvm::Expected<std::vector<RowResult>> run(func::FuncOp function,
                                             ArrayRef<ArrayRefPtr> arguments);

private:
  llvm::Error execute(Operation &op, Values &values);
  llvm::Error executeElementwise(Operation &op, Values &values);

  /// Options for a result: a sample only if the function alone reads it.
  Options optionsFor(Value result) {
    Options chosen = options;
    for (Operation *user : result.getUsers()) {
      if (!isa<func::ReturnOp>(user) || depth > 1) {
        chosen.maxRowsPerHead = 0;
      }
    }
    return chosen;
  }

  Options options;
  unsigned depth = 0;
  /// Results of attentions, whose rows have more to tell than values.
  llvm::DenseMap<Value, RowResult> rows;
};
} // namespace

llvm::Expected<std::vector<RowResult>>
Interpreter::run(func::FuncOp function, ArrayRef<ArrayRefPtr> arguments) {
  if (function.isExternal()) {
    return errorAt(function.getLoc(),
                   "the function '" + function.getSymName() + "' has no body");
  }
  ++depth;
  Values values;
  for (auto [parameter, argument] :
       llvm::zip(function.getArguments(), arguments)) {
    values[parameter] = argument;
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (llvm::Error error = execute(op, values)) {
      return std::move(error);
    }
  }
  std::vector<RowResult> results;
  for (Value result :
       function.getBody().front().getTerminator()->getOperands()) {
    ArrayRefPtr value = values.lookup(result);
    if (!value) {
      return errorAt(function.getLoc(), "the oracle has no value for a result "
                                        "of the function");
    }
    RowResult &row = rows[result];
    results.push_back(
        {std::make_shared<Array>(*value), row.computed, row.magnitudes});
  }
  --depth;
  return results;
}

llvm::Error Interpreter::execute(Operation &op, Values &values) {
  if (auto rope = dyn_cast<attn::RopeOp>(op)) {
    auto result = evaluateRope(rope, values);
    if (!result) {
      return result.takeError();
    }
    values[rope.getResult()] = *result;
    return llvm::Error::success();
  }
  auto keep = [&](Value value,
                  llvm::Expected<RowResult> result) -> llvm::Error {
    if (!result) {
      return result.takeError();
    }
    values[value] = result->values;
    rows[value] = *result;
    return llvm::Error::success();
  };
  if (auto aggregate = dyn_cast<attn::AggregateOp>(op)) {
    Value result = aggregate.getResult();
    return keep(result,
                evaluateAggregate(aggregate, values, optionsFor(result)));
  }
  if (auto softmax = dyn_cast<attn::SoftmaxOp>(op)) {
    Value lse = softmax.getLse();
    if (!lse || lse.use_empty()) {
      return llvm::Error::success();
    }
    return keep(lse, evaluateLse(softmax, values, optionsFor(lse)));
  }
  // Scores, weights and masks are evaluated row by row, where they are used.
  if (op.getName().getDialectNamespace() == "attn") {
    return llvm::Error::success();
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (!callee || depth > 64) {
      return errorAt(op.getLoc(),
                     "the oracle cannot call '" + call.getCallee() + "'");
    }
    std::vector<ArrayRefPtr> arguments;
    for (Value operand : call.getOperands()) {
      arguments.push_back(values.lookup(operand));
    }
    auto results = run(callee, arguments);
    if (!results) {
      return results.takeError();
    }
    for (auto [result, value] : llvm::zip(call.getResults(), *results)) {
      values[result] = value.values;
    }
    return llvm::Error::success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto real = dyn_cast<FloatAttr>(constant.getValue())) {
      values[constant] = scalar(real.getValueAsDouble());
      return llvm::Error::success();
    }
    if (auto integer = dyn_cast<IntegerAttr>(constant.getValue())) {
      values[constant] =
          scalar(static_cast<double>(integer.getValue().getSExtValue()));
      return llvm::Error::success();
    }
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    std::optional<DType> type =
        dense ? dtypeOf(dense.getElementType()) : std::nullopt;
    if (!type) {
      return errorAt(op.getLoc(), "the oracle does not know this constant");
    }
    auto tensor = HostTensor::allocate(*type, dense.getType().getShape());
    if (!tensor) {
      return tensor.takeError();
    }
    fillFrom(dense, *tensor);
    auto array = std::make_shared<Array>();
    array->shape.assign(tensor->shape().begin(), tensor->shape().end());
    array->data = tensor->toDouble();
    values[constant] = array;
    return llvm::Error::success();
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto place = static_cast<int64_t>(values.lookup(dim.getIndex())->data[0]);
    values[dim.getResult()] = scalar(
        static_cast<double>(values.lookup(dim.getSource())->shape[place]));
    return llvm::Error::success();
  }
  return executeElementwise(op, values);
}

llvm::Error Interpreter::executeElementwise(Operation &op, Values &values) {
  StringRef name = op.getName().getStringRef();
  std::function<double(double, double)> fn;
  if (name == "arith.addf" || name == "arith.addi") {
    fn = [](double a, double b) { return a + b; };
  } else if (name == "arith.subf" || name == "arith.subi") {
    fn = [](double a, double b) { return a - b; };
  } else if (name == "arith.mulf" || name == "arith.muli") {
    fn = [](double a, double b) { return a * b; };
  } else if (name == "arith.divf") {
    fn = [](double a, double b) { return a / b; };
  } else if (name == "arith.negf") {
    fn = [](double a, double) { return -a; };
  } else if (name == "arith.extf" || name == "arith.truncf" ||
             name == "arith.index_cast") {
    fn = [](double a, double) { return a; };
  } else {
    return errorAt(op.getLoc(), "the oracle does not know '" + name + "'");
  }
  ArrayRefPtr lhs = values.lookup(op.getOperand(0));
  ArrayRefPtr rhs = values.lookup(op.getOperand(op.getNumOperands() - 1));
  auto result = std::make_shared<Array>(*lhs);
  for (size_t n = 0; n < result->data.size(); ++n) {
    result->data[n] = fn(lhs->data[n], rhs->data[n]);
  }
  values[op.getResult(0)] = result;
  return llvm::Error::success();
}

llvm::Expected<std::vector<Result>>
attnfuse::reference::evaluate(func::FuncOp function,
                              ArrayRef<HostTensor> inputs,
                              const Options &options) {
  std::vector<ArrayRefPtr> arguments;
  for (const HostTensor &input : inputs) {
    auto array = std::make_shared<Array>();
    array->shape.assign(input.shape().begin(), input.shape().end());
    array->data = input.toDouble();
    arguments.push_back(array);
  }
  auto rows = Interpreter(options).run(function, arguments);
  if (!rows) {
    return rows.takeError();
  }
  std::vector<Result> results;
  for (RowResult &row : *rows) {
    auto tensor = HostTensor::allocate(DType::F64, row.values->shape);
    if (!tensor) {
      return tensor.takeError();
    }
    std::memcpy(tensor->data(), row.values->data.data(),
                row.values->data.size() * sizeof(double));
    results.push_back(
        {*tensor, std::move(row.computed), std::move(row.magnitudes)});
  }
  return results;
}
