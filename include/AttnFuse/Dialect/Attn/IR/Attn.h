//===- Attn.h - the attn dialect --------------------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef ATTNFUSE_DIALECT_ATTN_IR_ATTN_H
#define ATTNFUSE_DIALECT_ATTN_IR_ATTN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "AttnFuse/Dialect/Attn/IR/TileTerm.h"

#include "AttnFuse/Dialect/Attn/IR/AttnDialect.h.inc"
#include "AttnFuse/Dialect/Attn/IR/AttnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "AttnFuse/Dialect/Attn/IR/AttnAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "AttnFuse/Dialect/Attn/IR/AttnTypes.h.inc"

#define GET_OP_CLASSES
#include "AttnFuse/Dialect/Attn/IR/AttnOps.h.inc"

#endif // ATTNFUSE_DIALECT_ATTN_IR_ATTN_H
