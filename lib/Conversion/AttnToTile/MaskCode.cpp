//===- MaskCode.cpp - bounds and classes of a mask -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "MaskCode.h"

#include "llvm/ADT/TypeSwitch.h"

#include <optional>

using namespace mlir;
using namespace attnfuse;

static bool isFinite(int64_t bound) {
  return bound != kMinusInfinity && bound != kPlusInfinity;
}

MaskCode::MaskCode(KernelContext &context, const MaskModel &model,
                   const QueryTile &tile, int64_t rows, int64_t columns)
    : context(context), model(model), tile(tile), rows(rows), columns(columns) {
  for (const MaskTerm &term : model.form.terms) {
    for (ArrayRef<int> literals :
         {ArrayRef<int>(term.positive), ArrayRef<int>(term.negative)}) {
      for (int atom : literals) {
        if (auto prefix = dyn_cast<attn::PrefixOp>(model.atoms[atom])) {
          length(prefix);
        }
        if (auto document = dyn_cast<attn::DocumentOp>(model.atoms[atom])) {
          prepareDocument(document, documents[atom]);
        }
        if (auto mod = dyn_cast<attn::MaskModOp>(model.atoms[atom])) {
          captureRegion(context, mod.getBody());
        }
      }
    }
    for (const Band &band : term.bands) {
      base(band.family);
      fromZero &= !isFinite(band.lo);
    }
    fromZero &= term.negative.empty();
  }
  fromZero &= !model.form.terms.empty();
  // A union's hull may have gaps: its tiles are then classified one by one.
  analytic = boundsSuffice(model);
}

bool MaskCode::boundsSuffice(const MaskModel &model) {
  bool analytic = true, fromZero = !model.form.terms.empty();
  for (const MaskTerm &term : model.form.terms) {
    for (ArrayRef<int> literals :
         {ArrayRef<int>(term.positive), ArrayRef<int>(term.negative)}) {
      for (int atom : literals) {
        analytic &= isa<attn::PrefixOp>(model.atoms[atom]);
      }
    }
    for (const Band &band : term.bands) {
      fromZero &= !isFinite(band.lo);
    }
    fromZero &= term.negative.empty();
  }
  return analytic && (model.form.terms.size() <= 1 || fromZero);
}

//===----------------------------------------------------------------------===//
// Values of the query tile
//===----------------------------------------------------------------------===//

Value MaskCode::base(int family) {
  Value &known = bases[family];
  if (!known) {
    IndexMath m = context.math();
    const MaskModel::Family &diagonal = model.families[family];
    if (diagonal.offset) {
      known = context.position(diagonal.offset, tile.batch);
    } else if (diagonal.alignment == attn::Alignment::TopLeft) {
      known = m.index(0);
    } else {
      known = m.sub(tile.keys, tile.queries);
    }
  }
  return known;
}

Value MaskCode::length(attn::PrefixOp op) {
  // Ids are few; the op's place among the atoms is its key.
  int atom = llvm::find(model.atoms, op.getOperation()) - model.atoms.begin();
  Value &known = lengths[atom];
  if (!known) {
    IndexMath m = context.math();
    known = op.getLength() ? m.index(static_cast<int64_t>(*op.getLength()))
                           : context.position(op.getLengths(), tile.batch);
  }
  return known;
}

/// Row b of ids of one or B rows, element n; reads are clamped.
static Value readId(IndexMath m, Value ids, Value batch, Value n) {
  auto view = cast<tile::ViewType>(ids.getType());
  return tile::ReadOp::create(m.builder, m.loc, view.getElementType(), ids,
                              ValueRange{batch, n});
}

void MaskCode::prepareDocument(attn::DocumentOp op, Document &document) {
  if (document.queryIds) {
    return;
  }
  Value queryView = context.get(op.getQueryIds());
  document.keyView = op.getKeyIds() ? context.get(op.getKeyIds()) : queryView;
  Type element = cast<tile::ViewType>(queryView.getType()).getElementType();
  auto idsAlong = [&](bool column) {
    return context
        .map({}, column ? rows : 1, column ? 1 : rows, element,
             [&](IndexMath m, ValueRange args) {
               Value row = args[column ? 0 : 1];
               return SmallVector<Value>{
                   readId(m, queryView, tile.batch, m.add(tile.i0, row))};
             })
        .front();
  };
  document.queryIds = idsAlong(/*column=*/true);
  // Clamped reads repeat the last id beyond the end, which leaves the least
  // and the greatest id of the tile as they are. A row of ids is held whole by
  // every thread that needs its extremes; a column is not.
  Value ids = context.layout ? idsAlong(/*column=*/false) : document.queryIds;
  auto scalar = [&](tile::ReduceKind kind) -> Value {
    Value one = context.reduce(kind, ids, context.layout ? 1 : 0);
    return tile::ExtractOp::create(context.builder, context.loc, element, one);
  };
  document.low = scalar(tile::ReduceKind::Min);
  document.high = scalar(tile::ReduceKind::Max);
}

