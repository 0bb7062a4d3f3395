//===- ShapeCheck.cpp - do inputs fit a program? ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Reference/ShapeCheck.h"

#include "Array.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Support/ElementTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

using Shape = SmallVector<int64_t>;

namespace {
/// Follows concrete shapes through a function, in order.
class ShapeWalker {
public:
  ShapeWalker(func::FuncOp function, ArrayRef<HostTensor> inputs) {
    for (auto [parameter, input] : llvm::zip(function.getArguments(), inputs)) {
      shapes[parameter] = Shape(input.shape());
      tensors[parameter] = &input;
    }
  }

  llvm::Error walk(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (llvm::Error error = visit(&op)) {
        return error;
      }
    }
    return llvm::Error::success();
  }

private:
  llvm::Error refuse(Operation *op, const llvm::Twine &message) {
    return errorAt(op->getLoc(),
                   "'" + op->getName().getStringRef() + "' " + message);
  }

  llvm::Error same(Operation *op, const llvm::Twine &what, int64_t wanted,
                   int64_t found) {
    if (wanted == found) {
      return llvm::Error::success();
    }
    return refuse(op, "expected " + what + " of " + llvm::Twine(wanted) +
                          ", got " + llvm::Twine(found));
  }

  /// An extent that is 1 broadcasts.
  llvm::Error fits(Operation *op, const llvm::Twine &what, int64_t wanted,
                   int64_t found) {
    return found == 1 ? llvm::Error::success() : same(op, what, wanted, found);
  }

  llvm::Error visit(Operation *op) {
    return llvm::TypeSwitch<Operation *, llvm::Error>(op)
        .Case([&](attn::RopeOp rope) { return visitRope(rope); })
        .Case([&](attn::ScaledDotProductOp product) {
          const Shape &q = shapes[product.getQuery()];
          const Shape &k = shapes[product.getKey()];
          shapes[product.getScores()] = {q[0], q[1], q[2], k[2]};
          return same(op, "key batch", q[0], k[0]);
        })
        .Case([&](attn::AggregateOp aggregate) {
          const Shape &w = shapes[aggregate.getWeights()];
          const Shape &v = shapes[aggregate.getValue()];
          shapes[aggregate.getResult()] = {w[0], w[1], w[2], v[3]};
          if (llvm::Error error = same(op, "value batch", w[0], v[0])) {
            return error;
          }
          return same(op, "one value row per key, a length", w[3], v[2]);
        })
        .Case([&](attn::MaskOp mask) {
          Shape scores = shapes[mask.getScores()];
          shapes[mask.getResult()] = scores;
          return visitMask(mask.getMask(), scores);
        })
        .Case([&](attn::AdditiveBiasOp add) -> llvm::Error {
          Shape scores = shapes[add.getScores()];
          const Shape &bias = shapes[add.getBias()];
          shapes[add.getResult()] = scores;
          for (int dim = 0; dim < 4; ++dim) {
            if (llvm::Error error =
                    fits(op,
                         "1 or an extent of the bias in dimension " +
                             llvm::Twine(dim),
                         scores[dim], bias[dim])) {
              return error;
            }
          }
          return llvm::Error::success();
        })
        .Case([&](attn::AlibiOp alibi) {
          Shape scores = shapes[alibi.getScores()];
          shapes[alibi.getResult()] = scores;
          return alibi.getSlopes()
                     ? same(op, "slopes for a number of heads", scores[1],
                            shapes[alibi.getSlopes()][0])
                     : llvm::Error::success();
        })
        .Case([&](attn::SoftmaxOp softmax) {
          Shape scores = shapes[softmax.getScores()];
          shapes[softmax.getWeights()] = scores;
          if (softmax.getLse()) {
            shapes[softmax.getLse()] = {scores[0], scores[1], scores[2]};
          }
          return softmax.getSinks()
                     ? same(op, "sinks for a number of heads", scores[1],
                            shapes[softmax.getSinks()][0])
                     : llvm::Error::success();
        })
        .Default([&](Operation *other) { return visitOther(other); });
  }

