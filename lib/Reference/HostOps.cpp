//===- HostOps.cpp - operations between attentions -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "HostOps.h"

#include "ScalarProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

std::string attnfuse::reference::locationText(Location loc) {
  std::string place;
  llvm::raw_string_ostream(place) << loc;
  StringRef text(place);
  text.consume_front("loc(");
  text.consume_back(")");
  return text.str();
}

llvm::Error attnfuse::reference::errorAt(Location loc,
                                         const llvm::Twine &message) {
  return llvm::createStringError(locationText(loc) + ": " + message);
}

std::string attnfuse::reference::describeValue(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    os << "argument " << argument.getArgNumber();
  } else {
    os << "the result of '" << value.getDefiningOp()->getName() << "'";
  }
  os << " (" << value.getType() << ")";
  return text;
}

ArrayRefPtr attnfuse::reference::integerScalar(int64_t value) {
  auto array = std::make_shared<Array>();
  array->isInteger = true;
  array->ints = {value};
  return array;
}

ArrayRefPtr attnfuse::reference::toArray(const HostTensor &tensor) {
  auto array = std::make_shared<Array>();
  array->shape.assign(tensor.shape().begin(), tensor.shape().end());
  if (isFloat(tensor.dtype())) {
    array->data = tensor.toDouble();
    return array;
  }
  array->isInteger = true;
  SmallVector<int64_t> index(tensor.rank());
  for (int64_t n = 0, count = tensor.numElements(); n < count; ++n) {
    int64_t value = tensor.intAt(index);
    // Memory holds any byte; a predicate is whether it is 0.
    array->ints.push_back(tensor.dtype() == DType::I1 ? value != 0 : value);
    for (int64_t dim = tensor.rank() - 1;
         dim >= 0 && ++index[dim] == tensor.shape()[dim]; --dim) {
      index[dim] = 0;
    }
  }
  return array;
}

int64_t attnfuse::reference::positionOf(const Array &array, int64_t batch) {
  bool perBatch = !array.shape.empty() && array.shape[0] != 1;
  return array.ints[perBatch ? batch : 0];
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static double toDouble(llvm::APFloat value) {
  bool lost;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &lost);
  return value.convertToDouble();
}

static int64_t toInteger(const llvm::APInt &value) {
  return value.getBitWidth() == 1 ? value.getZExtValue() : value.getSExtValue();
}

static llvm::Expected<ArrayRefPtr> evaluateConstant(arith::ConstantOp op) {
  auto array = std::make_shared<Array>();
  Attribute attribute = op.getValue();
  Type element = getElementTypeOrSelf(op.getType());
  array->isInteger = !isa<FloatType>(element);
  if (element.isIntOrFloat() && element.getIntOrFloatBitWidth() > 64) {
    return errorAt(op.getLoc(), "the oracle knows constants of up to 64 bits, "
                                "got " +
                                    describeValue(op.getResult()));
  }
  if (auto real = dyn_cast<FloatAttr>(attribute)) {
    array->data = {toDouble(real.getValue())};
    return array;
  }
  if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
    array->ints = {toInteger(integer.getValue())};
    return array;
  }
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  if (!dense || !element.isIntOrIndexOrFloat()) {
    return errorAt(op.getLoc(),
                   "the oracle knows scalar and dense constants, got " +
                       describeValue(op.getResult()));
  }
  ArrayRef<int64_t> shape = dense.getType().getShape();
  array->shape.assign(shape.begin(), shape.end());
  if (array->isInteger) {
    for (const llvm::APInt &value : dense.getValues<llvm::APInt>()) {
      array->ints.push_back(toInteger(value));
    }
  } else {
    for (const llvm::APFloat &value : dense.getValues<llvm::APFloat>()) {
      array->data.push_back(toDouble(value));
    }
  }
  return array;
}

static llvm::Expected<ArrayRefPtr> evaluateElementwise(Operation &op,
                                                       const Values &values) {
  auto program = ScalarProgram::decode(op, values);
  if (!program) {
    return program.takeError();
  }
  auto result = std::make_shared<Array>();
  result->isInteger =
      !isa<FloatType>(getElementTypeOrSelf(op.getResult(0).getType()));
  SmallVector<ArrayRefPtr> operands;
  for (Value operand : program->parameters) {
    ArrayRefPtr array = values.lookup(operand);
    if (!array) {
      return errorAt(op.getLoc(),
                     "the oracle has no value for " + describeValue(operand));
    }
    operands.push_back(array);
    if (array->shape.empty()) {
      continue;
    }
    if (!result->shape.empty() && result->shape != array->shape) {
      return errorAt(op.getLoc(), "'" + op.getName().getStringRef() +
                                      "' expected tensors of one shape, got " +
                                      shapeToString(result->shape) + " and " +
                                      shapeToString(array->shape));
    }
    result->shape = array->shape;
  }
  std::vector<Scalar> slots = program->begin();
  SmallVector<Scalar> arguments(operands.size());
  std::string error;
  for (int64_t n = 0, count = result->size(); n < count; ++n) {
    for (auto [argument, array] : llvm::zip(arguments, operands)) {
      argument = array->get(array->shape.empty() ? 0 : n);
    }
    result->push(program->run(arguments, slots, error));
    if (!error.empty()) {
      return llvm::createStringError(error);
    }
  }
  return result;
}

llvm::Expected<ArrayRefPtr>
attnfuse::reference::evaluateHostOp(Operation &op, const Values &values) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    return evaluateConstant(constant);
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    ArrayRefPtr source = values.lookup(dim.getSource());
    ArrayRefPtr index = values.lookup(dim.getIndex());
    if (!source || !index) {
      return errorAt(op.getLoc(), "the oracle has no value for " +
                                      describeValue(dim.getSource()));
    }
    int64_t place = index->ints[0], rank = source->shape.size();
    if (place < 0 || place >= rank) {
      return errorAt(op.getLoc(), "'tensor.dim' expected a dimension below " +
                                      llvm::Twine(rank) + ", got " +
                                      llvm::Twine(place));
    }
    return integerScalar(source->shape[place]);
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    ArrayRefPtr source = values.lookup(cast.getSource());
    auto type = dyn_cast<RankedTensorType>(cast.getType());
    if (source && type &&
        succeeded(verifyCompatibleShape(type.getShape(), source->shape))) {
      return source;
    }
    return errorAt(
        op.getLoc(),
        "'tensor.cast' expected a tensor that fits " +
            describeValue(cast.getResult()) + ", got one of shape " +
            (source ? shapeToString(source->shape) : std::string("unknown")));
  }
  StringRef dialect = op.getName().getDialectNamespace();
  bool known =
      dialect == "arith" || dialect == "math" || isa<tensor::ExtractOp>(op);
  if (!known || op.getNumResults() != 1) {
    return errorAt(op.getLoc(), "the oracle does not know '" +
                                    op.getName().getStringRef() + "'");
  }
  return evaluateElementwise(op, values);
}
