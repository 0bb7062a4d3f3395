//===- NVVMToLLVM.cpp - kernels to the llvm dialect ------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tiles are unrolled here: a kernel has ten thousand operations, nearly all of
// them scalar arithmetic with exactly one counterpart in the llvm dialect.
// These are replaced one by one, in one walk: the passes of MLIR, each of which
// looks at all operations with a driver that can take back what it did, spend
// more time on a kernel than LLVM does. What the walk has no entry for goes
// through MLIR's patterns, which visit only what needs them.
//
//===----------------------------------------------------------------------===//

#include "AttnFuse/Target/NVPTX/NVPTX.h"

#include "mlir/Conversion/ArithCommon/AttrToLLVMConverter.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Approximation.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// Operations with one counterpart
//===----------------------------------------------------------------------===//

namespace {
/// Makes the counterpart of an operation in front of it, or returns null if
/// this one, with a flag that is rarely seen, has to take the general way.
using Replacement = Operation *(*)(OpBuilder &, Operation *);

using Replacements = llvm::DenseMap<TypeID, Replacement>;
} // namespace

template <typename To> static Operation *make(OpBuilder &b, Operation *op) {
  return To::create(b, op->getLoc(), op->getResultTypes(), op->getOperands(),
                    ArrayRef<NamedAttribute>());
}

/// No flags at all.
template <typename From, typename To>
static Operation *plain(OpBuilder &b, Operation *op) {
  return make<To>(b, op);
}

/// `exact`, which nothing here sets.
template <typename From, typename To>
static Operation *exact(OpBuilder &b, Operation *op) {
  return cast<From>(op).getIsExact() ? nullptr : make<To>(b, op);
}

template <typename From, typename To>
static Operation *overflow(OpBuilder &b, Operation *op) {
  auto made = cast<To>(make<To>(b, op));
  made.setOverflowFlags(arith::convertArithOverflowFlagsToLLVM(
      cast<From>(op).getOverflowFlags()));
  return made;
}

template <typename From, typename To>
static Operation *fast(OpBuilder &b, Operation *op) {
  auto made = cast<To>(make<To>(b, op));
  made.setFastmathFlags(
      arith::convertArithFastMathFlagsToLLVM(cast<From>(op).getFastmath()));
  return made;
}

static Operation *constant(OpBuilder &b, Operation *op) {
  auto value = cast<arith::ConstantOp>(op);
  return LLVM::ConstantOp::create(b, op->getLoc(), value.getType(),
                                  value.getValue());
}

static Operation *truncateFloat(OpBuilder &b, Operation *op) {
  auto truncation = cast<arith::TruncFOp>(op);
  bool flags = truncation.getRoundingmode() ||
               truncation.getFastmath() != arith::FastMathFlags::none;
  return flags ? nullptr : make<LLVM::FPTruncOp>(b, op);
}

static Operation *compareIntegers(OpBuilder &b, Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  // Both dialects number predicates alike.
  auto predicate = static_cast<LLVM::ICmpPredicate>(compare.getPredicate());
  return LLVM::ICmpOp::create(b, op->getLoc(), predicate, compare.getLhs(),
                              compare.getRhs());
}

static Operation *compareFloats(OpBuilder &b, Operation *op) {
  auto compare = cast<arith::CmpFOp>(op);
  auto predicate = static_cast<LLVM::FCmpPredicate>(compare.getPredicate());
  return LLVM::FCmpOp::create(
      b, op->getLoc(), predicate, compare.getLhs(), compare.getRhs(),
      arith::convertArithFastMathFlagsToLLVM(compare.getFastmath()));
}

static Operation *branch(OpBuilder &b, Operation *op) {
  auto jump = cast<cf::BranchOp>(op);
  return LLVM::BrOp::create(b, op->getLoc(), jump.getDestOperands(),
                            jump.getDest());
}

