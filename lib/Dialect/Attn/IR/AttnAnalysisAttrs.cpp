//===- AttnAnalysisAttrs.cpp - what analyses find out ----------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace mlir;
using namespace attnfuse::attn;

//===----------------------------------------------------------------------===//
// #attn.placement
//===----------------------------------------------------------------------===//

/// Three digits, in a form that MLIR's lexer reads as one number.
static std::string shortNumber(double value) {
  std::string text;
  if (value >= 100 && value < 1e15) {
    text = llvm::formatv("{0:f0}", PlacementAttr::roundToThreeDigits(value));
  } else {
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%.3g", value);
    text = buffer;
    size_t exponent = text.find('e');
    if (exponent != std::string::npos && text.find('.') == std::string::npos) {
      text.insert(exponent, ".0");
    }
  }
  return text;
}

double PlacementAttr::roundToThreeDigits(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.3g", value);
  return std::strtod(buffer, nullptr);
}

static ParseResult parseMicroseconds(AsmParser &parser, StringRef name,
                                     double &value) {
  if (parser.parseComma() || parser.parseKeyword(name) || parser.parseEqual()) {
    return failure();
  }
  int64_t integer;
  OptionalParseResult asInteger = parser.parseOptionalInteger(integer);
  if (asInteger.has_value()) {
    value = static_cast<double>(integer);
    return *asInteger;
  }
  return parser.parseFloat(value);
}

Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword)) {
    return {};
  }
  std::optional<Placement> place = symbolizePlacement(keyword);
  if (!place) {
    parser.emitError(loc) << "unknown place '" << keyword
                          << "'; supported: prologue, in_loop, once";
    return {};
  }
  if (succeeded(parser.parseOptionalGreater())) {
    return PlacementAttr::get(parser.getContext(), *place);
  }
  double inLoop = 0, once = 0;
  int64_t crossover = 0;
  if (parseMicroseconds(parser, "in_loop_us", inLoop) ||
      parseMicroseconds(parser, "once_us", once) || parser.parseComma() ||
      parser.parseKeyword("crossover") || parser.parseEqual()) {
    return {};
  }
  if (succeeded(parser.parseOptionalKeyword("never"))) {
    crossover = kNever;
  } else if (parser.parseInteger(crossover)) {
    return {};
  }
  if (parser.parseGreater()) {
    return {};
  }
  return parser.getChecked<PlacementAttr>(
      loc, parser.getContext(), *place, /*has_costs=*/true,
      APFloat(roundToThreeDigits(inLoop)), APFloat(roundToThreeDigits(once)),
      crossover);
}

void PlacementAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyPlacement(getPlace());
  if (getHasCosts()) {
    printer << ", in_loop_us = " << shortNumber(getInLoopUs())
            << ", once_us = " << shortNumber(getOnceUs()) << ", crossover = ";
    if (getCrossover() == kNever) {
      printer << "never";
    } else {
      printer << getCrossover();
    }
  }
  printer << ">";
}

