//===- AttnMaskOps.cpp - masks and scalar regions --------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Verifiers.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attnfuse::attn;
using namespace attnfuse::attn::detail;

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

/// A diagonal is placed by an operand or by an alignment, not by both.
static LogicalResult verifyDiagonal(Operation *op, Value offset,
                                    Alignment alignment) {
  if (!offset) {
    return success();
  }
  if (alignment != Alignment::BottomRight) {
    return op->emitOpError() << "expected an alignment or a runtime offset, "
                                "got both ('"
                             << stringifyAlignment(alignment) << "')";
  }
  return verifyPosition(op, offset, "offset");
}

LogicalResult CausalOp::verify() {
  return verifyDiagonal(*this, getOffset(), getAlignment());
}

LogicalResult SlidingWindowOp::verify() {
  for (auto [name, width] :
       {std::pair("left", getLeft()), std::pair("right", getRight())}) {
    if (width && static_cast<int64_t>(*width) < 1) {
      return emitOpError() << "expected a " << name
                           << " width of at least 1 (it counts the key beside "
                              "the query), got "
                           << static_cast<int64_t>(*width);
    }
  }
  return verifyDiagonal(*this, getOffset(), getAlignment());
}

static bool areBlockSizes(ArrayRef<int64_t> blocks) {
  return blocks.size() == 2 && blocks[0] > 0 && blocks[1] > 0;
}

LogicalResult BlockSparseOp::verify() {
  RankedTensorType table = getTable().getType();
  if (table.getRank() != 4) {
    return emitOpError() << "expected a table of rank 4 (batch, heads, query "
                            "blocks, key blocks), got rank "
                         << table.getRank() << ": " << table;
  }
  if (!areBlockSizes(getBlocks())) {
    return emitOpError() << "expected two block sizes above 0 (queries, keys), "
                            "got ["
                         << getBlocks() << "]";
  }
  return success();
}

LogicalResult DocumentOp::verify() {
  for (Value ids : {Value(getQueryIds()), Value(getKeyIds())}) {
    if (ids && cast<RankedTensorType>(ids.getType()).getRank() != 2) {
      return emitOpError()
             << "expected document ids of rank 2 (batch, length), got "
             << ids.getType();
    }
  }
  if (getKeyIds() &&
      cast<RankedTensorType>(getKeyIds().getType()).getElementType() !=
          getQueryIds().getType().getElementType()) {
    return emitOpError() << "expected query and key ids of one element type, "
                            "got "
                         << getQueryIds().getType() << " and "
                         << getKeyIds().getType();
  }
  return success();
}

LogicalResult PrefixOp::verify() {
  if (static_cast<bool>(getLengths()) == getLength().has_value()) {
    return emitOpError() << "expected either a length or 'lengths(...)', got "
                         << (getLengths() ? "both" : "neither");
  }
  if (getLength() && static_cast<int64_t>(*getLength()) < 0) {
    return emitOpError() << "expected a length of at least 0, got "
                         << static_cast<int64_t>(*getLength());
  }
  return getLengths() ? verifyPosition(*this, getLengths(), "lengths")
                      : success();
}

LogicalResult AndOp::verify() {
  return getMasks().empty() ? emitOpError() << "expected at least one mask"
                            : success();
}

LogicalResult OrOp::verify() {
  return getMasks().empty() ? emitOpError() << "expected at least one mask"
                            : success();
}

LogicalResult MaskModOp::verify() {
  Builder b(getContext());
  Type index = b.getIndexType();
  return verifyScalarRegion(*this, getBody(), {index, index, index, index},
                            b.getI1Type());
}

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

