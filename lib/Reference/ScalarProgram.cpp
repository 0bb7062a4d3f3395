//===- ScalarProgram.cpp - scalar operations, decoded ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ScalarProgram.h"

#include "ScalarFunctions.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

/// Whether elements of this type are held in a Scalar.
static bool isHeld(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ||
         (element.isIntOrFloat() && element.getIntOrFloatBitWidth() <= 64);
}

static unsigned bitsOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
}

namespace attnfuse::reference {
class Decoder {
public:
  explicit Decoder(const Values &values) : values(values) {}

  llvm::Expected<ScalarProgram> decode(Region &region) {
    Block &block = region.front();
    for (Value argument : block.getArguments()) {
      addParameter(argument);
    }
    for (Operation &op : block.without_terminator()) {
      if (llvm::Error error = decodeOp(op)) {
        return std::move(error);
      }
    }
    return finish(block.getTerminator()->getOperand(0));
  }

  llvm::Expected<ScalarProgram> decode(Operation &op) {
    if (!isa<tensor::ExtractOp>(op)) {
      for (Value operand : op.getOperands()) {
        if (!slots.count(operand)) {
          addParameter(operand);
        }
      }
    }
    if (llvm::Error error = decodeOp(op)) {
      return std::move(error);
    }
    return finish(op.getResult(0));
  }

private:
  void addParameter(Value value) {
    program.parameters.push_back(value);
    slot(value);
  }

  llvm::Expected<ScalarProgram> finish(Value value) {
    auto result = read(value);
    if (!result) {
      return result.takeError();
    }
    program.result = *result;
    return std::move(program);
  }

  size_t slot(Value value) {
    auto [place, isNew] = slots.try_emplace(value, program.initial.size());
    if (isNew) {
      program.initial.emplace_back();
    }
    return place->second;
  }

  /// The slot of an operand; a scalar of the function becomes a constant.
  llvm::Expected<size_t> read(Value value) {
    auto known = slots.find(value);
    if (known != slots.end()) {
      return known->second;
    }
    ArrayRefPtr captured = values.lookup(value);
    if (!captured || !captured->shape.empty()) {
      return errorAt(value.getLoc(), "the oracle has no value for " +
                                         describeValue(value) +
                                         ", which a region captures");
    }
    size_t place = slot(value);
    program.initial[place] = captured->get(0);
    return place;
  }

  llvm::Error push(ScalarProgram::Step step) {
    program.steps.push_back(std::move(step));
    return llvm::Error::success();
  }