LogicalResult
PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError, Placement,
                      bool, APFloat inLoop, APFloat once, int64_t crossover) {
  for (const APFloat &time : {inLoop, once}) {
    if (!time.isFinite() || time.isNegative()) {
      return emitError() << "expected finite times of at least 0, got "
                         << time.convertToDouble();
    }
  }
  if (crossover < 0) {
    return emitError() << "expected a crossover of at least 0, got "
                       << crossover;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// #attn.block_lists
//===----------------------------------------------------------------------===//

LogicalResult
BlockListsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       ArrayRef<int64_t> blocks, ArrayRef<int64_t> rows,
                       ArrayRef<int64_t> starts, ArrayRef<int64_t> keys) {
  if (blocks.size() != 2 || blocks[0] < 1 || blocks[1] < 1) {
    return emitError() << "expected two block sizes above 0, got [" << blocks
                       << "]";
  }
  if (rows.size() != 3 || llvm::any_of(rows, [](int64_t n) { return n < 0; })) {
    return emitError() << "expected numbers of batches, heads and rows of "
                          "blocks, got ["
                       << rows << "]";
  }
  // As f64: a product of three arbitrary numbers may not fit an integer.
  double count = static_cast<double>(rows[0]) * static_cast<double>(rows[1]) *
                 static_cast<double>(rows[2]);
  if (static_cast<double>(starts.size()) != count + 1 || starts.front() != 0 ||
      starts.back() != static_cast<int64_t>(keys.size()) ||
      !llvm::is_sorted(starts)) {
    return emitError() << "expected 'starts' to ascend from 0 to the number of "
                          "'keys', "
                       << keys.size() << ", with one entry per row and one "
                       << "more, got " << starts.size() << " entries";
  }
  for (size_t row = 0; row + 1 < starts.size(); ++row) {
    ArrayRef<int64_t> kept =
        keys.slice(starts[row], starts[row + 1] - starts[row]);
    bool ascends = std::adjacent_find(kept.begin(), kept.end(),
                                      std::greater_equal<>()) == kept.end();
    if (!ascends || (!kept.empty() && kept.front() < 0)) {
      return emitError() << "expected the 'keys' of row " << row
                         << " to ascend from at least 0, got [" << kept << "]";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// #attn.tile_map: linear expressions
//===----------------------------------------------------------------------===//

namespace {
/// A sum of multiples of variables and a constant, in order of appearance.
struct LinearSum {
  SmallVector<std::pair<AffineExpr, int64_t>> terms;
  int64_t constant = 0;
};
} // namespace

static bool addTo(LinearSum &sum, AffineExpr expr, int64_t factor) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant += factor * constant.getValue();
    return true;
  }
  if (isa<AffineDimExpr, AffineSymbolExpr>(expr)) {
    auto *known = llvm::find_if(
        sum.terms, [&](const auto &term) { return term.first == expr; });
    if (known != sum.terms.end()) {
      known->second += factor;
    } else {
      sum.terms.push_back({expr, factor});
    }
    return true;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (expr.getKind() == AffineExprKind::Add) {
    return addTo(sum, binary.getLHS(), factor) &&
           addTo(sum, binary.getRHS(), factor);
  }
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul && constant &&
         addTo(sum, binary.getLHS(), factor * constant.getValue());
}

static void printLinear(raw_ostream &os, AffineExpr expr,
                        ArrayRef<StringAttr> symbols) {
  LinearSum sum;
  addTo(sum, expr, 1);
  bool first = true;
  // Negating as unsigned: the least number has no opposite.
  auto sign = [&](int64_t value) -> uint64_t {
    if (first) {
      os << (value < 0 ? "-" : "");
    } else {
      os << (value < 0 ? " - " : " + ");
    }
    first = false;
    return value < 0 ? -static_cast<uint64_t>(value) : value;
  };
  for (auto [variable, factor] : sum.terms) {
    if (factor == 0) {
      continue;
    }
    uint64_t magnitude = sign(factor);
    if (magnitude != 1) {
      os << magnitude << " * ";
    }
    if (auto dim = dyn_cast<AffineDimExpr>(variable)) {
      os << "i" << dim.getPosition();
      continue;
    }
    unsigned place = cast<AffineSymbolExpr>(variable).getPosition();
    os << (place == 0   ? StringRef("Nq")
           : place == 1 ? StringRef("Nk")
                        : symbols[place - 2].getValue());
  }
  if (sum.constant != 0 || first) {
    os << sign(sum.constant);
  }
}

//===----------------------------------------------------------------------===//
// #attn.tile_map
//===----------------------------------------------------------------------===//

static constexpr std::pair<TileTest, StringLiteral> kTests[] = {
    {TileTest::Document, "document"},
    {TileTest::BlockSparse, "block_sparse"},
    {TileTest::MaskMod, "mask_mod"},
    {TileTest::Prefix, "prefix"}};

namespace {
class TileMapParser {
public:
  explicit TileMapParser(AsmParser &parser) : parser(parser) {
    MLIRContext *context = parser.getContext();
    names = {{"i0", getAffineDimExpr(0, context)},
             {"i1", getAffineDimExpr(1, context)},
             {"Nq", getAffineSymbolExpr(0, context)},
             {"Nk", getAffineSymbolExpr(1, context)}};
  }

  ParseResult parseSymbols() {
    return parser.parseCommaSeparatedList(
        AsmParser::Delimiter::Square, [&]() -> ParseResult {
          StringRef name;
          if (parser.parseKeyword(&name)) {
            return failure();
          }
          symbols.push_back(StringAttr::get(parser.getContext(), name));
          names.push_back(
              {symbols.back().getValue(),
               getAffineSymbolExpr(symbols.size() + 1, parser.getContext())});
          return success();
        });
  }

  ParseResult parseTerm() {
    TileTerm term;
    if (parser.parseLBrace() || parser.parseKeyword("touched") ||
        parser.parseEqual() ||
        parseInterval(term.touchedLower, term.touchedUpper) ||
        parser.parseComma() || parser.parseKeyword("full") ||
        parser.parseEqual()) {
      return failure();
    }
    if (failed(parser.parseOptionalKeyword("none")) &&
        parseInterval(term.fullLower, term.fullUpper)) {
      return failure();
    }
    if (succeeded(parser.parseOptionalComma()) &&
        (parser.parseKeyword("tests") || parser.parseEqual() ||
         parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parseTest(term); }))) {
      return failure();
    }
    terms.push_back(term);
    return parser.parseRBrace();
  }

  SmallVector<StringAttr> symbols;
  SmallVector<TileTerm> terms;

private:
  ParseResult parseTest(TileTerm &term) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword)) {
      return failure();
    }
    for (auto [test, name] : kTests) {
      if (name == keyword) {
        term.tests |= static_cast<unsigned>(test);
        return success();
      }
    }
    return parser.emitError(loc)
           << "unknown test '" << keyword
           << "'; supported: document, block_sparse, mask_mod, prefix";
  }

  ParseResult parseBound(StringRef function, AffineMap &map) {
    SmallVector<AffineExpr> results;
    auto parseOne = [&] {
      return parser.parseAffineExpr(names, results.emplace_back());
    };
    if (succeeded(parser.parseOptionalKeyword(function))) {
      if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                         parseOne)) {
        return failure();
      }
    } else if (parseOne()) {
      return failure();
    }
    map = AffineMap::get(2, names.size() - 2, results, parser.getContext());
    return success();
  }

  ParseResult parseInterval(AffineMap &lower, AffineMap &upper) {
    return failure(parseBound("max", lower) || parser.parseKeyword("to") ||
                   parseBound("min", upper));
  }

  AsmParser &parser;
  SmallVector<std::pair<StringRef, AffineExpr>> names;
};
} // namespace