Value MaskCode::keyIds(const Document &document, Value j0) {
  Type element =
      cast<tile::ViewType>(document.keyView.getType()).getElementType();
  return context
      .map({}, 1, columns, element,
           [&](IndexMath m, ValueRange args) {
             return SmallVector<Value>{
                 readId(m, document.keyView, tile.batch, m.add(j0, args[1]))};
           })
      .front();
}

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

KeyInterval MaskCode::touchedBy(const MaskTerm &term) {
  IndexMath m = context.math();
  KeyInterval keys{m.index(0), tile.keys};
  for (const Band &band : term.bands) {
    // lo <= j - i - base <= hi for some row i of [i0, i1).
    if (isFinite(band.lo)) {
      Value lower = m.add(m.add(tile.i0, base(band.family)), band.lo);
      keys.lower = m.max(keys.lower, lower);
    }
    if (isFinite(band.hi)) {
      Value upper = m.add(m.add(tile.i1, base(band.family)), band.hi);
      keys.upper = m.min(keys.upper, upper);
    }
  }
  for (int atom : term.positive) {
    if (auto prefix = dyn_cast<attn::PrefixOp>(model.atoms[atom])) {
      keys.upper = m.min(keys.upper, length(prefix));
    }
  }
  for (int atom : term.negative) {
    if (auto prefix = dyn_cast<attn::PrefixOp>(model.atoms[atom])) {
      keys.lower = m.max(keys.lower, length(prefix));
    }
  }
  return keys;
}

KeyInterval MaskCode::filledBy(const MaskTerm &term) {
  IndexMath m = context.math();
  KeyInterval keys{m.index(0), tile.keys};
  for (const Band &band : term.bands) {
    // lo <= j - i - base <= hi for every row i of [i0, i1).
    if (isFinite(band.lo)) {
      Value lower = m.add(m.add(tile.i1, base(band.family)), band.lo - 1);
      keys.lower = m.max(keys.lower, lower);
    }
    if (isFinite(band.hi)) {
      Value upper = m.add(m.add(tile.i0, base(band.family)), band.hi + 1);
      keys.upper = m.min(keys.upper, upper);
    }
  }
  for (int atom : term.positive) {
    auto prefix = dyn_cast<attn::PrefixOp>(model.atoms[atom]);
    keys.upper = prefix ? m.min(keys.upper, length(prefix)) : m.index(0);
  }
  for (int atom : term.negative) {
    auto prefix = dyn_cast<attn::PrefixOp>(model.atoms[atom]);
    if (prefix) {
      keys.lower = m.max(keys.lower, length(prefix));
    } else {
      keys.upper = m.index(0);
    }
  }
  return keys;
}

std::pair<KeyInterval, KeyInterval> MaskCode::bounds() {
  IndexMath m = context.math();
  Value zero = m.index(0);
  KeyInterval touched{zero, zero}, full{zero, zero};
  bool first = true;
  for (const MaskTerm &term : model.form.terms) {
    KeyInterval some = touchedBy(term), every = filledBy(term);
    if (first) {
      touched = some;
      full = every;
      first = false;
      continue;
    }
    // The hull, empty intervals left out.
    Value none = m.le(touched.upper, touched.lower);
    Value someNone = m.le(some.upper, some.lower);
    Value lower =
        m.select(someNone, touched.lower, m.min(touched.lower, some.lower));
    Value upper =
        m.select(someNone, touched.upper, m.max(touched.upper, some.upper));
    touched = {m.select(none, some.lower, lower),
               m.select(none, some.upper, upper)};
    // The union where the two meet, else the longer one.
    Value meet =
        m.both(m.le(every.lower, full.upper), m.le(full.lower, every.upper));
    Value longer =
        m.lt(m.sub(full.upper, full.lower), m.sub(every.upper, every.lower));
    Value everyNone = m.le(every.upper, every.lower);
    Value fullNone = m.le(full.upper, full.lower);
    meet = m.both(meet, m.negate(m.either(everyNone, fullNone)));
    full = {m.select(meet, m.min(full.lower, every.lower),
                     m.select(longer, every.lower, full.lower)),
            m.select(meet, m.max(full.upper, every.upper),
                     m.select(longer, every.upper, full.upper))};
  }
  // Bounds may lie on the wrong side of 0 or of the last key.
  auto clamp = [&](Value value) {
    return m.max(zero, m.min(value, tile.keys));
  };
  touched = {clamp(touched.lower), clamp(touched.upper)};
  full = {m.max(touched.lower, clamp(full.lower)),
          m.min(touched.upper, clamp(full.upper))};
  return {touched, full};
}