static Operation *conditionalBranch(OpBuilder &b, Operation *op) {
  auto jump = cast<cf::CondBranchOp>(op);
  return LLVM::CondBrOp::create(b, op->getLoc(), jump.getCondition(),
                                jump.getTrueDest(), jump.getTrueDestOperands(),
                                jump.getFalseDest(),
                                jump.getFalseDestOperands());
}

static const Replacements &replacements() {
  static const Replacements table = [] {
    Replacements map;
    auto add = [&](TypeID id, Replacement replacement) {
      map.try_emplace(id, replacement);
    };
#define REPLACE(KIND, FROM, TO) add(TypeID::get<FROM>(), KIND<FROM, LLVM::TO>)
    REPLACE(overflow, arith::AddIOp, AddOp);
    REPLACE(overflow, arith::SubIOp, SubOp);
    REPLACE(overflow, arith::MulIOp, MulOp);
    REPLACE(overflow, arith::ShLIOp, ShlOp);
    REPLACE(overflow, arith::TruncIOp, TruncOp);
    REPLACE(exact, arith::DivSIOp, SDivOp);
    REPLACE(exact, arith::DivUIOp, UDivOp);
    REPLACE(exact, arith::ShRSIOp, AShrOp);
    REPLACE(exact, arith::ShRUIOp, LShrOp);
    REPLACE(plain, arith::ExtUIOp, ZExtOp);
    REPLACE(plain, arith::UIToFPOp, UIToFPOp);
    REPLACE(plain, arith::RemSIOp, SRemOp);
    REPLACE(plain, arith::RemUIOp, URemOp);
    REPLACE(plain, arith::AndIOp, AndOp);
    REPLACE(plain, arith::OrIOp, OrOp);
    REPLACE(plain, arith::XOrIOp, XOrOp);
    REPLACE(plain, arith::MaxSIOp, SMaxOp);
    REPLACE(plain, arith::MinSIOp, SMinOp);
    REPLACE(plain, arith::MaxUIOp, UMaxOp);
    REPLACE(plain, arith::MinUIOp, UMinOp);
    REPLACE(plain, arith::ExtSIOp, SExtOp);
    REPLACE(plain, arith::SIToFPOp, SIToFPOp);
    REPLACE(plain, arith::FPToSIOp, FPToSIOp);
    REPLACE(plain, arith::FPToUIOp, FPToUIOp);
    REPLACE(plain, arith::BitcastOp, BitcastOp);
    REPLACE(plain, arith::SelectOp, SelectOp);
    REPLACE(fast, arith::AddFOp, FAddOp);
    REPLACE(fast, arith::SubFOp, FSubOp);
    REPLACE(fast, arith::MulFOp, FMulOp);
    REPLACE(fast, arith::DivFOp, FDivOp);
    REPLACE(fast, arith::NegFOp, FNegOp);
    REPLACE(plain, arith::ExtFOp, FPExtOp);
    REPLACE(fast, math::FmaOp, FMAOp);
    REPLACE(fast, math::AbsFOp, FAbsOp);
#undef REPLACE
    add(TypeID::get<arith::ConstantOp>(), constant);
    add(TypeID::get<arith::TruncFOp>(), truncateFloat);
    add(TypeID::get<arith::CmpIOp>(), compareIntegers);
    add(TypeID::get<arith::CmpFOp>(), compareFloats);
    add(TypeID::get<cf::BranchOp>(), branch);
    add(TypeID::get<cf::CondBranchOp>(), conditionalBranch);
    return map;
  }();
  return table;
}

static bool isOf(Operation *op, StringRef dialect) {
  return op->getName().getDialectNamespace() == dialect;
}

/// True for vectors and tensors too, which the table is not made for.
static bool hasReplacement(Operation *op) {
  return replacements().contains(op->getName().getTypeID()) &&
         llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct LowerKernelsPass
    : public PassWrapper<LowerKernelsPass, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerKernelsPass)

  StringRef getArgument() const override { return "attnfuse-lower-kernels"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect,
                math::MathDialect, NVVM::NVVMDialect, vector::VectorDialect>();
  }
  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  LogicalResult expand(ArrayRef<Operation *> functions);
  LogicalResult apply(ArrayRef<Operation *> ops,
                      const FrozenRewritePatternSet &patterns);
  LogicalResult convertRest();

  FrozenRewritePatternSet controlFlow, assembly;
};
} // namespace

