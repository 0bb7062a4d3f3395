//===- ShapeCheck.cpp - do inputs fit a program? ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Reference/ShapeCheck.h"

#include "HostOps.h"
#include "Masks.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Support/ElementTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

using Shape = SmallVector<int64_t>;

static constexpr int kMaxCallDepth = 64;
/// Values of vectors up to this length are followed, to check positions.
static constexpr int64_t kLongestVector = 1 << 20;

static std::string describeShape(ArrayRef<int64_t> shape) {
  return shape.empty() ? "no extents (a scalar)" : shapeToString(shape);
}

namespace {
/// Follows concrete shapes through one activation of a function, in order. An
/// extent that an unknown operation leaves open stays dynamic and fits all.
class ShapeWalker {
public:
  explicit ShapeWalker(int depth) : depth(depth) {}

  void set(Value value, Shape shape) { shapes[value] = std::move(shape); }
  void setKnown(Value value, ArrayRefPtr array) {
    known[value] = std::move(array);
  }
  Shape shapeOf(Value value) const;

  llvm::Error walk(func::FuncOp function);

private:
  llvm::Error refuse(Operation *op, const llvm::Twine &message) {
    return errorAt(op->getLoc(),
                   "'" + op->getName().getStringRef() + "' " + message);
  }
  llvm::Error same(Operation *op, const llvm::Twine &what, int64_t wanted,
                   int64_t found);
  /// An extent that is 1 broadcasts.
  llvm::Error fits(Operation *op, const llvm::Twine &what, int64_t wanted,
                   int64_t found) {
    return found == 1 ? llvm::Error::success() : same(op, what, wanted, found);
  }
  llvm::Error perBatch(Operation *op, Value value, int64_t batch,
                       const llvm::Twine &what);

  llvm::Error visit(Operation *op);
  llvm::Error visitHostOp(Operation *op);
  llvm::Error visitCall(func::CallOp op);
  llvm::Error visitRope(attn::RopeOp op);
  llvm::Error visitBias(attn::AdditiveBiasOp op);
  llvm::Error visitMask(Operation *mask, const Shape &scores);
  llvm::Error visitTable(attn::BlockSparseOp op, const Shape &scores);
  llvm::Error visitDocument(attn::DocumentOp op, const Shape &scores);

  int depth;
  llvm::DenseMap<Value, Shape> shapes;
  /// Values of scalars and short integer vectors, where they are known.
  Values known;
};
} // namespace

Shape ShapeWalker::shapeOf(Value value) const {
  auto place = shapes.find(value);
  if (place != shapes.end()) {
    return place->second;
  }
  return llvm::TypeSwitch<Type, Shape>(value.getType())
      .Case<RankedTensorType, attn::ScoresType, attn::WeightsType>(
          [](auto type) { return Shape(type.getShape()); })
      .Default([](Type) { return Shape(); });
}

