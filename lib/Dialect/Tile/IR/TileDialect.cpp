//===- TileDialect.cpp - registration, types and attributes ----*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Layout.h"
#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attnfuse::tile;

#include "AttnFuse/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "AttnFuse/Dialect/Tile/IR/TileEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static bool isElementType(Type type) {
  return type.isF32() || type.isBF16() || type.isF16() || type.isInteger(64) ||
         type.isInteger(32) || type.isInteger(8) || type.isInteger(1);
}

static LogicalResult
verifyElementType(function_ref<InFlightDiagnostic()> emitError, Type type) {
  if (!isElementType(type)) {
    return emitError() << "expected an element type of f32, bf16, f16, i64, "
                          "i32, i8 or i1, got "
                       << type;
  }
  return success();
}

Type TileType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  Attribute layout;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element)) {
    return {};
  }
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout)) {
    return {};
  }
  if (parser.parseGreater()) {
    return {};
  }
  return parser.getChecked<TileType>(loc, parser.getContext(), shape, element,
                                     layout);
}

void TileType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType();
  if (getLayout()) {
    printer << ", " << getLayout();
  }
  printer << ">";
}

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType,
                               Attribute layout) {
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 ||
      shape[0] > (1 << 16) || shape[1] > (1 << 16)) {
    InFlightDiagnostic diag =
        emitError() << "expected two extents between 1 and 65536, got [";
    llvm::interleaveComma(shape, diag);
    return diag << "]";
  }
  if (auto fragment = dyn_cast_or_null<FragmentAttr>(layout)) {
    FragmentLayout lanes{shape[0], shape[1], fragment.getWarps()};
    if (!lanes.isLegal()) {
      return emitError() << "expected rows in multiples of 16 for each of "
                         << fragment.getWarps()
                         << " warps and columns in multiples of 8 (or an "
                            "extent of 1), got "
                         << shape[0] << "x" << shape[1];
    }
  }
  return verifyElementType(emitError, elementType);
}

Type PendingType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  Attribute layout;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) ||
      (succeeded(parser.parseOptionalComma()) &&
       parser.parseAttribute(layout)) ||
      parser.parseGreater()) {
    return {};
  }
  return PendingType::get(parser.getContext(), shape, element, layout);
}

void PendingType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType();
  if (getLayout()) {
    printer << ", " << getLayout();
  }
  printer << ">";
}

Type RingType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  int64_t swizzle;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseComma() ||
      parser.parseInteger(swizzle) || parser.parseGreater()) {
    return {};
  }
  if (shape.size() != 3) {
    parser.emitError(loc) << "expected stages, rows and columns, got "
                          << shape.size() << " extents";
    return {};
  }
  return parser.getChecked<RingType>(loc, parser.getContext(), shape[0],
                                     shape[1], shape[2], element, swizzle);
}

void RingType::print(AsmPrinter &printer) const {
  printer << "<" << getStages() << "x" << getRows() << "x" << getColumns()
          << "x" << getElementType() << ", " << getSwizzle() << ">";
}

static SlotLayout slotOf(int64_t rows, int64_t columns, Type element,
                         int64_t swizzle) {
  return {rows, columns, element.getIntOrFloatBitWidth() / 8, swizzle};
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t stages, int64_t rows, int64_t columns,
                               Type elementType, int64_t swizzle) {
  if (!isa<Float32Type, BFloat16Type, Float16Type>(elementType)) {
    return emitError() << "expected a ring of f32, bf16 or f16, got "
                       << elementType;
  }
  if (stages < 1 || stages > 8 ||
      !slotOf(rows, columns, elementType, swizzle).isLegal()) {
    return emitError() << "expected 1 to 8 slots of rows in multiples of 8 and "
                          "panels of 32, 64 or 128 bytes that divide the "
                          "columns, got "
                       << stages << "x" << rows << "x" << columns << "x"
                       << elementType << " in panels of " << swizzle;
  }
  return success();
}

int64_t RingType::getSlotBytes() const {
  return slotOf(getRows(), getColumns(), getElementType(), getSwizzle())
      .bytes();
}

Type ViewType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/true) ||
      parser.parseType(element) || parser.parseGreater()) {
    return {};
  }
  return parser.getChecked<ViewType>(loc, parser.getContext(), shape, element);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t size : getShape()) {
    if (ShapedType::isDynamic(size)) {
      printer << "?x";
    } else {
      printer << size << "x";
    }
  }
  printer << getElementType() << ">";
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType) {
  return verifyElementType(emitError, elementType);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t blockM, int64_t blockN,
                                   int64_t warps, int64_t stages,
                                   int64_t registers, int64_t producerRegisters,
                                   int64_t rescale, bool, bool) {
  if (blockM < 1 || blockN < 1) {
    return emitError() << "expected block_m and block_n above 0, got " << blockM
                       << " and " << blockN;
  }
  if (warps < 0 || warps > 32 || stages < 0 || stages > 8 || rescale < 0) {
    return emitError() << "expected 0 to 32 warps, 0 to 8 stages and a rescale "
                          "of at least 0, got "
                       << warps << ", " << stages << " and " << rescale;
  }
  for (int64_t budget : {registers, producerRegisters}) {
    if (budget && (budget < 24 || budget > 256)) {
      return emitError() << "expected register budgets of 24 to 256, got "
                         << budget;
    }
  }
  return success();
}

LogicalResult FragmentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t warps) {
  if (warps < 1 || warps > 32) {
    return emitError() << "expected 1 to 32 warps, got " << warps;
  }
  return success();
}

LogicalResult ExtentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t arg, int64_t dim, int64_t div) {
  if (arg < 0 || dim < 0 || div < 1) {
    return emitError() << "expected arg and dim of at least 0 and div above 0, "
                          "got "
                       << arg << ", " << dim << " and " << div;
  }
  return success();
}

#define GET_ATTRDEF_CLASSES
#include "AttnFuse/Dialect/Tile/IR/TileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "AttnFuse/Dialect/Tile/IR/TileTypes.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "AttnFuse/Dialect/Tile/IR/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "AttnFuse/Dialect/Tile/IR/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "AttnFuse/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}