  /// Operations that hand a shape on: score operations, elementwise ones.
  /// Where a shape is unknown (calls) the callee's own checks have to do.
  llvm::Error visitOther(Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      for (Value result : call.getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (type && type.hasStaticShape()) {
          shapes[result] = Shape(type.getShape());
        } else if (type) {
          // Attention keeps the leading extents of its first tensor.
          Shape shape(type.getShape());
          for (Value operand : call.getOperands()) {
            auto from = shapes.find(operand);
            for (size_t dim = 0;
                 from != shapes.end() && from->second.size() == shape.size() &&
                 dim < shape.size();
                 ++dim) {
              if (ShapedType::isDynamic(shape[dim])) {
                shape[dim] = from->second[dim];
              }
            }
          }
          shapes[result] = shape;
        }
      }
      return llvm::Error::success();
    }
    for (Value result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (type && type.hasStaticShape()) {
        shapes[result] = Shape(type.getShape());
      } else if (op->getNumOperands()) {
        shapes[result] = shapes[op->getOperand(0)];
      }
    }
    return llvm::Error::success();
  }

  llvm::Error visitRope(attn::RopeOp rope) {
    Shape shape = shapes[rope.getInput()];
    shapes[rope.getResult()] = shape;
    int64_t first = static_cast<int64_t>(rope.getPosition());
    int64_t last = first;
    if (Value offset = rope.getOffset()) {
      Shape positions = shapes[offset];
      if (!positions.empty()) {
        if (llvm::Error error =
                fits(rope, "offsets for a batch", shape[0], positions[0])) {
          return error;
        }
      }
      if (const HostTensor *tensor = tensors.lookup(offset)) {
        bool isFirst = true;
        for (double value : tensor->toDouble()) {
          auto position = static_cast<int64_t>(value) + rope.getPosition();
          first = isFirst ? position : std::min<int64_t>(first, position);
          last = isFirst ? position : std::max<int64_t>(last, position);
          isFirst = false;
        }
      }
    }
    if (first < 0) {
      return refuse(rope, "expected positions of at least 0, got " +
                              llvm::Twine(first));
    }
    for (Value table : {rope.getCos(), rope.getSin()}) {
      if (table && shapes[table][0] < last + shape[2]) {
        return refuse(rope, "expected tables with a row for each of the " +
                                llvm::Twine(last + shape[2]) +
                                " positions that are used, got " +
                                llvm::Twine(shapes[table][0]));
      }
    }
    return llvm::Error::success();
  }

  llvm::Error visitMask(Value mask, const Shape &scores) {
    Operation *op = mask.getDefiningOp();
    if (!op) {
      return llvm::Error::success();
    }
    auto perBatch = [&](Value value, const llvm::Twine &what) {
      const Shape &shape = shapes[value];
      return shape.empty() ? llvm::Error::success()
                           : fits(op, what, scores[0], shape[0]);
    };
    if (auto table = dyn_cast<attn::BlockSparseOp>(op)) {
      const Shape &shape = shapes[table.getTable()];
      for (int dim : {0, 1}) {
        if (llvm::Error error = fits(
                op,
                "1 or an extent of the table in dimension " + llvm::Twine(dim),
                scores[dim], shape[dim])) {
          return error;
        }
      }
      for (int dim : {2, 3}) {
        int64_t block = table.getBlocks()[dim - 2];
        int64_t wanted = scores[dim] / block + (scores[dim] % block != 0);
        if (shape[dim] != wanted) {
          return refuse(
              op, "expected " + llvm::Twine(wanted) + " blocks of " +
                      llvm::Twine(block) + " for " + llvm::Twine(scores[dim]) +
                      (dim == 2 ? " queries" : " keys") +
                      ", got a table with " + llvm::Twine(shape[dim]));
        }
      }
      return llvm::Error::success();
    }
    if (auto document = dyn_cast<attn::DocumentOp>(op)) {
      Value keys = document.getKeyIds() ? Value(document.getKeyIds())
                                        : Value(document.getQueryIds());
      for (auto [ids, length] :
           {std::pair<Value, int64_t>(document.getQueryIds(), scores[2]),
            std::pair<Value, int64_t>(keys, scores[3])}) {
        if (llvm::Error error = perBatch(ids, "ids for a batch")) {
          return error;
        }
        if (llvm::Error error =
                same(op, "ids for a length", length, shapes[ids][1])) {
          return error;
        }
      }
      return llvm::Error::success();
    }
    for (Value operand : op->getOperands()) {
      if (isa<attn::MaskType>(operand.getType())) {
        if (llvm::Error error = visitMask(operand, scores)) {
          return error;
        }
      } else if (llvm::Error error =
                     perBatch(operand, "one position per batch entry, a "
                                       "number")) {
        return error;
      }
    }
    return llvm::Error::success();
  }

  llvm::DenseMap<Value, Shape> shapes;
  llvm::DenseMap<Value, const HostTensor *> tensors;
};
} // namespace

static std::string describe(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

llvm::Error attnfuse::reference::checkInputs(func::FuncOp function,
                                             ArrayRef<HostTensor> inputs) {
  if (inputs.size() != function.getNumArguments()) {
    return errorAt(function.getLoc(),
                   "'" + function.getSymName() + "' takes " +
                       llvm::Twine(function.getNumArguments()) +
                       " arguments, got " + llvm::Twine(inputs.size()));
  }
  for (auto [parameter, input] : llvm::zip(function.getArguments(), inputs)) {
    Type type = parameter.getType();
    auto tensor = dyn_cast<RankedTensorType>(type);
    ArrayRef<int64_t> wanted = tensor ? tensor.getShape() : ArrayRef<int64_t>();
    bool matches =
        dtypeOf(tensor ? tensor.getElementType() : type) == input.dtype() &&
        wanted.size() == input.shape().size() &&
        succeeded(verifyCompatibleShape(wanted, input.shape()));
    if (!matches) {
      return errorAt(parameter.getLoc(),
                     "argument " + llvm::Twine(parameter.getArgNumber()) +
                         " is " + describe(type) + ", got " +
                         dtypeName(input.dtype()) + " of shape " +
                         shapeToString(input.shape()));
    }
  }
  return ShapeWalker(function, inputs).walk(function.getBody().front());
}
