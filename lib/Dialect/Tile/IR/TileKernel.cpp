//===- TileKernel.cpp - kernels and their launch ---------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "AttnFuse/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace attnfuse::tile;

//===----------------------------------------------------------------------===//
// kernel
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildFuncType =
      [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
         function_interface_impl::VariadicFlag,
         std::string &) { return builder.getFunctionType(arguments, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildFuncType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult KernelOp::verify() {
  if (!getBody().hasOneBlock()) {
    return emitOpError() << "expected a body of one block, got "
                         << getBody().getBlocks().size();
  }
  if (getFunctionType().getNumResults()) {
    return emitOpError() << "expected no results (outputs are stored to "
                            "views), got "
                         << getFunctionType().getNumResults();
  }
  ArrayRef<Type> arguments = getArgumentTypes();
  for (auto [index, type] : llvm::enumerate(arguments)) {
    if (!isa<ViewType>(type) && !type.isIntOrIndexOrFloat()) {
      return emitOpError() << "expected argument " << index
                           << " to be a view or a scalar, got " << type;
    }
  }
  if (getGrid().empty() || getGrid().size() > 3) {
    return emitOpError() << "expected a grid of 1 to 3 dimensions, got "
                         << getGrid().size();
  }
  for (Attribute attr : getGrid()) {
    auto extent = dyn_cast<ExtentAttr>(attr);
    if (!extent) {
      return emitOpError() << "expected #tile.extent in the grid, got " << attr;
    }
    auto view = extent.getArg() < static_cast<int64_t>(arguments.size())
                    ? dyn_cast<ViewType>(arguments[extent.getArg()])
                    : ViewType();
    if (!view || extent.getDim() >= view.getRank()) {
      return emitOpError() << "has a grid that names dimension "
                           << extent.getDim() << " of argument "
                           << extent.getArg() << ", which does not exist";
    }
  }
  auto outputs = static_cast<int64_t>(getNumOutputs());
  auto count = static_cast<int64_t>(arguments.size());
  if (outputs < 0 || outputs > count) {
    return emitOpError() << "expected between 0 and " << count
                         << " outputs, got " << outputs;
  }
  for (Type type : arguments.take_back(outputs)) {
    if (!isa<ViewType>(type)) {
      return emitOpError() << "expected outputs to be views, got " << type;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// launch
//===----------------------------------------------------------------------===//

/// `%a, %b : typeA, typeB`; the results have the types of the operands.
static ParseResult parseLaunchOuts(
    OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inits,
    SmallVectorImpl<Type> &initTypes, SmallVectorImpl<Type> &outputTypes) {
  if (parser.parseOperandList(inits) || parser.parseColon() ||
      parser.parseTypeList(initTypes)) {
    return failure();
  }
  outputTypes.assign(initTypes.begin(), initTypes.end());
  return success();
}

static void printLaunchOuts(OpAsmPrinter &printer, Operation *,
                            OperandRange inits, TypeRange initTypes,
                            TypeRange) {
  printer << inits << " : " << initTypes;
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getOutputs().getTypes() != getInits().getTypes()) {
    return emitOpError() << "expected results of the types of 'outs'";
  }
  Operation *symbol = symbols.lookupNearestSymbolFrom(*this, getKernelAttr());
  auto kernel = dyn_cast_or_null<KernelOp>(symbol);
  if (!kernel) {
    // A lowered kernel is a function of its target's dialect.
    if (symbol && isa<FunctionOpInterface>(symbol)) {
      return success();
    }
    return emitOpError() << "expected the name of a tile.kernel, got "
                         << getKernelAttr();
  }
  SmallVector<Type> operands(getInputs().getTypes());
  llvm::append_range(operands, getInits().getTypes());
  ArrayRef<Type> arguments = kernel.getArgumentTypes();
  if (operands.size() != arguments.size()) {
    return emitOpError() << "expected " << arguments.size() << " operands for "
                         << getKernelAttr() << ", got " << operands.size();
  }
  for (auto [index, operand, argument] : llvm::enumerate(operands, arguments)) {
    auto tensor = dyn_cast<RankedTensorType>(operand);
    auto view = dyn_cast<ViewType>(argument);
    bool matches = tensor && view
                       ? tensor.getElementType() == view.getElementType() &&
                             tensor.getRank() == view.getRank() &&
                             succeeded(verifyCompatibleShape(tensor.getShape(),
                                                             view.getShape()))
                       : operand == argument;
    if (!matches) {
      return emitOpError() << "expected operand " << index << " to fit "
                           << argument << ", got " << operand;
    }
  }
  if (getInits().size() != kernel.getNumOutputs()) {
    return emitOpError() << "expected " << kernel.getNumOutputs()
                         << " outputs for " << getKernelAttr() << ", got "
                         << getInits().size();
  }
  return success();
}

#define GET_OP_CLASSES
#include "AttnFuse/Dialect/Tile/IR/TileOps.cpp.inc"
