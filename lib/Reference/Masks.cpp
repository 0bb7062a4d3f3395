//===- Masks.cpp - masks of the oracle -------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Masks.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

int64_t attnfuse::reference::positionOf(const Array &array, int64_t batch) {
  bool perBatch = !array.shape.empty() && array.shape[0] != 1;
  return static_cast<int64_t>(array.data[perBatch ? batch : 0]);
}

llvm::Expected<MaskProgram> MaskProgram::decode(Value mask,
                                                const Values &values) {
  Operation *op = mask.getDefiningOp();
  if (!op) {
    return errorAt(mask.getLoc(), "the oracle knows masks made in the function "
                                  "that uses them");
  }
  MaskProgram program;
  auto known = [&](Value value) -> ArrayRefPtr {
    return value ? values.lookup(value) : nullptr;
  };
  // Sets keep[j] by a predicate on the key.
  auto perKey = [&](auto predicate) {
    program.fill = [predicate](const Row &row, std::vector<uint8_t> &keep,
                               std::vector<Scalar> &, std::string &) {
      for (int64_t j = 0; j < row.keys; ++j) {
        keep[j] = predicate(row, j);
      }
    };
  };
  auto baseOf = [](const Row &row, const ArrayRefPtr &offset,
                   attn::Alignment alignment) {
    if (offset) {
      return positionOf(*offset, row.batch);
    }
    return alignment == attn::Alignment::TopLeft ? int64_t(0)
                                                 : row.keys - row.queries;
  };

  if (isa<attn::FullOp>(op)) {
    perKey([](const Row &, int64_t) { return true; });
  } else if (auto causal = dyn_cast<attn::CausalOp>(op)) {
    perKey([=, offset = known(causal.getOffset()),
            alignment = causal.getAlignment(),
            shift = static_cast<int64_t>(causal.getShift())](const Row &row,
                                                             int64_t j) {
      return j <= row.query + baseOf(row, offset, alignment) + shift;
    });
  } else if (auto window = dyn_cast<attn::SlidingWindowOp>(op)) {
    std::optional<int64_t> left, right;
    if (window.getLeft()) {
      left = static_cast<int64_t>(*window.getLeft());
    }
    if (window.getRight()) {
      right = static_cast<int64_t>(*window.getRight());
    }
    perKey([=, offset = known(window.getOffset()),
            alignment = window.getAlignment()](const Row &row, int64_t j) {
      int64_t center = row.query + baseOf(row, offset, alignment);
      return (!left || j > center - *left) && (!right || j < center + *right);
    });
  } else if (auto prefix = dyn_cast<attn::PrefixOp>(op)) {
    int64_t fixed =
        prefix.getLength() ? static_cast<int64_t>(*prefix.getLength()) : 0;
    perKey(
        [=, lengths = known(prefix.getLengths())](const Row &row, int64_t j) {
          return j < (lengths ? positionOf(*lengths, row.batch) : fixed);
        });
  } else if (auto table = dyn_cast<attn::BlockSparseOp>(op)) {
    perKey([blocks = SmallVector<int64_t>(table.getBlocks()),
            array = known(table.getTable())](const Row &row, int64_t j) {
      return array->at({row.batch, row.head, row.query / blocks[0],
                        j / blocks[1]}) != 0;
    });
  } else if (auto document = dyn_cast<attn::DocumentOp>(op)) {
    ArrayRefPtr queries = known(document.getQueryIds());
    ArrayRefPtr keys =
        document.getKeyIds() ? known(document.getKeyIds()) : queries;
    perKey([=](const Row &row, int64_t j) {
      return queries->at({row.batch, row.query}) == keys->at({row.batch, j});
    });
  } else if (auto mod = dyn_cast<attn::MaskModOp>(op)) {
    auto region = ScalarProgram::decode(mod.getBody(), values);
    if (!region) {
      return region.takeError();
    }
    program.fill = [body = *region](const Row &row, std::vector<uint8_t> &keep,
                                    std::vector<Scalar> &slots,
                                    std::string &error) {
      for (int64_t j = 0; j < row.keys && error.empty(); ++j) {
        Scalar arguments[] = {
            {0, row.batch}, {0, row.head}, {0, row.query}, {0, j}};
        keep[j] = body.run(arguments, slots, error).i != 0;
      }
    };
  } else if (isa<attn::AndOp, attn::OrOp, attn::NotOp>(op)) {
    std::vector<MaskProgram> parts;
    for (Value operand : op->getOperands()) {
      auto part = decode(operand, values);
      if (!part) {
        return part;
      }
      parts.push_back(*part);
    }
    bool isAnd = isa<attn::AndOp>(op), isNot = isa<attn::NotOp>(op);
    program.fill = [=](const Row &row, std::vector<uint8_t> &keep,
                       std::vector<Scalar> &slots, std::string &error) {
      std::vector<uint8_t> other(row.keys);
      parts[0].run(row, keep, slots, error);
      for (size_t n = 1; n < parts.size(); ++n) {
        parts[n].run(row, other, slots, error);
        for (int64_t j = 0; j < row.keys; ++j) {
          keep[j] = isAnd ? keep[j] & other[j] : keep[j] | other[j];
        }
      }
      for (int64_t j = 0; isNot && j < row.keys; ++j) {
        keep[j] = !keep[j];
      }
    };
  } else {
    return errorAt(op->getLoc(), "the oracle does not know the mask '" +
                                     op->getName().getStringRef() + "'");
  }
  return program;
}

void MaskProgram::run(const Row &row, std::vector<uint8_t> &keep,
                      std::vector<Scalar> &slots, std::string &error) const {
  fill(row, keep, slots, error);
}
