//===- Programs.cpp - generated attention programs -------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include <algorithm>
#include <cassert>

using namespace attnfuse::test;

namespace {

enum class Kind { Rope, Score, Mask, Normaliser };

/// What a word stands for. In the text, @Q and @K are the tensors' types, @S
/// and @W those of scores and weights, %x the value that comes in, @H the
/// number of heads and @R a rotary width.
struct Piece {
  const char *word;
  Kind kind;
  const char *text;
  std::vector<ExtraArgument> extras;
};

const std::vector<Piece> &table() {
  static const std::vector<Piece> pieces = {
      {"rope", Kind::Rope, "attn.rope %x : @T", {}},
      {"rope_interleaved",
       Kind::Rope,
       "attn.rope %x interleaved {rotary_dim = @R : i64} : @T",
       {}},
      {"rope_partial",
       Kind::Rope,
       "attn.rope %x {rotary_dim = @R : i64, base = 500000.0 : f64, position = "
       "11 : i64} : @T",
       {}},
      {"rope_yarn",
       Kind::Rope,
       "attn.rope %x {scaling = #attn.rope_scaling<yarn, factor = 4.0, "
       "original = 128>} : @T",
       {}},
      {"rope_llama3",
       Kind::Rope,
       "attn.rope %x {scaling = #attn.rope_scaling<llama3, factor = 8.0, "
       "original = 256, low = 1.0, high = 4.0>} : @T",
       {}},
      {"rope_linear",
       Kind::Rope,
       "attn.rope %x {scaling = #attn.rope_scaling<linear, factor = 2.0>} : @T",
       {}},
      {"rope_ntk",
       Kind::Rope,
       "attn.rope %x {scaling = #attn.rope_scaling<ntk, factor = 3.0>} : @T",
       {}},
      {"rope_offset",
       Kind::Rope,
       "attn.rope %x at %pos : index : @T",
       {{"pos", "index", "value 511"}}},
      {"rope_batch_offset",
       Kind::Rope,
       "attn.rope %x at %starts : tensor<@Bxi32> : @T",
       {{"starts", "tensor<@Bxi32>", "randint 0 700"}}},
      {"rope_tables",
       Kind::Rope,
       "attn.rope %x tables(%cos, %sin : tensor<1024x@Pxf32>, "
       "tensor<1024x@Pxf32>) {rotary_dim = @R : i64} : @T",
       {{"cos", "tensor<1024x@Pxf32>", "unit"},
        {"sin", "tensor<1024x@Pxf32>", "unit"}}},

      {"alibi", Kind::Score, "attn.alibi %x : @S", {}},
      {"alibi_slopes",
       Kind::Score,
       "attn.alibi %x slopes(%slopes : tensor<@Hxf32>) : @S",
       {{"slopes", "tensor<@Hxf32>", "unit"}}},
      {"bias",
       Kind::Score,
       "attn.additive_bias %x, %bias : @S, tensor<@Bx@Hx?x?x@E>",
       {{"bias", "tensor<@Bx@Hx?x?x@E>", "normal"}}},
      {"bias_heads",
       Kind::Score,
       "attn.additive_bias %x, %hbias : @S, tensor<1x@Hx?x?xf32>",
       {{"hbias", "tensor<1x@Hx?x?xf32>", "normal"}}},
      {"bias_keys",
       Kind::Score,
       "attn.additive_bias %x, %kbias : @S, tensor<@Bx1x1x?x@E>",
       {{"kbias", "tensor<@Bx1x1x?x@E>", "normal"}}},
      {"bias_queries",
       Kind::Score,
       "attn.additive_bias %x, %qbias : @S, tensor<1x1x?x1xf32>",
       {{"qbias", "tensor<1x1x?x1xf32>", "normal"}}},
      {"bias_infinite",
       Kind::Score,
       "attn.additive_bias %x, %ibias : @S, tensor<1x1x?x?xf32>",
       {{"ibias", "tensor<1x1x?x?xf32>", "infinite"}}},
      {"bias_lowest",
       Kind::Score,
       "attn.additive_bias %x, %lbias : @S, tensor<1x1x?x?xf32>",
       {{"lbias", "tensor<1x1x?x?xf32>", "lowest"}}},
      {"softcap", Kind::Score, "attn.softcap %x cap 5.0 : @S", {}},
      {"score_mod",
       Kind::Score,
       "attn.score_mod %x : @S {\n"
       "  ^bb0(%a: f32, %b: index, %h: index, %i: index, %j: index):\n"
       "    %d = arith.subi %i, %j : index\n"
       "    %di = arith.index_cast %d : index to i32\n"
       "    %df = arith.sitofp %di : i32 to f32\n"
       "    %c = arith.constant 0.01 : f32\n"
       "    %sn = math.sin %df : f32\n"
       "    %t = arith.mulf %sn, %c : f32\n"
       "    %y = arith.addf %a, %t : f32\n"
       "    attn.yield %y : f32\n  }",
       {}},
      {"score_mod_table",
       Kind::Score,
       "attn.score_mod %x : @S {\n"
       "  ^bb0(%a: f32, %b: index, %h: index, %i: index, %j: index):\n"
       "    %d = arith.subi %i, %j : index\n"
       "    %c32 = arith.constant 32 : index\n"
       "    %c63 = arith.constant 63 : index\n"
       "    %c0 = arith.constant 0 : index\n"
       "    %d1 = arith.addi %d, %c32 : index\n"
       "    %d2 = arith.maxsi %d1, %c0 : index\n"
       "    %d3 = arith.minsi %d2, %c63 : index\n"
       "    %t = tensor.extract %buckets[%h, %d3] : tensor<@Hx64xf32>\n"
       "    %y = arith.addf %a, %t : f32\n"
       "    attn.yield %y : f32\n  }",
       {{"buckets", "tensor<@Hx64xf32>", "normal"}}},

      {"full", Kind::Mask, "attn.full", {}},
      {"causal", Kind::Mask, "attn.causal", {}},
      {"causal_top_left", Kind::Mask, "attn.causal top_left", {}},
      {"causal_offset",
       Kind::Mask,
       "attn.causal offset(%first : index)",
       {{"first", "index", "value 3"}}},
      {"causal_shift", Kind::Mask, "attn.causal shift -2", {}},
      {"window", Kind::Mask, "attn.sliding_window left 16 right 1", {}},
      {"window_wide", Kind::Mask, "attn.sliding_window left 100 right 30", {}},
      {"window_top_left",
       Kind::Mask,
       "attn.sliding_window left 5 right 9 top_left",
       {}},
      {"block_sparse",
       Kind::Mask,
       "attn.block_sparse %blocks blocks [16, 32] : tensor<1x@Hx?x?xi1>",
       {{"blocks", "tensor<1x@Hx?x?xi1>", "blocks 16 32"}}},
      {"block_sparse_wide",
       Kind::Mask,
       "attn.block_sparse %wide blocks [64, 64] : tensor<@Bx1x?x?xi8>",
       {{"wide", "tensor<@Bx1x?x?xi8>", "blocks 64 64"}}},
      {"document",
       Kind::Mask,
       "attn.document %qids, %kids : tensor<@Bx?xi32>, tensor<@Bx?xi32>",
       {{"qids", "tensor<@Bx?xi32>", "documents 37"},
        {"kids", "tensor<@Bx?xi32>", "documents 37"}}},
      {"prefix", Kind::Mask, "attn.prefix 20", {}},
      {"prefix_lengths",
       Kind::Mask,
       "attn.prefix lengths(%lengths : tensor<@Bxi32>)",
       {{"lengths", "tensor<@Bxi32>", "randint 1 60"}}},
      {"mask_mod",
       Kind::Mask,
       "attn.mask_mod {\n"
       "  ^bb0(%b: index, %h: index, %i: index, %j: index):\n"
       "    %s = arith.addi %i, %j : index\n"
       "    %c3 = arith.constant 3 : index\n"
       "    %r = arith.remui %s, %c3 : index\n"
       "    %c0 = arith.constant 0 : index\n"
       "    %p = arith.cmpi ne, %r, %c0 : index\n"
       "    attn.yield %p : i1\n  }",
       {}},
      {"mask_mod_table",
       Kind::Mask,
       "attn.mask_mod {\n"
       "  ^bb0(%b: index, %h: index, %i: index, %j: index):\n"
       "    %p = tensor.extract %valid[%b, %j] : tensor<@Bx?xi1>\n"
       "    attn.yield %p : i1\n  }",
       {{"valid", "tensor<@Bx?xi1>", "keys bernoulli"}}},
      {"not_window", Kind::Mask, "NOT attn.sliding_window left 8 right 3", {}},
      {"not_document",
       Kind::Mask,
       "NOT attn.document %nq, %nk : tensor<1x?xi32>, tensor<1x?xi32>",
       {{"nq", "tensor<1x?xi32>", "documents 50"},
        {"nk", "tensor<1x?xi32>", "documents 50"}}},
      {"prefix_lm", Kind::Mask, "OR attn.causal|attn.prefix 20", {}},
      {"global_window",
       Kind::Mask,
       "OR attn.sliding_window left 9 right 9|attn.prefix 4",
       {}},
      {"two_bands",
       Kind::Mask,
       "OR attn.causal shift -40|NOT attn.causal shift 40",
       {}},
      {"nothing", Kind::Mask, "NOT attn.full", {}},

      {"softmax", Kind::Normaliser, "attn.softmax %x : @S", {}},
      {"softmax_lse", Kind::Normaliser, "attn.softmax %x lse : @S", {}},
      {"softmax_sinks",
       Kind::Normaliser,
       "attn.softmax %x sinks(%sinks : tensor<@Hxf32>) lse : @S",
       {{"sinks", "tensor<@Hxf32>", "normal"}}},
      {"relu", Kind::Normaliser, "attn.relu_attention %x : @S", {}},
      {"relu_mean", Kind::Normaliser, "attn.relu_attention %x mean : @S", {}}};
  return pieces;
}

void replaceAll(std::string &text, const std::string &from,
                const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Builds the body of a program, one numbered value after the other.
class Writer {
public:
  explicit Writer(const ProgramSpec &spec) : spec(spec) {}

  Program write();

private:
  std::string fill(std::string text, const std::string &tensor = "") {
    int rotary = std::max(2, spec.width / 4 * 2);
    replaceAll(text, "@T", tensor);
    replaceAll(text, "@S",
               "!attn.scores<" + std::to_string(spec.batch) + "x" +
                   std::to_string(spec.queryHeads) + "x?x?>");
    replaceAll(text, "@B", std::to_string(spec.batch));
    replaceAll(text, "@H", std::to_string(spec.queryHeads));
    replaceAll(text, "@R", std::to_string(rotary));
    replaceAll(text, "@P", std::to_string(rotary / 2));
    replaceAll(text, "@E", spec.dtype);
    return text;
  }
  std::string tensor(int heads, int width) {
    return "tensor<" + std::to_string(spec.batch) + "x" +
           std::to_string(heads) + "x?x" + std::to_string(width) + "x" +
           spec.dtype + ">";
  }
  std::string emit(std::string text, const std::string &input = "") {
    replaceAll(text, "%x", input);
    std::string name = "%v" + std::to_string(count++);
    body += "  " + name + " = " + text + "\n";
    return name;
  }
  std::string emitMask(const std::string &text) {
    if (text.rfind("NOT ", 0) == 0) {
      return emit("attn.not " + emitMask(text.substr(4)));
    }
    if (text.rfind("OR ", 0) == 0) {
      size_t bar = text.find('|');
      std::string a = emitMask(text.substr(3, bar - 3));
      return emit("attn.or " + a + ", " + emitMask(text.substr(bar + 1)));
    }
    return emit(text);
  }
  void add(const Piece &piece) {
    for (ExtraArgument extra : piece.extras) {
      extra.type = fill(extra.type);
      bool known = std::any_of(
          program.extras.begin(), program.extras.end(),
          [&](const ExtraArgument &other) { return other.name == extra.name; });
      if (!known) {
        program.extras.push_back(extra);
      }
    }
  }

  const ProgramSpec &spec;
  Program program;
  std::string body;
  int count = 0;
};

const Piece &find(const std::string &word) {
  for (const Piece &piece : table()) {
    if (word == piece.word) {
      return piece;
    }
  }
  assert(false && "a word of the table");
  return table().front();
}

Program Writer::write() {
  std::string q = tensor(spec.queryHeads, spec.width);
  std::string k = tensor(spec.keyHeads, spec.width);
  std::string v = tensor(spec.keyHeads, spec.valueWidth);
  std::string queryValue = "%q", keyValue = "%k";
  std::vector<const Piece *> later;
  const Piece *normaliser = &find("softmax");
  for (const std::string &word : spec.pieces) {
    const Piece &piece = find(word);
    add(piece);
    if (piece.kind == Kind::Rope) {
      queryValue = emit(fill(piece.text, q), queryValue);
      keyValue = emit(fill(piece.text, k), keyValue);
    } else if (piece.kind == Kind::Normaliser) {
      normaliser = &piece;
    } else {
      later.push_back(&piece);
    }
  }
  std::string scores = emit("attn.scaled_dot_product " + queryValue + ", " +
                            keyValue + " : " + q + ", " + k);
  for (const Piece *piece : later) {
    if (piece->kind == Kind::Score) {
      scores = emit(fill(piece->text), scores);
    } else {
      std::string mask = emitMask(fill(piece->text));
      scores = emit(fill("attn.mask " + scores + ", " + mask + " : @S"));
    }
  }
  std::string text = fill(normaliser->text);
  bool lse = text.find(" lse ") != std::string::npos;
  replaceAll(text, "%x", scores);
  body += std::string("  %w") + (lse ? ", %lse" : "") + " = " + text + "\n";
  std::string weights = "!attn.weights<" + std::to_string(spec.batch) + "x" +
                        std::to_string(spec.queryHeads) + "x?x?>";
  std::string out = tensor(spec.queryHeads, spec.valueWidth);
  std::string lseType = "tensor<" + std::to_string(spec.batch) + "x" +
                        std::to_string(spec.queryHeads) + "x?xf32>";
  body += "  %o = attn.aggregate %w, %v : " + weights + ", " + v + "\n";
  body += lse ? "  return %o, %lse : " + out + ", " + lseType + "\n"
              : "  return %o : " + out + "\n";
  program.text = "func.func @main(%q: " + q + ", %k: " + k + ", %v: " + v;
  for (const ExtraArgument &extra : program.extras) {
    program.text += ", %" + extra.name + ": " + extra.type;
  }
  program.text += ") -> " + (lse ? "(" + out + ", " + lseType + ")" : out) +
                  " {\n" + body + "}\n";
  return program;
}

} // namespace

std::string ProgramSpec::name() const {
  std::string text;
  for (const std::string &piece : pieces) {
    text += piece + "_";
  }
  return text + dtype + "_h" + std::to_string(queryHeads) + "k" +
         std::to_string(keyHeads) + "_d" + std::to_string(width) + "v" +
         std::to_string(valueWidth);
}

Program attnfuse::test::makeProgram(const ProgramSpec &spec) {
  return Writer(spec).write();
}

std::vector<std::string> attnfuse::test::allPieces() {
  std::vector<std::string> words;
  for (const Piece &piece : table()) {
    words.push_back(piece.word);
  }
  return words;
}
