//===- AttnDialect.cpp - registration, types and attributes ----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace attnfuse::attn;

#include "AttnFuse/Dialect/Attn/IR/AttnDialect.cpp.inc"
#include "AttnFuse/Dialect/Attn/IR/AttnEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static ParseResult parseScoreShape(AsmParser &parser,
                                   SmallVector<int64_t> &shape) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/true,
                                /*withTrailingX=*/false)) {
    return failure();
  }
  if (shape.size() != 4) {
    return parser.emitError(loc)
           << "expected 4 extents (batch, heads, queries, keys), got "
           << shape.size();
  }
  return success();
}

static void printScoreShape(AsmPrinter &printer, ArrayRef<int64_t> shape) {
  printer.printDimensionList(shape);
}

static LogicalResult
verifyScoreShape(function_ref<InFlightDiagnostic()> emitError,
                 ArrayRef<int64_t> shape) {
  if (shape.size() != 4) {
    return emitError()
           << "expected 4 extents (batch, heads, queries, keys), got "
           << shape.size();
  }
  if (ShapedType::isDynamic(shape[1])) {
    return emitError() << "the number of heads has to be static";
  }
  return success();
}

LogicalResult ScoresType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape) {
  return verifyScoreShape(emitError, shape);
}

LogicalResult WeightsType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> shape) {
  return verifyScoreShape(emitError, shape);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static ParseResult parseDouble(AsmParser &parser, double &value) {
  bool negative = succeeded(parser.parseOptionalMinus());
  int64_t integer;
  OptionalParseResult asInteger = parser.parseOptionalInteger(integer);
  if (asInteger.has_value()) {
    if (failed(*asInteger)) {
      return failure();
    }
    value = static_cast<double>(integer);
  } else if (parser.parseFloat(value)) {
    return failure();
  }
  if (negative) {
    value = -value;
  }
  return success();
}

Attribute RopeScalingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword)) {
    return {};
  }
  std::optional<RopeScalingKind> kind = symbolizeRopeScalingKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "unknown rope scaling '" << keyword
                          << "'; supported: linear, ntk, yarn, llama3";
    return {};
  }
  bool isYarn = *kind == RopeScalingKind::Yarn;
  double factor = 1, low = 1, high = isYarn ? 32 : 4, attention = 0;
  int64_t original = 0;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef field;
    SMLoc fieldLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&field) || parser.parseEqual()) {
      return {};
    }
    ParseResult result = success();
    if (field == "factor") {
      result = parseDouble(parser, factor);
    } else if (field == "original") {
      result = parser.parseInteger(original);
    } else if (field == "low") {
      result = parseDouble(parser, low);
    } else if (field == "high") {
      result = parseDouble(parser, high);
    } else if (field == "attention") {
      result = parseDouble(parser, attention);
    } else {
      parser.emitError(fieldLoc)
          << "unknown field '" << field
          << "'; supported: factor, original, low, high, attention";
      return {};
    }
    if (result) {
      return {};
    }
  }
  if (parser.parseGreater()) {
    return {};
  }
  if (isYarn && attention == 0) {
    attention = factor > 1 ? 0.1 * std::log(factor) + 1 : 1;
  }
  return parser.getChecked<RopeScalingAttr>(
      loc, parser.getContext(), *kind, APFloat(factor), original, APFloat(low),
      APFloat(high), APFloat(attention));
}

void RopeScalingAttr::print(AsmPrinter &printer) const {
  auto number = [&](StringRef name, double value) {
    printer << ", " << name << " = ";
    printer.printFloat(APFloat(value));
  };
  printer << "<" << stringifyRopeScalingKind(getKind());
  number("factor", getFactor());
  if (getOriginal()) {
    printer << ", original = " << getOriginal();
  }
  if (getKind() == RopeScalingKind::Yarn ||
      getKind() == RopeScalingKind::Llama3) {
    number("low", getLow());
    number("high", getHigh());
  }
  if (getKind() == RopeScalingKind::Yarn) {
    number("attention", getAttention());
  }
  printer << ">";
}

LogicalResult
RopeScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        RopeScalingKind kind, APFloat factorValue,
                        int64_t original, APFloat lowValue, APFloat highValue,
                        APFloat attentionValue) {
  double factor = factorValue.convertToDouble();
  double low = lowValue.convertToDouble();
  double high = highValue.convertToDouble();
  double attention = attentionValue.convertToDouble();
  if (!std::isfinite(factor) || factor < 1) {
    return emitError() << "expected a finite factor of at least 1, got "
                       << factor;
  }
  bool needsLength =
      kind == RopeScalingKind::Yarn || kind == RopeScalingKind::Llama3;
  if (needsLength && original < 1) {
    return emitError() << "'" << stringifyRopeScalingKind(kind)
                       << "' scaling needs 'original', the context length of "
                          "training, above 0; got "
                       << original;
  }
  if (needsLength && !(low > 0 && high > low && std::isfinite(high))) {
    return emitError() << "expected 0 < low < high, got low = " << low
                       << ", high = " << high;
  }
  if (!std::isfinite(attention) || attention < 0) {
    return emitError() << "expected a finite attention factor, got "
                       << attention;
  }
  return success();
}

/// Numbers in brackets; may be none, which the generated parser cannot read.
static ParseResult parseIntegerList(AsmParser &parser,
                                    SmallVector<int64_t> &numbers) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(numbers.emplace_back());
  });
}

static void printIntegerList(AsmPrinter &printer, ArrayRef<int64_t> numbers) {
  printer << "[";
  llvm::interleaveComma(numbers, printer);
  printer << "]";
}

#define GET_ATTRDEF_CLASSES
#include "AttnFuse/Dialect/Attn/IR/AttnAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "AttnFuse/Dialect/Attn/IR/AttnTypes.cpp.inc"

void AttnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "AttnFuse/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "AttnFuse/Dialect/Attn/IR/AttnTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "AttnFuse/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
}