//===----------------------------------------------------------------------===//
// Classes of a key tile
//===----------------------------------------------------------------------===//

MaskCode::Classes MaskCode::classifyTable(attn::BlockSparseOp op, Value j0,
                                          Value j1) {
  IndexMath m = context.math();
  Value table = context.get(op.getTable());
  Value one = m.index(1);
  int64_t blockQ = op.getBlocks()[0], blockK = op.getBlocks()[1];
  auto first = [&](Value n, int64_t block) { return m.floorDiv(n, block); };
  // Rows [i0, i1) and keys [j0, j1) are never empty where this is asked.
  Value rowEnd = m.add(first(m.add(tile.i1, -1), blockQ), 1);
  Value keyEnd = m.add(first(m.add(j1, -1), blockK), 1);
  Value no = m.boolean(false), yes = m.boolean(true);
  OpBuilder &b = context.builder;
  auto overRows = scf::ForOp::create(
      b, context.loc, first(tile.i0, blockQ), rowEnd, one, ValueRange{no, yes},
      [&](OpBuilder &, Location loc, Value row, ValueRange outer) {
        auto overKeys = scf::ForOp::create(
            b, loc, first(j0, blockK), keyEnd, one, outer,
            [&](OpBuilder &, Location, Value key, ValueRange state) {
              IndexMath inner = context.math();
              auto view = cast<tile::ViewType>(table.getType());
              Value entry = tile::ReadOp::create(
                  b, loc, view.getElementType(), table,
                  ValueRange{tile.batch, tile.head, row, key});
              if (!entry.getType().isInteger(1)) {
                Value nothing = arith::ConstantOp::create(
                    b, loc, b.getZeroAttr(entry.getType()));
                entry = inner.cmp(arith::CmpIPredicate::ne, entry, nothing);
              }
              scf::YieldOp::create(b, loc,
                                   ValueRange{inner.either(state[0], entry),
                                              inner.both(state[1], entry)});
            });
        scf::YieldOp::create(b, loc, overKeys.getResults());
      });
  return {overRows.getResult(0), overRows.getResult(1)};
}

MaskCode::Classes MaskCode::classifyDocument(const Document &document,
                                             Value j0) {
  IndexMath m = context.math();
  Value ids = keyIds(document, j0);
  Type element = cast<tile::TileType>(ids.getType()).getElementType();
  auto scalar = [&](tile::ReduceKind kind) -> Value {
    Value one = context.reduce(kind, ids, 1);
    return tile::ExtractOp::create(context.builder, context.loc, element, one);
  };
  Value low = scalar(tile::ReduceKind::Min);
  Value high = scalar(tile::ReduceKind::Max);
  // Ids need not be sorted: ranges that do not meet hold no equal pair, and
  // ranges of one and the same id hold nothing else.
  Value any = m.both(m.le(low, document.high), m.le(document.low, high));
  auto equal = [&](Value a, Value b) {
    return m.cmp(arith::CmpIPredicate::eq, a, b);
  };
  Value all =
      m.both(equal(low, high), m.both(equal(document.low, document.high),
                                      equal(low, document.low)));
  return {any, all};
}

MaskCode::Classes MaskCode::classifyAtom(int atom, Value j0, Value j1) {
  IndexMath m = context.math();
  return llvm::TypeSwitch<Operation *, Classes>(model.atoms[atom])
      .Case([&](attn::PrefixOp op) {
        Value end = length(op);
        return Classes{m.lt(j0, end), m.le(j1, end)};
      })
      .Case([&](attn::BlockSparseOp op) { return classifyTable(op, j0, j1); })
      .Case([&](attn::DocumentOp) {
        return classifyDocument(documents[atom], j0);
      })
      .Default([&](Operation *) {
        return Classes{m.boolean(true), m.boolean(false)};
      });
}

