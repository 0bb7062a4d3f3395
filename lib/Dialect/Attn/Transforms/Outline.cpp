//===- Outline.cpp - move attention roots into kernels ---------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A root is a tensor that attn operations compute for someone else:
//   * the result of an attn.aggregate; the log-sum-exp of its softmax comes
//     from the same kernel, that of the first aggregate if there are several;
//   * a log-sum-exp without an aggregate, or one that the host needs before
//     the aggregate can run;
//   * a rotation whose result leaves the queries and keys of attention.
//
// A kernel holds copies of the attn operations on which its root depends, down
// to tensors and scalars of the host, which become its arguments in the order
// in which a walk from the root, operand by operand, meets them. Scalar
// constants are copied too; constant tensors stay with the host, where they
// have an address. Two roots that share scores each compute them: scores are
// never in memory, so there is nothing they could share.
//
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/StructuralKeys.h"
#include "AttnFuse/Dialect/Attn/IR/Attn.h"
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::attn;

namespace attnfuse::attn {
#define GEN_PASS_DEF_ATTNOUTLINE
#include "AttnFuse/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attnfuse::attn

namespace {
/// The values that one kernel computes, and where the host calls it.
struct Root {
  SmallVector<Value, 2> results;
  Operation *position;
};

/// What a kernel for the given results consists of.
struct Slice {
  /// Values of the host that the kernel reads.
  llvm::SetVector<Value> arguments;
  /// Operations to copy, each after those it depends on.
  SmallVector<Operation *> operations;
};
} // namespace

static bool isToken(Value value) {
  return isa<ScoresType, WeightsType, MaskType>(value.getType());
}

static bool isAttnOp(Operation *op) {
  return op && isa_and_nonnull<AttnDialect>(op->getDialect());
}

static bool isScalarConstant(Operation *op) {
  return op && op->hasTrait<OpTrait::ConstantLike>() &&
         op->getResult(0).getType().isIntOrIndexOrFloat();
}

/// True if a rotation read here runs in the kernel of the reader.
static bool fusesRotation(OpOperand &use) {
  return isa<ScaledDotProductOp>(use.getOwner()) ||
         (isa<RopeOp>(use.getOwner()) && use.getOperandNumber() == 0);
}

//===----------------------------------------------------------------------===//
// What a kernel holds
//===----------------------------------------------------------------------===//

namespace {
/// A value that an operation reads.
struct Reading {
  Value value;
  /// Whether the kernel of the reader holds a copy of what defines it.
  bool copied;
};
} // namespace

/// What `op` reads, in order. Fails, with an error, if a value that is never
/// in memory comes from outside the attn dialect.
static FailureOr<SmallVector<Reading, 4>> collectReadings(Operation *op) {
  SmallVector<Reading, 4> readings;
  LogicalResult result = success();
  unsigned place = 0;
  forEachDependency(op, [&](Value value) {
    // Operands come first, then what the regions capture.
    OpOperand *operand =
        place < op->getNumOperands() ? &op->getOpOperand(place) : nullptr;
    ++place;
    Operation *def = value.getDefiningOp();
    bool fused =
        operand && isa_and_nonnull<RopeOp>(def) && fusesRotation(*operand);
    if (isToken(value) && !isAttnOp(def) && succeeded(result)) {
      InFlightDiagnostic diag = op->emitOpError();
      diag << "cannot be moved into a kernel: its operand of type "
           << value.getType() << " comes from ";
      if (def) {
        diag << "'" << def->getName() << "'";
      } else {
        diag << "a block argument";
      }
      diag << "; supported: the attn operations of the same function";
      result = failure();
    }
    readings.push_back(
        {value, fused || isToken(value) || isScalarConstant(def)});
  });
  if (failed(result)) {
    return failure();
  }
  return readings;
}

/// Gathers what `results` depend on.
static FailureOr<Slice> collectSlice(ArrayRef<Value> results) {
  struct Frame {
    Operation *op;
    SmallVector<Reading, 4> readings;
    size_t next = 0;
  };
  Slice slice;
  llvm::SmallPtrSet<Operation *, 16> met;
  SmallVector<Frame> stack;
  auto enter = [&](Operation *op) -> LogicalResult {
    if (!met.insert(op).second) {
      return success();
    }
    FailureOr<SmallVector<Reading, 4>> readings = collectReadings(op);
    if (succeeded(readings)) {
      stack.push_back({op, std::move(*readings)});
    }
    return readings;
  };
  for (Value result : results) {
    if (failed(enter(result.getDefiningOp()))) {
      return failure();
    }
    while (!stack.empty()) {
      Frame &top = stack.back();
      if (top.next == top.readings.size()) {
        slice.operations.push_back(top.op);
        stack.pop_back();
        continue;
      }
      Reading reading = top.readings[top.next++];
      if (!reading.copied) {
        slice.arguments.insert(reading.value);
      } else if (failed(enter(reading.value.getDefiningOp()))) {
        return failure();
      }
    }
  }
  return slice;
}

//===----------------------------------------------------------------------===//
// Where the roots are
//===----------------------------------------------------------------------===//

/// The kernel of the first aggregate of a softmax yields the log-sum-exp too,
/// if it can be called before the host reads that.
static FailureOr<bool> addLse(Root &root, SoftmaxOp softmax,
                              DominanceInfo &dominance) {
  Value lse = softmax.getLse();
  auto readableFrom = [&](Operation *position) {
    return llvm::all_of(lse.getUsers(), [&](Operation *user) {
      return dominance.dominates(position, user);
    });
  };
  if (!readableFrom(root.position)) {
    // Then the call would have to stand where the softmax does, which the
    // value tensor, for one, may not allow.
    FailureOr<Slice> slice = collectSlice(root.results);
    if (failed(slice)) {
      return failure();
    }
    bool ready = llvm::all_of(slice->arguments, [&](Value argument) {
      return dominance.properlyDominates(argument, softmax);
    });
    if (softmax->getBlock() != root.position->getBlock() || !ready) {
      return false;
    }
    root.position = softmax;
  }
  root.results.push_back(lse);
  return true;
}

static LogicalResult findRoots(Operation *host, SmallVectorImpl<Root> &roots) {
  DominanceInfo dominance(host);
  llvm::SmallPtrSet<Operation *, 8> served;
  WalkResult walk = host->walk([&](Operation *op) {
    if (op->use_empty()) {
      return WalkResult::advance();
    }
    if (auto aggregate = dyn_cast<AggregateOp>(op)) {
      Root root{{aggregate.getResult()}, op};
      auto softmax = aggregate.getWeights().getDefiningOp<SoftmaxOp>();
      if (softmax && softmax.getLse() && !softmax.getLse().use_empty() &&
          !served.contains(softmax)) {
        FailureOr<bool> added = addLse(root, softmax, dominance);
        if (failed(added)) {
          return WalkResult::interrupt();
        }
        if (*added) {
          served.insert(softmax);
        }
      }
      roots.push_back(std::move(root));
    } else if (auto rope = dyn_cast<RopeOp>(op)) {
      if (!llvm::all_of(op->getUses(), fusesRotation)) {
        roots.push_back(Root{{rope.getResult()}, op});
      }
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted()) {
    return failure();
  }
  host->walk([&](SoftmaxOp softmax) {
    if (softmax.getLse() && !softmax.getLse().use_empty() &&
        !served.contains(softmax)) {
      roots.push_back(Root{{softmax.getLse()}, softmax});
    }
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Moving them
//===----------------------------------------------------------------------===//

/// Copies the slice into the body of a kernel and returns the copies of the
/// results.
static SmallVector<Value> copySlice(const Slice &slice, const Root &root,
                                    Block &body) {
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  IRMapping mapping;
  for (auto [value, argument] :
       llvm::zip_equal(slice.arguments, body.getArguments())) {
    mapping.map(value, argument);
  }
  // A rotation may be copied for the products and read from the host by
  // others, so its copy has a table of its own.
  DenseMap<Value, Value> rotated;
  for (Operation *op : slice.operations) {
    Operation *copy;
    auto softmax = dyn_cast<SoftmaxOp>(op);
    if (softmax && softmax.getLse() &&
        !llvm::is_contained(root.results, softmax.getLse())) {
      // Another kernel yields the log-sum-exp.
      Value sinks = softmax.getSinks();
      copy = SoftmaxOp::create(
          builder, op->getLoc(), TypeRange{softmax.getWeights().getType()},
          mapping.lookup(softmax.getScores()),
          sinks ? mapping.lookup(sinks) : Value(), UnitAttr());
      copy->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      mapping.map(softmax.getWeights(), copy->getResult(0));
      continue;
    }
    copy = op->clone(mapping);
    builder.insert(copy);
    for (auto [from, to] :
         llvm::zip_equal(op->getOpOperands(), copy->getOpOperands())) {
      if (fusesRotation(from)) {
        if (Value known = rotated.lookup(from.get())) {
          to.set(known);
        }
      }
    }
    for (auto [from, to] :
         llvm::zip_equal(op->getResults(), copy->getResults())) {
      if (isa<RopeOp>(op)) {
        rotated[from] = to;
      } else {
        mapping.map(from, to);
      }
    }
  }
  return llvm::map_to_vector(root.results, [&](Value result) {
    Value known = rotated.lookup(result);
    return known ? known : mapping.lookup(result);
  });
}

static LogicalResult outline(Root &root, StringRef name, Operation *after,
                             SymbolTable &symbols, func::FuncOp &kernel) {
  FailureOr<Slice> slice = collectSlice(root.results);
  if (failed(slice)) {
    return failure();
  }
  Location loc = root.results.front().getLoc();
  OpBuilder builder(root.position);
  auto type = builder.getFunctionType(
      TypeRange(ValueRange(slice->arguments.getArrayRef())),
      TypeRange(ValueRange(root.results)));
  kernel = func::FuncOp::create(loc, name, type);
  kernel.setPrivate();
  kernel->setAttr(kKernelAttrName, builder.getUnitAttr());
  symbols.insert(kernel, std::next(Block::iterator(after)));

  Block *body = kernel.addEntryBlock();
  SmallVector<Value> results = copySlice(*slice, root, *body);
  OpBuilder atEnd = OpBuilder::atBlockEnd(body);
  func::ReturnOp::create(atEnd, loc, results);

  auto call = func::CallOp::create(builder, loc, kernel,
                                   slice->arguments.getArrayRef());
  for (auto [result, computed] :
       llvm::zip_equal(root.results, call.getResults())) {
    bool isRotation = result.getDefiningOp<RopeOp>() != nullptr;
    result.replaceUsesWithIf(computed, [&](OpOperand &use) {
      return !isRotation || !fusesRotation(use);
    });
  }
  return success();
}

/// Drops what the kernels hold now. Fails, with an error, if attn operations
/// are left because something else reads their values.
static LogicalResult cleanHost(Operation *host) {
  SmallVector<Operation *> left;
  host->walk([&](Operation *op) {
    if (!isAttnOp(op->getParentOp()) &&
        (isScalarConstant(op) || isAttnOp(op))) {
      left.push_back(op);
    }
  });
  // Mostly one round; more where blocks are not in the order of dominance.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *&op : llvm::reverse(left)) {
      if (op && op->use_empty()) {
        op->erase();
        op = nullptr;
        changed = true;
      }
    }
  }
  for (Operation *op : left) {
    if (!op || !isAttnOp(op)) {
      continue;
    }
    Operation *user = nullptr;
    for (Operation *candidate : op->getUsers()) {
      user = isAttnOp(candidate) ? user : candidate;
    }
    if (!user) {
      continue;
    }
    InFlightDiagnostic diag = op->emitOpError()
                              << "is read by '" << user->getName()
                              << "', which keeps it from becoming part of a "
                                 "kernel; scores, weights and masks are never "
                                 "in memory, so only attn operations can read "
                                 "them";
    diag.attachNote(user->getLoc()) << "the reader";
    return diag;
  }
  return success();
}

/// The host's name as assemblers take it, and a number.
static std::string kernelName(StringRef host, size_t number) {
  std::string name;
  for (char c : host) {
    name += llvm::isAlnum(c) ? c : '_';
  }
  name.insert(0, llvm::isDigit(name.front()) ? 1 : 0, '_');
  return name + "_kernel_" + std::to_string(number);
}

namespace {
struct AttnOutlinePass
    : public attnfuse::attn::impl::AttnOutlineBase<AttnOutlinePass> {
  using AttnOutlineBase::AttnOutlineBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto host : llvm::to_vector(module.getOps<FunctionOpInterface>())) {
      if (host.isExternal() || host->hasAttr(kKernelAttrName)) {
        continue;
      }
      SmallVector<Root> roots;
      if (failed(findRoots(host, roots))) {
        return signalPassFailure();
      }
      Operation *after = host;
      for (auto [number, root] : llvm::enumerate(roots)) {
        func::FuncOp kernel;
        std::string name = kernelName(host.getName(), number);
        if (failed(outline(root, name, after, symbols, kernel))) {
          return signalPassFailure();
        }
        after = kernel;
        ++numKernels;
      }
      if (failed(cleanHost(host))) {
        return signalPassFailure();
      }
    }
  }
};
} // namespace