Attribute TileMapAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword)) {
    return {};
  }
  std::optional<TileClass> tileClass = symbolizeTileClass(keyword);
  if (!tileClass) {
    parser.emitError(loc) << "unknown class '" << keyword
                          << "'; supported: empty, full, partial, unknown";
    return {};
  }
  TileMapParser body(parser);
  SmallVector<BlockListsAttr> tables;
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("symbols"))) {
      if (parser.parseEqual() || body.parseSymbols()) {
        return {};
      }
    } else if (succeeded(parser.parseOptionalKeyword("tables"))) {
      if (parser.parseEqual() ||
          parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
            return parser.parseAttribute(tables.emplace_back());
          })) {
        return {};
      }
    } else if (parser.parseCommaSeparatedList(
                   AsmParser::Delimiter::Square,
                   [&] { return body.parseTerm(); })) {
      return {};
    }
  }
  if (parser.parseGreater()) {
    return {};
  }
  return parser.getChecked<TileMapAttr>(
      loc, parser.getContext(), *tileClass, ArrayRef<StringAttr>(body.symbols),
      ArrayRef<TileTerm>(body.terms), ArrayRef<BlockListsAttr>(tables));
}

void TileMapAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  auto bound = [&](StringRef function, AffineMap map) {
    bool several = map.getNumResults() != 1;
    os << (several ? function : "") << (several ? "(" : "");
    llvm::interleaveComma(map.getResults(), os, [&](AffineExpr expr) {
      printLinear(os, expr, getSymbols());
    });
    os << (several ? ")" : "");
  };
  auto interval = [&](AffineMap lower, AffineMap upper) {
    bound("max", lower);
    os << " to ";
    bound("min", upper);
  };
  os << "<" << stringifyTileClass(getTileClass());
  if (!getSymbols().empty()) {
    os << ", symbols = [";
    llvm::interleaveComma(getSymbols(), os,
                          [&](StringAttr name) { os << name.getValue(); });
    os << "]";
  }
  if (!getTerms().empty()) {
    os << ", [";
    llvm::interleaveComma(getTerms(), os, [&](const TileTerm &term) {
      os << "{touched = ";
      interval(term.touchedLower, term.touchedUpper);
      os << ", full = ";
      if (term.hasFull()) {
        interval(term.fullLower, term.fullUpper);
      } else {
        os << "none";
      }
      if (term.tests) {
        StringRef separator = ", tests = [";
        for (auto [test, name] : kTests) {
          if (term.tests & static_cast<unsigned>(test)) {
            os << separator << name;
            separator = ", ";
          }
        }
        os << "]";
      }
      os << "}";
    });
    os << "]";
  }
  if (!getTables().empty()) {
    os << ", tables = [";
    llvm::interleaveComma(getTables(), os, [&](BlockListsAttr table) {
      printer.printAttribute(table);
    });
    os << "]";
  }
  os << ">";
}

LogicalResult TileMapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  TileClass, ArrayRef<StringAttr> symbols,
                                  ArrayRef<TileTerm> terms,
                                  ArrayRef<BlockListsAttr>) {
  for (auto [place, symbol] : llvm::enumerate(symbols)) {
    StringRef name = symbol.getValue();
    bool isWord = !name.empty() && llvm::isAlpha(name.front()) &&
                  llvm::all_of(name, [](char c) { return llvm::isAlnum(c); });
    if (!isWord || llvm::is_contained({"i0", "i1", "Nq", "Nk"}, name) ||
        llvm::is_contained(symbols.take_front(place), symbol)) {
      return emitError() << "expected symbols to be distinct words other than "
                            "i0, i1, Nq and Nk, got '"
                         << name << "'";
    }
  }
  for (const TileTerm &term : terms) {
    for (AffineMap map : {term.touchedLower, term.touchedUpper, term.fullLower,
                          term.fullUpper}) {
      if (!map) {
        continue;
      }
      if (map.getNumResults() == 0 || map.getNumDims() != 2 ||
          map.getNumSymbols() != symbols.size() + 2) {
        return emitError() << "expected bounds over (i0, i1)[Nq, Nk] and the "
                           << symbols.size()
                           << " symbols listed ahead of the terms, got "
                           << AffineMapAttr::get(map);
      }
      for (AffineExpr expr : map.getResults()) {
        LinearSum sum;
        if (!addTo(sum, expr, 1)) {
          std::string text;
          llvm::raw_string_ostream(text) << expr;
          return emitError()
                 << "expected bounds that are sums of multiples, got " << text;
        }
      }
    }
  }
  return success();
}