llvm::Error ShapeWalker::walk(func::FuncOp function) {
  // What has control flow is left to those who know it.
  if (function.isExternal() || !function.getBody().hasOneBlock()) {
    return llvm::Error::success();
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (llvm::Error error = visit(&op)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error ShapeWalker::same(Operation *op, const llvm::Twine &what,
                              int64_t wanted, int64_t found) {
  if (wanted == found || ShapedType::isDynamic(wanted) ||
      ShapedType::isDynamic(found)) {
    return llvm::Error::success();
  }
  return refuse(op, "expected " + what + " of " + llvm::Twine(wanted) +
                        ", got " + llvm::Twine(found));
}

llvm::Error ShapeWalker::perBatch(Operation *op, Value value, int64_t batch,
                                  const llvm::Twine &what) {
  Shape shape = shapeOf(value);
  return shape.empty() ? llvm::Error::success()
                       : fits(op, what, batch, shape[0]);
}

//===----------------------------------------------------------------------===//
// Operations on tensors and scores
//===----------------------------------------------------------------------===//

llvm::Error ShapeWalker::visit(Operation *op) {
  return llvm::TypeSwitch<Operation *, llvm::Error>(op)
      .Case([&](attn::RopeOp rope) { return visitRope(rope); })
      .Case([&](attn::ScaledDotProductOp product) {
        Shape q = shapeOf(product.getQuery()), k = shapeOf(product.getKey());
        set(product.getScores(), {q[0], q[1], q[2], k[2]});
        return same(op, "key batch", q[0], k[0]);
      })
      .Case([&](attn::AggregateOp aggregate) {
        Shape w = shapeOf(aggregate.getWeights());
        Shape v = shapeOf(aggregate.getValue());
        set(aggregate.getResult(), {w[0], w[1], w[2], v[3]});
        if (llvm::Error error = same(op, "value batch", w[0], v[0])) {
          return error;
        }
        return same(op, "one value row per key, a length", w[3], v[2]);
      })
      .Case([&](attn::MaskOp mask) -> llvm::Error {
        Shape scores = shapeOf(mask.getScores());
        set(mask.getResult(), scores);
        for (Operation *part : maskOperations(mask.getMask())) {
          if (llvm::Error error = visitMask(part, scores)) {
            return error;
          }
        }
        return llvm::Error::success();
      })
      .Case([&](attn::AdditiveBiasOp bias) { return visitBias(bias); })
      .Case([&](attn::AlibiOp alibi) {
        Shape scores = shapeOf(alibi.getScores());
        set(alibi.getResult(), scores);
        return alibi.getSlopes()
                   ? same(op, "slopes for a number of heads", scores[1],
                          shapeOf(alibi.getSlopes())[0])
                   : llvm::Error::success();
      })
      .Case([&](attn::SoftmaxOp softmax) {
        Shape scores = shapeOf(softmax.getScores());
        set(softmax.getWeights(), scores);
        if (softmax.getLse()) {
          set(softmax.getLse(), {scores[0], scores[1], scores[2]});
        }
        return softmax.getSinks()
                   ? same(op, "sinks for a number of heads", scores[1],
                          shapeOf(softmax.getSinks())[0])
                   : llvm::Error::success();
      })
      .Case<attn::SoftcapOp, attn::ScoreModOp, attn::ReluAttentionOp>(
          [&](Operation *) {
            set(op->getResult(0), shapeOf(op->getOperand(0)));
            return llvm::Error::success();
          })
      .Case([&](func::CallOp call) { return visitCall(call); })
      .Default([&](Operation *) { return visitHostOp(op); });
}

llvm::Error ShapeWalker::visitBias(attn::AdditiveBiasOp op) {
  Shape scores = shapeOf(op.getScores()), bias = shapeOf(op.getBias());
  set(op.getResult(), scores);
  for (int dim = 0; dim < 4; ++dim) {
    if (llvm::Error error = fits(
            op, "1 or an extent of the bias in dimension " + llvm::Twine(dim),
            scores[dim], bias[dim])) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error ShapeWalker::visitRope(attn::RopeOp op) {
  Shape shape = shapeOf(op.getInput());
  set(op.getResult(), shape);
  auto fixed = static_cast<int64_t>(op.getPosition());
  int64_t first = fixed, last = fixed;
  if (Value offset = op.getOffset()) {
    if (llvm::Error error =
            perBatch(op, offset, shape[0], "offsets for a batch")) {
      return error;
    }
    ArrayRefPtr offsets = known.lookup(offset);
    if (offsets && !offsets->ints.empty()) {
      auto [lowest, highest] =
          std::minmax_element(offsets->ints.begin(), offsets->ints.end());
      first = addSaturating(fixed, *lowest);
      last = addSaturating(fixed, *highest);
    } else {
      // Not known here; the lowest that can be is checked.
      first = last = 0;
    }
  }
  if (first < 0) {
    return refuse(op, "expected positions of at least 0, got " +
                          llvm::Twine(first));
  }
  if (shape[0] == 0 || ShapedType::isDynamic(shape[2])) {
    return llvm::Error::success();
  }
  int64_t end = addSaturating(last, shape[2]);
  for (Value table : {op.getCos(), op.getSin()}) {
    if (!table) {
      continue;
    }
    Shape extents = shapeOf(table);
    if (!ShapedType::isDynamic(extents[0]) && extents[0] < end) {
      return refuse(
          op, "expected tables with a row for each of the " + llvm::Twine(end) +
                  " positions that are used, got " + llvm::Twine(extents[0]));
    }
    if (llvm::Error error =
            same(op, "a table column per rotated pair, a number",
                 op.getRotaryWidth() / 2, extents[1])) {
      return error;
    }
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

llvm::Error ShapeWalker::visitMask(Operation *mask, const Shape &scores) {
  if (auto table = dyn_cast<attn::BlockSparseOp>(mask)) {
    return visitTable(table, scores);
  }
  if (auto document = dyn_cast<attn::DocumentOp>(mask)) {
    return visitDocument(document, scores);
  }
  for (Value operand : mask->getOperands()) {
    if (isa<attn::MaskType>(operand.getType())) {
      continue;
    }
    if (llvm::Error error = perBatch(mask, operand, scores[0],
                                     "one position per batch entry, a "
                                     "number")) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error ShapeWalker::visitTable(attn::BlockSparseOp op,
                                    const Shape &scores) {
  Shape shape = shapeOf(op.getTable());
  for (int dim : {0, 1}) {
    if (llvm::Error error = fits(
            op, "1 or an extent of the table in dimension " + llvm::Twine(dim),
            scores[dim], shape[dim])) {
      return error;
    }
  }
  for (int dim : {2, 3}) {
    if (ShapedType::isDynamic(scores[dim]) ||
        ShapedType::isDynamic(shape[dim])) {
      continue;
    }
    int64_t block = op.getBlocks()[dim - 2];
    int64_t wanted = scores[dim] / block + (scores[dim] % block != 0);
    if (shape[dim] != wanted) {
      return refuse(op, "expected " + llvm::Twine(wanted) + " blocks of " +
                            llvm::Twine(block) + " for " +
                            llvm::Twine(scores[dim]) +
                            (dim == 2 ? " queries" : " keys") +
                            ", got a table with " + llvm::Twine(shape[dim]));
    }
  }
  return llvm::Error::success();
}

llvm::Error ShapeWalker::visitDocument(attn::DocumentOp op,
                                       const Shape &scores) {
  Value queries = op.getQueryIds();
  Value keys = op.getKeyIds() ? Value(op.getKeyIds()) : queries;
  for (auto [ids, length] :
       {std::pair(queries, scores[2]), std::pair(keys, scores[3])}) {
    if (llvm::Error error = perBatch(op, ids, scores[0], "ids for a batch")) {
      return error;
    }
    if (llvm::Error error =
            same(op, "ids for a length", length, shapeOf(ids)[1])) {
      return error;
    }
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Other operations
//===----------------------------------------------------------------------===//

llvm::Error ShapeWalker::visitHostOp(Operation *op) {
  // Elementwise operations: all tensors have one shape.
  if (op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 &&
      isa<RankedTensorType>(op->getResult(0).getType())) {
    Shape result = shapeOf(op->getResult(0));
    for (Value operand : op->getOperands()) {
      Shape shape = shapeOf(operand);
      for (size_t dim = 0; shape.size() == result.size() && dim < shape.size();
           ++dim) {
        if (ShapedType::isDynamic(result[dim])) {
          result[dim] = shape[dim];
        }
        if (llvm::Error error =
                same(op, "tensors of one shape, dimension " + llvm::Twine(dim),
                     result[dim], shape[dim])) {
          return error;
        }
      }
    }
    set(op->getResult(0), result);
    return llvm::Error::success();
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(cast.getType());
    Shape shape = shapeOf(cast.getSource());
    if (type && failed(verifyCompatibleShape(type.getShape(), shape))) {
      return refuse(op, "expected a tensor that fits " +
                            describeValue(cast.getResult()) +
                            ", got one of shape " + shapeToString(shape));
    }
    set(cast.getResult(), shape);
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    ArrayRefPtr index = known.lookup(dim.getIndex());
    Shape shape = shapeOf(dim.getSource());
    if (!index) {
      return llvm::Error::success();
    }
    int64_t place = index->ints[0], rank = shape.size();
    if (place < 0 || place >= rank) {
      return refuse(op, "expected a dimension below " + llvm::Twine(rank) +
                            ", got " + llvm::Twine(place));
    }
    if (!ShapedType::isDynamic(shape[place])) {
      setKnown(dim.getResult(), integerScalar(shape[place]));
    }
    return llvm::Error::success();
  }
  // Scalars and short vectors may become positions.
  bool isShort = op->getNumResults() == 1 && !op->getNumRegions();
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    isShort &= tensor ? tensor.getRank() == 1 && tensor.hasStaticShape() &&
                            tensor.getNumElements() <= kLongestVector &&
                            !isa<FloatType>(tensor.getElementType())
                      : type.isIntOrIndexOrFloat();
  }
  for (Value operand : op->getOperands()) {
    isShort &= known.lookup(operand) != nullptr;
  }
  if (isShort) {
    auto value = evaluateHostOp(*op, known);
    if (value) {
      setKnown(op->getResult(0), *value);
    } else if (isa<tensor::ExtractOp>(op)) {
      return value.takeError();
    } else {
      // What the oracle cannot compute here is not known.
      llvm::consumeError(value.takeError());
    }
  }
  return llvm::Error::success();
}

llvm::Error ShapeWalker::visitCall(func::CallOp op) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      op, op.getCalleeAttr());
  if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock()) {
    return llvm::Error::success();
  }
  if (depth >= kMaxCallDepth) {
    return refuse(op, "of '" + op.getCallee() + "' nests too deep");
  }
  ShapeWalker inner(depth + 1);
  for (auto [parameter, operand] :
       llvm::zip(callee.getArguments(), op.getOperands())) {
    inner.set(parameter, shapeOf(operand));
    if (ArrayRefPtr value = known.lookup(operand)) {
      inner.setKnown(parameter, value);
    }
  }
  if (llvm::Error error = inner.walk(callee)) {
    return error;
  }
  Operation *terminator = callee.getBody().front().getTerminator();
  for (auto [result, value] :
       llvm::zip(op.getResults(), terminator->getOperands())) {
    set(result, inner.shapeOf(value));
    if (ArrayRefPtr array = inner.known.lookup(value)) {
      setKnown(result, array);
    }
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

static llvm::Error checkCount(func::FuncOp function, size_t found) {
  if (found == function.getNumArguments()) {
    return llvm::Error::success();
  }
  return errorAt(function.getLoc(),
                 "'" + function.getSymName() + "' takes " +
                     llvm::Twine(function.getNumArguments()) +
                     " arguments, got " + llvm::Twine(found));
}

static bool shapeMatches(Value parameter, ArrayRef<int64_t> shape) {
  auto tensor = dyn_cast<RankedTensorType>(parameter.getType());
  ArrayRef<int64_t> wanted = tensor ? tensor.getShape() : ArrayRef<int64_t>();
  return (tensor || parameter.getType().isIntOrIndexOrFloat()) &&
         succeeded(verifyCompatibleShape(wanted, shape)) &&
         llvm::all_of(shape, [](int64_t extent) { return extent >= 0; });
}

llvm::Error attnfuse::reference::checkInputs(func::FuncOp function,
                                             ArrayRef<HostTensor> inputs) {
  if (llvm::Error error = checkCount(function, inputs.size())) {
    return error;
  }
  ShapeWalker walker(0);
  for (auto [parameter, input] : llvm::zip(function.getArguments(), inputs)) {
    Type element = getElementTypeOrSelf(parameter.getType());
    if (dtypeOf(element) != input.dtype() ||
        !shapeMatches(parameter, input.shape())) {
      std::string type;
      llvm::raw_string_ostream(type) << parameter.getType();
      return errorAt(parameter.getLoc(),
                     "argument " + llvm::Twine(parameter.getArgNumber()) +
                         " is " + type + ", got " + dtypeName(input.dtype()) +
                         " of shape " + describeShape(input.shape()));
    }
    walker.set(parameter, Shape(input.shape()));
    bool isShort =
        input.rank() == 0 || (input.rank() == 1 && !isFloat(input.dtype()) &&
                              input.numElements() <= kLongestVector);
    if (isShort) {
      walker.setKnown(parameter, toArray(input));
    }
  }
  return walker.walk(function);
}

llvm::Expected<std::vector<SmallVector<int64_t>>>
attnfuse::reference::inferResultShapes(func::FuncOp function,
                                       ArrayRef<Shape> inputShapes) {
  if (llvm::Error error = checkCount(function, inputShapes.size())) {
    return std::move(error);
  }
  if (function.isExternal() || !function.getBody().hasOneBlock()) {
    return errorAt(function.getLoc(),
                   "expected '" + function.getSymName() +
                       "' to have a body of one block, got " +
                       llvm::Twine(llvm::range_size(function.getBody())));
  }
  ShapeWalker walker(0);
  for (auto [parameter, shape] :
       llvm::zip(function.getArguments(), inputShapes)) {
    if (!shapeMatches(parameter, shape)) {
      std::string type;
      llvm::raw_string_ostream(type) << parameter.getType();
      return errorAt(parameter.getLoc(),
                     "argument " + llvm::Twine(parameter.getArgNumber()) +
                         " is " + type + ", got shape " + describeShape(shape));
    }
    walker.set(parameter, shape);
  }
  if (llvm::Error error = walker.walk(function)) {
    return std::move(error);
  }
  std::vector<Shape> results;
  Operation *terminator = function.getBody().front().getTerminator();
  for (Value result : terminator->getOperands()) {
    Shape shape = walker.shapeOf(result);
    if (llvm::is_contained(shape, ShapedType::kDynamic)) {
      return errorAt(terminator->getLoc(),
                     "cannot infer the shape of " + describeValue(result));
    }
    results.push_back(std::move(shape));
  }
  return results;
}
