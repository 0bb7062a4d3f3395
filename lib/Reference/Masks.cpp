//===- Masks.cpp - masks of the oracle -------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Masks.h"

#include "ScalarProgram.h"

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::reference;

SmallVector<Operation *>
attnfuse::reference::maskOperations(ArrayRef<Value> masks) {
  llvm::SetVector<Operation *> found;
  auto add = [&](Value mask) {
    if (mask.getDefiningOp() && isa<attn::MaskType>(mask.getType())) {
      found.insert(mask.getDefiningOp());
    }
  };
  llvm::for_each(masks, add);
  for (size_t n = 0; n < found.size(); ++n) {
    llvm::for_each(found[n]->getOperands(), add);
  }
  // Within a block, definitions come before uses.
  SmallVector<Operation *> sorted(found.takeVector());
  llvm::sort(sorted,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return sorted;
}

llvm::Expected<MaskProgram::Fill>
MaskProgram::decodeNode(Operation *op, const Values &values) {
  auto known = [&](Value value) -> ArrayRefPtr {
    return value ? values.lookup(value) : nullptr;
  };
  // Sets keep[j] by a predicate on the key.
  auto perKey = [&](auto predicate) -> Fill {
    return [predicate](const Row &row, Keep &keep, ArrayRef<const Keep *>,
                       std::string &) {
      for (int64_t j = 0; j < row.keys; ++j) {
        keep[j] = predicate(row, j);
      }
    };
  };
  // The key beside the query.
  auto besides = [](const Row &row, const ArrayRefPtr &offset,
                    attn::Alignment alignment) {
    int64_t base = offset ? positionOf(*offset, row.batch)
                   : alignment == attn::Alignment::TopLeft
                       ? 0
                       : row.keys - row.queries;
    return addSaturating(row.query, base);
  };

  if (isa<attn::FullOp>(op)) {
    return perKey([](const Row &, int64_t) { return true; });
  }
  if (auto causal = dyn_cast<attn::CausalOp>(op)) {
    return perKey([=, offset = known(causal.getOffset()),
                   alignment = causal.getAlignment(),
                   shift = static_cast<int64_t>(causal.getShift())](
                      const Row &row, int64_t j) {
      return j <= addSaturating(besides(row, offset, alignment), shift);
    });
  }
  if (auto window = dyn_cast<attn::SlidingWindowOp>(op)) {
    std::optional<int64_t> left, right;
    if (window.getLeft()) {
      left = static_cast<int64_t>(*window.getLeft());
    }
    if (window.getRight()) {
      right = static_cast<int64_t>(*window.getRight());
    }
    return perKey(
        [=, offset = known(window.getOffset()),
         alignment = window.getAlignment()](const Row &row, int64_t j) {
          int64_t center = besides(row, offset, alignment);
          return (!left || addSaturating(center, -*left) < j) &&
                 (!right || j < addSaturating(center, *right));
        });
  }
  if (auto prefix = dyn_cast<attn::PrefixOp>(op)) {
    int64_t fixed =
        prefix.getLength() ? static_cast<int64_t>(*prefix.getLength()) : 0;
    return perKey(
        [=, lengths = known(prefix.getLengths())](const Row &row, int64_t j) {
          return j < (lengths ? positionOf(*lengths, row.batch) : fixed);
        });
  }
  if (auto table = dyn_cast<attn::BlockSparseOp>(op)) {
    return perKey([blocks = SmallVector<int64_t>(table.getBlocks()),
                   array = known(table.getTable())](const Row &row, int64_t j) {
      return array->ints[array->offset({row.batch, row.head,
                                        row.query / blocks[0],
                                        j / blocks[1]})] != 0;
    });
  }
  if (auto document = dyn_cast<attn::DocumentOp>(op)) {
    ArrayRefPtr queries = known(document.getQueryIds());
    ArrayRefPtr keys =
        document.getKeyIds() ? known(document.getKeyIds()) : queries;
    return perKey([=](const Row &row, int64_t j) {
      return queries->ints[queries->offset({row.batch, row.query})] ==
             keys->ints[keys->offset({row.batch, j})];
    });
  }
  if (auto mod = dyn_cast<attn::MaskModOp>(op)) {
    auto region = ScalarProgram::decode(mod.getBody(), values);
    if (!region) {
      return region.takeError();
    }
    return [body = *region](const Row &row, Keep &keep, ArrayRef<const Keep *>,
                            std::string &error) {
      std::vector<Scalar> slots = body.begin();
      for (int64_t j = 0; j < row.keys && error.empty(); ++j) {
        Scalar arguments[] = {
            {0, row.batch}, {0, row.head}, {0, row.query}, {0, j}};
        keep[j] = body.run(arguments, slots, error).i != 0;
      }
    };
  }
  if (isa<attn::NotOp>(op)) {
    return [](const Row &row, Keep &keep, ArrayRef<const Keep *> parts,
              std::string &) {
      for (int64_t j = 0; j < row.keys; ++j) {
        keep[j] = !(*parts[0])[j];
      }
    };
  }
  if (isa<attn::AndOp, attn::OrOp>(op)) {
    return [isAnd = isa<attn::AndOp>(op)](const Row &row, Keep &keep,
                                          ArrayRef<const Keep *> parts,
                                          std::string &) {
      keep = *parts[0];
      for (const Keep *part : parts.drop_front()) {
        for (int64_t j = 0; j < row.keys; ++j) {
          keep[j] = isAnd ? keep[j] & (*part)[j] : keep[j] | (*part)[j];
        }
      }
    };
  }
  return errorAt(op->getLoc(), "the oracle does not know the mask '" +
                                   op->getName().getStringRef() + "'");
}

llvm::Expected<MaskProgram> MaskProgram::decode(ArrayRef<Value> masks,
                                                const Values &values) {
  MaskProgram program;
  llvm::DenseMap<Operation *, size_t> places;
  auto placeOf = [&](Value mask) -> llvm::Expected<size_t> {
    Operation *op = mask.getDefiningOp();
    if (!op || !places.count(op)) {
      return errorAt(mask.getLoc(), "the oracle knows masks made in the "
                                    "function that uses them, got " +
                                        describeValue(mask));
    }
    return places[op];
  };
  auto decodeAll = [&](ValueRange range,
                       SmallVectorImpl<size_t> &into) -> llvm::Error {
    for (Value mask : range) {
      if (!isa<attn::MaskType>(mask.getType())) {
        continue;
      }
      auto place = placeOf(mask);
      if (!place) {
        return place.takeError();
      }
      into.push_back(*place);
    }
    return llvm::Error::success();
  };
  for (Operation *op : maskOperations(masks)) {
    auto fill = decodeNode(op, values);
    if (!fill) {
      return fill.takeError();
    }
    Node node{std::move(*fill), {}};
    if (llvm::Error error = decodeAll(op->getOperands(), node.parts)) {
      return std::move(error);
    }
    places[op] = program.nodes.size();
    program.nodes.push_back(std::move(node));
  }
  if (llvm::Error error = decodeAll(masks, program.roots)) {
    return std::move(error);
  }
  return program;
}

void MaskProgram::run(const Row &row, Keep &keep, std::vector<Keep> &scratch,
                      std::string &error) const {
  keep.assign(row.keys, 1);
  scratch.resize(nodes.size());
  for (size_t n = 0; n < nodes.size() && error.empty(); ++n) {
    scratch[n].resize(row.keys);
    SmallVector<const Keep *> parts;
    for (size_t part : nodes[n].parts) {
      parts.push_back(&scratch[part]);
    }
    nodes[n].fill(row, scratch[n], parts, error);
  }
  for (size_t root : roots) {
    for (int64_t j = 0; j < row.keys; ++j) {
      keep[j] &= scratch[root][j];
    }
  }
}