LogicalResult attnfuse::attn::detail::verifyScalarRegion(Operation *op,
                                                         Region &region,
                                                         TypeRange arguments,
                                                         Type yielded) {
  Block &block = region.front();
  if (TypeRange(block.getArgumentTypes()) != arguments) {
    InFlightDiagnostic diag = op->emitOpError()
                              << "expected block arguments of types (";
    llvm::interleaveComma(arguments, diag);
    diag << "), got (";
    llvm::interleaveComma(block.getArgumentTypes(), diag);
    return diag << ")";
  }
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  for (Operation &inner : block.without_terminator()) {
    StringRef dialect = inner.getName().getDialectNamespace();
    StringRef name = inner.getName().getStringRef();
    bool known = dialect == "arith" || dialect == "math" ||
                 name == "tensor.extract" || name == "tensor.dim";
    bool scalars = llvm::all_of(inner.getResultTypes(), isScalar);
    if (!known || !scalars || inner.getNumRegions()) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "has a region with '" << name
                                << "'; it may hold scalar arith and math "
                                   "operations, tensor.extract and tensor.dim";
      diag.attachNote(inner.getLoc()) << "the operation";
      return diag;
    }
  }
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield) {
    return op->emitOpError()
           << "expected its region to end in 'attn.yield' of one " << yielded;
  }
  if (yield.getValue().getType() != yielded) {
    return op->emitOpError() << "expected its region to yield one " << yielded
                             << ", got " << yield.getValue().getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

namespace {
/// Checks the tables under one mask against the extents of scores.
///
/// Operations are verified in the order of the text and dominance after them,
/// so a mask that is used ahead of its definition has not been verified when it
/// is seen here. What is malformed is passed over: its own verifier reports it.
class ExtentChecker {
public:
  ExtentChecker(Operation *user, ScoresType scores)
      : user(user), scores(scores) {}

  // A worklist: nothing bounds how deep masks are nested.
  LogicalResult check(Value root) {
    SmallVector<Value> pending = {root};
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val().getDefiningOp();
      // A mask passed through a block argument carries no table to check.
      if (!op || !seen.insert(op).second) {
        continue;
      }
      LogicalResult result =
          TypeSwitch<Operation *, LogicalResult>(op)
              .Case([&](BlockSparseOp table) { return checkTable(table); })
              .Case([&](DocumentOp ids) { return checkIds(ids); })
              .Case<CausalOp, SlidingWindowOp>(
                  [&](Operation *) { return checkBatch(op, "offset"); })
              .Case([&](PrefixOp) { return checkBatch(op, "length"); })
              .Default([&](Operation *) {
                for (Value operand : llvm::reverse(op->getOperands())) {
                  if (isa<MaskType>(operand.getType())) {
                    pending.push_back(operand);
                  }
                }
                return success();
              });
      if (failed(result)) {
        return failure();
      }
    }
    return success();
  }

private:
  /// The type of an operand that is there and a tensor of this rank, or null.
  static RankedTensorType operandOfRank(Operation *op, unsigned place,
                                        int64_t rank) {
    if (place >= op->getNumOperands()) {
      return nullptr;
    }
    auto type = dyn_cast<RankedTensorType>(op->getOperand(place).getType());
    return type && type.getRank() == rank ? type : nullptr;
  }

  LogicalResult refuse(Operation *mask, const Twine &message) {
    InFlightDiagnostic diag = user->emitOpError() << message;
    diag.attachNote(mask->getLoc()) << "the mask's table is here";
    return diag;
  }

  LogicalResult checkTable(BlockSparseOp op) {
    RankedTensorType table = operandOfRank(op, 0, 4);
    DenseI64ArrayAttr blocks = op.getProperties().blocks;
    if (!table || !blocks || !areBlockSizes(blocks)) {
      return success();
    }
    for (auto [dim, name] : {std::pair(0, "batch"), std::pair(1, "heads")}) {
      int64_t size = table.getDimSize(dim);
      if (size != 1 && !compatible(size, scores.getShape()[dim])) {
        return refuse(op, "expected extent " + Twine(dim) + " (" + name +
                              ") of the block table to be 1 or " +
                              extent(scores.getShape()[dim]) + ", got " +
                              Twine(size));
      }
    }
    for (auto [dim, name] : {std::pair(2, "query"), std::pair(3, "key")}) {
      int64_t rows = scores.getShape()[dim], size = table.getDimSize(dim);
      if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(size)) {
        continue;
      }
      int64_t block = blocks[dim - 2];
      int64_t wanted = rows / block + (rows % block != 0);
      if (size != wanted) {
        return refuse(op, "expected " + Twine(wanted) + " " + name +
                              " blocks of " + Twine(block) + " for " +
                              Twine(rows) + " rows, got a table with " +
                              Twine(size));
      }
    }
    return success();
  }

  LogicalResult checkIds(DocumentOp op) {
    RankedTensorType queries = operandOfRank(op, 0, 2);
    RankedTensorType keys =
        op->getNumOperands() > 1 ? operandOfRank(op, 1, 2) : queries;
    if (!queries || !keys) {
      return success();
    }
    for (auto [ids, rows, name] :
         {std::tuple(queries, scores.getQueries(), "query"),
          std::tuple(keys, scores.getKeys(), "key")}) {
      if (ids.getDimSize(0) != 1 &&
          !compatible(ids.getDimSize(0), scores.getBatch())) {
        return refuse(op, Twine("expected document ids for 1 or ") +
                              extent(scores.getBatch()) +
                              " batch entries, got " +
                              Twine(ids.getDimSize(0)));
      }
      if (!compatible(ids.getDimSize(1), rows)) {
        return refuse(op, Twine("expected one document id per ") + name + " (" +
                              extent(rows) + "), got " +
                              Twine(ids.getDimSize(1)));
      }
    }
    return success();
  }

  /// A position that is not a tensor, one for all of the batch, fits any.
  LogicalResult checkBatch(Operation *op, StringRef name) {
    RankedTensorType type = operandOfRank(op, 0, 1);
    if (type && type.getDimSize(0) != 1 &&
        !compatible(type.getDimSize(0), scores.getBatch())) {
      return refuse(op, "expected one " + name + " per batch entry (" +
                            extent(scores.getBatch()) + "), got " +
                            Twine(type.getDimSize(0)));
    }
    return success();
  }

  Operation *user;
  ScoresType scores;
  llvm::SmallDenseSet<Operation *> seen;
};
} // namespace

LogicalResult attnfuse::attn::detail::verifyMaskExtents(Operation *op,
                                                        Value mask,
                                                        ScoresType scores) {
  return ExtentChecker(op, scores).check(mask);
}