  llvm::Error decodeOp(Operation &op) {
    bool held = op.getNumResults() == 1 &&
                llvm::all_of(op.getResultTypes(), isHeld) &&
                (isa<tensor::ExtractOp, tensor::DimOp>(op) ||
                 llvm::all_of(op.getOperandTypes(), isHeld));
    if (!held) {
      return unknown(op);
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      return decodeExtract(extract);
    }
    if (auto dim = dyn_cast<tensor::DimOp>(op)) {
      return decodeDim(dim);
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      Scalar &value = program.initial[slot(constant.getResult())];
      if (auto real = dyn_cast<FloatAttr>(constant.getValue())) {
        value.f = real.getValueAsDouble();
      } else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue())) {
        value.i =
            wrap(integer.getValue().getSExtValue(), bitsOf(integer.getType()));
      } else {
        return unknown(op);
      }
      return llvm::Error::success();
    }
    SmallVector<size_t> in;
    for (Value operand : op.getOperands()) {
      auto place = read(operand);
      if (!place) {
        return place.takeError();
      }
      in.push_back(*place);
    }
    if (in.empty()) {
      return unknown(op);
    }
    return decodeArithmetic(op, in, slot(op.getResult(0)));
  }

  llvm::Error decodeArithmetic(Operation &op, ArrayRef<size_t> operands,
                               size_t out) {
    StringRef name = op.getName().getStringRef();
    size_t a = operands[0];
    size_t b = operands.size() > 1 ? operands[1] : a;
    size_t c = operands.size() > 2 ? operands[2] : a;
    unsigned from = bitsOf(op.getOperand(0).getType());
    unsigned to = bitsOf(op.getResult(0).getType());

    auto unary = unaryFloats().find(name);
    if (unary != unaryFloats().end()) {
      return push([fn = unary->second, out, a](auto &s, auto &) {
        s[out].f = fn(s[a].f);
      });
    }
    auto binary = binaryFloats().find(name);
    if (binary != binaryFloats().end()) {
      return push([fn = binary->second, out, a, b](auto &s, auto &) {
        s[out].f = fn(s[a].f, s[b].f);
      });
    }
    auto test = floatTests().find(name);
    if (test != floatTests().end()) {
      return push([fn = test->second, out, a](auto &s, auto &) {
        s[out].i = fn(s[a].f);
      });
    }
    auto integer = binaryIntegers().find(name);
    if (integer != binaryIntegers().end()) {
      return push([fn = integer->second, out, a, b, to](auto &s, auto &) {
        s[out].i = wrap(fn(signedOf(s[a].i, to), signedOf(s[b].i, to), to), to);
      });
    }
    if (name == "math.fma") {
      return push([out, a, b, c](auto &s, auto &) {
        s[out].f = s[a].f * s[b].f + s[c].f;
      });
    }
    if (name == "math.fpowi") {
      return push([out, a, b](auto &s, auto &) {
        s[out].f = std::pow(s[a].f, static_cast<double>(s[b].i));
      });
    }
    if (name == "math.absi") {
      return push([out, a, to](auto &s, auto &) {
        int64_t x = signedOf(s[a].i, to);
        s[out].i = wrap(x < 0 ? int64_t(0 - uint64_t(x)) : x, to);
      });
    }
    if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
      return push([p = cmp.getPredicate(), out, a, b](auto &s, auto &) {
        s[out].i = compareFloats(p, s[a].f, s[b].f);
      });
    }
    if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
      return push([p = cmp.getPredicate(), out, a, b, from](auto &s, auto &) {
        s[out].i = compareIntegers(p, s[a].i, s[b].i, from);
      });
    }
    if (isa<arith::SelectOp>(op)) {
      return push(
          [out, a, b, c](auto &s, auto &) { s[out] = s[a].i ? s[b] : s[c]; });
    }
    if (isa<arith::SIToFPOp>(op)) {
      return push([out, a, from](auto &s, auto &) {
        s[out].f = static_cast<double>(signedOf(s[a].i, from));
      });
    }
    if (isa<arith::UIToFPOp>(op)) {
      return push([out, a, from](auto &s, auto &) {
        s[out].f = static_cast<double>(unsignedOf(s[a].i, from));
      });
    }
    if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
      return push([out, a, to](auto &s, auto &) {
        double x = s[a].f;
        int64_t whole = x >= -0x1p63 && x < 0x1p63 ? static_cast<int64_t>(x)
                        : x >= 0x1p63 && x < 0x1p64
                            ? static_cast<int64_t>(static_cast<uint64_t>(x))
                            : 0;
        s[out].i = wrap(whole, to);
      });
    }
    if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
      return push([out, a, from, to](auto &s, auto &) {
        s[out].i = wrap(signedOf(s[a].i, from), to);
      });
    }
    if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op)) {
      return push([out, a, from, to](auto &s, auto &) {
        s[out].i = wrap(static_cast<int64_t>(unsignedOf(s[a].i, from)), to);
      });
    }
    return unknown(op);
  }

  llvm::Error decodeDim(tensor::DimOp dim) {
    ArrayRefPtr source = values.lookup(dim.getSource());
    auto place = dim.getConstantIndex();
    if (!source || !place) {
      return errorAt(dim.getLoc(), "the oracle knows tensor.dim of a tensor of "
                                   "the function, at a constant index");
    }
    int64_t rank = source->shape.size();
    if (*place < 0 || *place >= rank) {
      return errorAt(dim.getLoc(), "'tensor.dim' expected a dimension below " +
                                       llvm::Twine(rank) + ", got " +
                                       llvm::Twine(*place));
    }
    program.initial[slot(dim.getResult())].i = source->shape[*place];
    return llvm::Error::success();
  }

  llvm::Error decodeExtract(tensor::ExtractOp extract) {
    ArrayRefPtr source = values.lookup(extract.getTensor());
    if (!source) {
      return errorAt(extract.getLoc(), "the oracle has no value for " +
                                           describeValue(extract.getTensor()));
    }
    SmallVector<size_t> in;
    for (Value index : extract.getIndices()) {
      auto place = read(index);
      if (!place) {
        return place.takeError();
      }
      in.push_back(*place);
    }
    std::string where = locationText(extract.getLoc());
    std::string what = describeValue(extract.getTensor());
    return push([source, in, where, what, out = slot(extract.getResult())](
                    std::vector<Scalar> &s, std::string &error) {
      int64_t offset = 0;
      for (size_t dim = 0; dim < in.size(); ++dim) {
        int64_t index = s[in[dim]].i, extent = source->shape[dim];
        if (index < 0 || index >= extent) {
          error = where + ": 'tensor.extract' index " + std::to_string(index) +
                  " in dimension " + std::to_string(dim) + " lies outside " +
                  what + ", whose extent is " + std::to_string(extent);
          return;
        }
        offset = offset * extent + index;
      }
      s[out] = source->get(offset);
    });
  }

  llvm::Error unknown(Operation &op) {
    return errorAt(op.getLoc(), "the oracle does not know '" +
                                    op.getName().getStringRef() +
                                    "' on these types");
  }

  const Values &values;
  ScalarProgram program;
  llvm::DenseMap<Value, size_t> slots;
};
} // namespace attnfuse::reference

llvm::Expected<ScalarProgram> ScalarProgram::decode(Region &region,
                                                    const Values &values) {
  return Decoder(values).decode(region);
}

llvm::Expected<ScalarProgram> ScalarProgram::decode(Operation &op,
                                                    const Values &values) {
  return Decoder(values).decode(op);
}

Scalar ScalarProgram::run(llvm::ArrayRef<Scalar> arguments,
                          std::vector<Scalar> &slots,
                          std::string &error) const {
  std::copy(arguments.begin(), arguments.end(), slots.begin());
  for (const Step &step : steps) {
    step(slots, error);
    if (!error.empty()) {
      return {};
    }
  }
  return slots[result];
}
