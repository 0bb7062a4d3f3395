//===- StructuralKeys.cpp - names for what values compute ------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Analysis/StructuralKeys.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SHA1.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::attn;

/// Above this length a text gives way to its digest. Texts of two or three
/// operations stay readable, so that the order they give is one a reader of
/// the program can foresee.
static constexpr size_t kLongestText = 160;

std::optional<int64_t> attnfuse::constantInteger(Value value) {
  APInt number;
  if (!value || !value.getType().isIntOrIndex() ||
      !matchPattern(value, m_ConstantInt(&number)) ||
      !number.isSignedIntN(64)) {
    return std::nullopt;
  }
  return number.getSExtValue();
}

bool attnfuse::isMovable(Operation *op) {
  return !op->hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(op);
}

void attnfuse::forEachDependency(Operation *op,
                                 llvm::function_ref<void(Value)> fn) {
  for (Value operand : op->getOperands()) {
    fn(operand);
  }
  if (op->getNumRegions()) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    llvm::for_each(captured, fn);
  }
}

static bool hasScalarRegion(Operation *op) {
  return isa<ScoreModOp, MaskModOp>(op);
}

static bool hasText(Operation *op) {
  return isMovable(op) && (!op->getNumRegions() || hasScalarRegion(op));
}

/// The value that a score_mod or mask_mod computes.
static Value yieldedValue(Operation *op) {
  return cast<YieldOp>(op->getRegion(0).front().back()).getValue();
}

/// The texts that the text of `op` is made of. A region is known by the value
/// that it yields; what it captures is part of that.
static SmallVector<Value, 4> partsOf(Operation *op) {
  SmallVector<Value, 4> parts(op->getOperands());
  if (hasScalarRegion(op)) {
    parts.push_back(yieldedValue(op));
  }
  return parts;
}

const std::string &StructuralKeys::get(Operation *op) {
  // An explicit stack: a chain of operations may be longer than the call stack
  // is deep.
  SmallVector<Operation *> stack = {op};
  while (!stack.empty()) {
    Operation *top = stack.back();
    if (operations.count(top)) {
      stack.pop_back();
      continue;
    }
    size_t before = stack.size();
    if (hasText(top)) {
      for (Value part : partsOf(top)) {
        Operation *def = part.getDefiningOp();
        if (def && !operations.count(def)) {
          stack.push_back(def);
        }
      }
    }
    if (stack.size() == before) {
      compute(top);
      stack.pop_back();
    }
  }
  return operations.find(op)->second;
}

const std::string &StructuralKeys::get(Value value) {
  auto known = values.find(value);
  if (known != values.end()) {
    return known->second;
  }
  std::string key;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    key = argumentKey(argument);
  } else {
    key = get(value.getDefiningOp());
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (number) {
      key += "#" + std::to_string(number);
    }
  }
  return values.try_emplace(value, std::move(key)).first->second;
}

void StructuralKeys::compute(Operation *op) {
  std::string text = hasText(op) ? textOf(op) : placeOf(op);
  if (text.size() > kLongestText) {
    llvm::SHA1 hasher;
    hasher.update(text);
    text = text.substr(0, text.find('(')).substr(0, 64) + "#" +
           llvm::toHex(hasher.final());
  }
  operations.try_emplace(op, std::move(text));
}

std::string StructuralKeys::textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Constants sort last, which is also where commutative operations want them.
  os << (op->hasTrait<OpTrait::ConstantLike>() ? "~" : "")
     << op->getName().getStringRef() << '(';
  SmallVector<std::string> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(get(operand));
  }
  if (op->hasTrait<OpTrait::IsCommutative>()) {
    llvm::sort(operands);
  }
  llvm::interleave(operands, os, ",");
  os << ')';
  if (hasScalarRegion(op)) {
    os << '{' << get(yieldedValue(op)) << '}';
  }
  os << op->getAttrDictionary();
  llvm::interleaveComma(op->getResultTypes(), os);
  return text;
}

/// Numbers what has no text in the order of the program.
std::string StructuralKeys::placeOf(Operation *op) {
  if (!places.count(op)) {
    Operation *top = op;
    while (top->getParentOp() && !isa<FunctionOpInterface>(top)) {
      top = top->getParentOp();
    }
    places.clear();
    unsigned next = 0;
    top->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (!hasText(inner)) {
        places[inner] = next++;
      }
    });
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << '!' << llvm::format("%06u", places[op]) << op->getName();
  return text;
}

std::string StructuralKeys::argumentKey(BlockArgument argument) {
  Block *block = argument.getOwner();
  Operation *parent = block->getParentOp();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (parent && hasScalarRegion(parent)) {
    os << "%s";
  } else if (parent && isa<FunctionOpInterface>(parent) &&
             block->isEntryBlock()) {
    os << "%a";
  } else {
    // A block of a control flow graph or of another dialect's region: by the
    // place of its parent and its number there.
    unsigned number = 0;
    for (Block &other : *block->getParent()) {
      if (&other == block) {
        break;
      }
      ++number;
    }
    os << "%b";
    if (parent && !isa<FunctionOpInterface>(parent)) {
      os << placeOf(parent) << '.' << block->getParent()->getRegionNumber();
    }
    os << '.' << number << '.';
  }
  // Padded, so that argument 10 comes after argument 9.
  os << llvm::format("%04u", argument.getArgNumber());
  return text;
}