LogicalResult LowerKernelsPass::initialize(MLIRContext *context) {
  RewritePatternSet structured(context), instructions(context);
  populateSCFToControlFlowConversionPatterns(structured);
  populateNVVMToLLVMConversionPatterns(instructions);
  controlFlow = std::move(structured);
  assembly = std::move(instructions);
  return success();
}

/// Functions that the chip has no instruction for, as polynomials in f32 (there
/// is no library of device code to call), and what arith itself expands.
LogicalResult LowerKernelsPass::expand(ArrayRef<Operation *> functions) {
  RewritePatternSet patterns(&getContext());
  math::populateExpansionPatterns(
      patterns, {"tan", "sinh", "cosh", "asinh", "acosh", "atanh", "powf",
                 "fpowi", "exp2f", "roundeven", "clampf", "ipowi"});
  populateMathPolynomialApproximationPatterns(patterns);
  arith::populateArithExpandOpsPatterns(patterns);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  return applyOpPatternsGreedily(functions, std::move(patterns), config);
}

/// Rewrites each of `ops`, of which none is rewritten by another's pattern.
LogicalResult LowerKernelsPass::apply(ArrayRef<Operation *> ops,
                                      const FrozenRewritePatternSet &patterns) {
  PatternApplicator applicator(patterns);
  applicator.applyDefaultCostModel();
  PatternRewriter rewriter(&getContext());
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    if (failed(applicator.matchAndRewrite(op, rewriter))) {
      return op->emitOpError("has no counterpart on a GPU");
    }
  }
  return success();
}

LogicalResult LowerKernelsPass::convertRest() {
  LLVMTypeConverter types(&getContext());
  RewritePatternSet patterns(&getContext());
  populateMathToLLVMConversionPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  LLVMConversionTarget target(getContext());
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addIllegalDialect<arith::ArithDialect, math::MathDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  ConversionConfig config;
  config.allowPatternRollback = false;
  return applyPartialConversion(getOperation(), target, std::move(patterns),
                                config);
}

void LowerKernelsPass::runOnOperation() {
  SmallVector<Operation *> structured, functions, instructions;
  getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isOf(op, "scf")) {
      if (op->getNumRegions()) {
        structured.push_back(op);
      }
    } else if (isOf(op, "arith") || isOf(op, "math")) {
      if (!hasReplacement(op)) {
        functions.push_back(op);
      }
    } else if (auto ptx = dyn_cast<NVVM::BasicPtxBuilderInterface>(op)) {
      if (!ptx.hasIntrinsic()) {
        instructions.push_back(op);
      }
    }
  });
  if (!functions.empty() && failed(expand(functions))) {
    return signalPassFailure();
  }
  if (failed(apply(structured, controlFlow))) {
    return signalPassFailure();
  }
  bool rest = false;
  OpBuilder b(&getContext());
  for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
    for (Block &block : function.getBody()) {
      for (Operation &op : llvm::make_early_inc_range(block)) {
        b.setInsertionPoint(&op);
        if (Operation *made =
                hasReplacement(&op)
                    ? replacements().lookup(op.getName().getTypeID())(b, &op)
                    : nullptr) {
          op.replaceAllUsesWith(made);
          op.erase();
        } else {
          rest |= isOf(&op, "arith") || isOf(&op, "math");
        }
      }
    }
  }
  if (rest && failed(convertRest())) {
    return signalPassFailure();
  }
  if (failed(apply(instructions, assembly))) {
    return signalPassFailure();
  }
}

void attnfuse::buildNVVMToLLVMPipeline(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createCSEPass());
  kernels.addPass(std::make_unique<LowerKernelsPass>());
}