std::pair<Value, Value> MaskCode::classify(Value j0, Value j1) {
  IndexMath m = context.math();
  llvm::DenseMap<int, Classes> atoms;
  auto atomClasses = [&](int atom) {
    auto known = atoms.find(atom);
    if (known == atoms.end()) {
      known = atoms.try_emplace(atom, classifyAtom(atom, j0, j1)).first;
    }
    return known->second;
  };
  Value any = m.boolean(false), all = m.boolean(false);
  for (const MaskTerm &term : model.form.terms) {
    Value termAny = m.boolean(true), termAll = m.boolean(true);
    for (const Band &band : term.bands) {
      Value first = m.add(tile.i0, base(band.family));
      Value last = m.add(m.add(tile.i1, base(band.family)), -1);
      if (isFinite(band.lo)) {
        termAny = m.both(termAny, m.lt(m.add(first, band.lo), j1));
        termAll = m.both(termAll, m.le(m.add(last, band.lo), j0));
      }
      if (isFinite(band.hi)) {
        termAny = m.both(termAny, m.le(j0, m.add(last, band.hi)));
        termAll = m.both(termAll, m.le(j1, m.add(first, band.hi + 1)));
      }
    }
    for (int atom : term.positive) {
      Classes classes = atomClasses(atom);
      termAny = m.both(termAny, classes.any);
      termAll = m.both(termAll, classes.all);
    }
    for (int atom : term.negative) {
      Classes classes = atomClasses(atom);
      termAny = m.both(termAny, m.negate(classes.all));
      termAll = m.both(termAll, m.negate(classes.any));
    }
    any = m.either(any, termAny);
    all = m.either(all, termAll);
  }
  return {any, all};
}

//===----------------------------------------------------------------------===//
// The test of a pair
//===----------------------------------------------------------------------===//

SmallVector<Value> MaskCode::operands(Value j0) {
  SmallVector<Value> tiles;
  for (auto [atom, op] : llvm::enumerate(model.atoms)) {
    auto known = documents.find(atom);
    if (known != documents.end()) {
      tiles.push_back(known->second.queryIds);
      tiles.push_back(keyIds(known->second, j0));
    }
  }
  return tiles;
}

Value MaskCode::testAtom(int atom, IndexMath m, ValueRange scalars, Value i,
                         Value j) {
  return llvm::TypeSwitch<Operation *, Value>(model.atoms[atom])
      .Case([&](attn::PrefixOp op) { return m.lt(j, length(op)); })
      .Case([&](attn::BlockSparseOp op) {
        Value table = context.get(op.getTable());
        auto view = cast<tile::ViewType>(table.getType());
        Value entry = tile::ReadOp::create(
            m.builder, m.loc, view.getElementType(), table,
            ValueRange{tile.batch, tile.head, m.floorDiv(i, op.getBlocks()[0]),
                       m.floorDiv(j, op.getBlocks()[1])});
        if (entry.getType().isInteger(1)) {
          return entry;
        }
        Value nothing = arith::ConstantOp::create(
            m.builder, m.loc, m.builder.getZeroAttr(entry.getType()));
        return m.cmp(arith::CmpIPredicate::ne, entry, nothing);
      })
      .Case([&](attn::DocumentOp) {
        size_t place = 0;
        for (int other = 0; other < atom; ++other) {
          place += documents.count(other) ? 2 : 0;
        }
        return m.cmp(arith::CmpIPredicate::eq, scalars[place],
                     scalars[place + 1]);
      })
      .Case([&](attn::MaskModOp op) {
        return inlineScalarRegion(context, m, op.getBody(),
                                  {tile.batch, tile.head, i, j});
      })
      .Default([&](Operation *) -> Value {
        llvm_unreachable("an atom is a leaf of the attn dialect");
      });
}

Value MaskCode::test(IndexMath m, ValueRange scalars, Value i, Value j) {
  llvm::DenseMap<int, Value> atoms;
  auto literal = [&](int atom) {
    Value &known = atoms[atom];
    if (!known) {
      known = testAtom(atom, m, scalars, i, j);
    }
    return known;
  };
  Value result;
  auto join = [](Value a, Value b, auto combine) {
    return a ? combine(a, b) : b;
  };
  auto both = [&](Value a, Value b) { return m.both(a, b); };
  auto either = [&](Value a, Value b) { return m.either(a, b); };
  for (const MaskTerm &term : model.form.terms) {
    Value kept;
    for (const Band &band : term.bands) {
      Value center = m.add(i, bases[band.family]);
      if (isFinite(band.hi)) {
        kept = join(kept, m.le(j, m.add(center, band.hi)), both);
      }
      if (isFinite(band.lo)) {
        kept = join(kept, m.le(m.add(center, band.lo), j), both);
      }
    }
    for (int atom : term.positive) {
      kept = join(kept, literal(atom), both);
    }
    for (int atom : term.negative) {
      kept = join(kept, m.negate(literal(atom)), both);
    }
    result = join(result, kept ? kept : m.boolean(true), either);
  }
  return result ? result : m.boolean(false);
}
