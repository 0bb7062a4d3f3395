//===- Evaluator.cpp - the float64 oracle ----------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Reference/Evaluator.h"

#include "Attention.h"
#include "HostOps.h"

#include "AttnFuse/Reference/ShapeCheck.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

static constexpr int kMaxCallDepth = 64;

namespace {
/// One activation of a function.
class Interpreter {
public:
  Interpreter(const Options &options, int depth)
      : options(options), depth(depth) {}

  llvm::Expected<std::vector<RowResult>> run(func::FuncOp function,
                                             ArrayRef<ArrayRefPtr> arguments);

private:
  llvm::Error execute(Operation &op);
  llvm::Error call(func::CallOp op);

  /// Options for a result: a sample only if the program's caller alone sees it.
  Options optionsFor(Value result) const {
    Options chosen = options;
    bool isSeen = llvm::any_of(result.getUsers(), [](Operation *user) {
      return !isa<func::ReturnOp>(user);
    });
    if (isSeen || depth > 0) {
      chosen.maxRowsPerHead = 0;
    }
    return chosen;
  }

  llvm::Error keep(Value value, llvm::Expected<RowResult> result) {
    if (!result) {
      return result.takeError();
    }
    values[value] = result->values;
    rows[value] = std::move(*result);
    return llvm::Error::success();
  }

  Options options;
  int depth;
  Values values;
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
  if (!function.getBody().hasOneBlock()) {
    return errorAt(function.getLoc(),
                   "the oracle knows functions of one "
                   "block; '" +
                       function.getSymName() + "' has " +
                       llvm::Twine(llvm::range_size(function.getBody())));
  }
  for (auto [parameter, argument] :
       llvm::zip(function.getArguments(), arguments)) {
    values[parameter] = argument;
  }
  Block &body = function.getBody().front();
  for (Operation &op : body.without_terminator()) {
    if (llvm::Error error = execute(op)) {
      return std::move(error);
    }
  }
  std::vector<RowResult> results;
  for (Value result : body.getTerminator()->getOperands()) {
    RowResult row = rows.lookup(result);
    row.values = values.lookup(result);
    if (!row.values) {
      return errorAt(body.getTerminator()->getLoc(),
                     "the oracle has no value for a result of '" +
                         function.getSymName() + "', " + describeValue(result));
    }
    results.push_back(std::move(row));
  }
  return results;
}

llvm::Error Interpreter::execute(Operation &op) {
  if (auto rope = dyn_cast<attn::RopeOp>(op)) {
    auto result = evaluateRope(rope, values);
    if (!result) {
      return result.takeError();
    }
    values[rope.getResult()] = *result;
    return llvm::Error::success();
  }
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
  if (isa_and_nonnull<attn::AttnDialect>(op.getDialect())) {
    return llvm::Error::success();
  }
  if (auto callOp = dyn_cast<func::CallOp>(op)) {
    return call(callOp);
  }
  auto result = evaluateHostOp(op, values);
  if (!result) {
    return result.takeError();
  }
  values[op.getResult(0)] = *result;
  return llvm::Error::success();
}

llvm::Error Interpreter::call(func::CallOp op) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      op, op.getCalleeAttr());
  if (!callee || depth >= kMaxCallDepth) {
    return errorAt(op.getLoc(), "the oracle cannot call '" + op.getCallee() +
                                    (callee ? "': calls nest too deep"
                                            : "': there is no such function"));
  }
  std::vector<ArrayRefPtr> arguments;
  for (Value operand : op.getOperands()) {
    ArrayRefPtr value = values.lookup(operand);
    if (!value) {
      return errorAt(op.getLoc(),
                     "the oracle knows calls with tensors and scalars, got " +
                         describeValue(operand));
    }
    arguments.push_back(value);
  }
  auto results = Interpreter(options, depth + 1).run(callee, arguments);
  if (!results) {
    return results.takeError();
  }
  for (auto [result, value] : llvm::zip(op.getResults(), *results)) {
    values[result] = value.values;
    rows[result] = std::move(value);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<Result>>
attnfuse::reference::evaluate(func::FuncOp function,
                              ArrayRef<HostTensor> inputs,
                              const Options &options) {
  if (llvm::Error error = checkInputs(function, inputs)) {
    return std::move(error);
  }
  std::vector<ArrayRefPtr> arguments;
  for (const HostTensor &input : inputs) {
    arguments.push_back(toArray(input));
  }
  auto rows = Interpreter(options, 0).run(function, arguments);
  if (!rows) {
    return rows.takeError();
  }
  std::vector<Result> results;
  for (RowResult &row : *rows) {
    auto tensor = HostTensor::allocate(DType::F64, row.values->shape);
    if (!tensor) {
      return tensor.takeError();
    }
    auto *data = static_cast<double *>(tensor->data());
    for (int64_t n = 0, count = row.values->size(); n < count; ++n) {
      Scalar value = row.values->get(n);
      data[n] = row.values->isInteger ? static_cast<double>(value.i) : value.f;
    }
    results.push_back({*tensor, std::move(row.computed),
                       std::move(row.magnitudes), std::move(row.spreads)});
  }
  return results;
}
