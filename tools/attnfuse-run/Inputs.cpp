//===- Inputs.cpp - arguments of a program ---------------------*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "AttnFuse/Pipelines/ArgumentNames.h"
#include "AttnFuse/Support/ElementTypes.h"
#include "AttnFuse/Support/TensorIO.h"

#include "llvm/ADT/StringExtras.h"

#include <cctype>
#include <cmath>
#include <set>

using namespace mlir;
using namespace attnfuse;
using namespace attnfuse::run;

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

static std::string describe(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

namespace {
class InputMaker {
public:
  InputMaker(func::FuncOp function, StringRef source, const Options &options)
      : function(function), source(source), options(options) {}

  llvm::Expected<std::vector<Argument>> make();

private:
  llvm::Error readFiles();
  llvm::Error bindExtents();
  llvm::Expected<HostTensor> fill(unsigned place, Type type);
  llvm::Error applyInit(StringRef form, HostTensor &tensor, uint64_t seed);

  /// The name of a dynamic extent: that of attn.dims, else B for the first of
  /// several and N for the others.
  std::string extentName(unsigned place, int64_t dim) {
    auto names = function.getArgAttrOfType<ArrayAttr>(place, "attn.dims");
    if (names && dim < static_cast<int64_t>(names.size())) {
      auto name = dyn_cast<StringAttr>(names[dim]);
      if (name && !name.getValue().empty()) {
        return name.str();
      }
    }
    return dim == 0 ? "B" : "N";
  }

  func::FuncOp function;
  StringRef source;
  const Options &options;
  std::vector<Argument> arguments;
  std::map<std::string, int64_t> extents;
  std::map<std::string, std::string> extentOrigin;
};
} // namespace

llvm::Error InputMaker::readFiles() {
  std::set<std::string> used;
  for (BlockArgument parameter : function.getArguments()) {
    unsigned place = parameter.getArgNumber();
    Argument argument;
    argument.name = argumentName(parameter, source);
    auto file = options.inputs.find(argument.name);
    auto byNumber = options.inputs.find(std::to_string(place));
    if (file == options.inputs.end()) {
      file = byNumber;
    } else if (byNumber != options.inputs.end() && byNumber != file) {
      return fail("--input names two files for argument '" + argument.name +
                  "': '" + file->second + "' and '" + byNumber->second + "'");
    }
    if (file != options.inputs.end()) {
      used.insert(file->first);
      auto tensor = readTensor(file->second);
      if (!tensor) {
        return tensor.takeError();
      }
      argument.value = *tensor;
      argument.origin = file->second;
    }
    arguments.push_back(argument);
  }
  for (auto &[name, file] : options.inputs) {
    if (!used.count(name)) {
      std::string known;
      for (const Argument &argument : arguments) {
        known += (known.empty() ? "" : ", ") + argument.name;
      }
      return fail("--input " + name + "=" + file + ": the function '" +
                  function.getSymName() + "' has no argument '" + name +
                  "'; it has: " + known);
    }
  }
  return llvm::Error::success();
}

llvm::Error InputMaker::bindExtents() {
  for (auto &[name, value] : options.extents) {
    extents[name] = value;
    extentOrigin[name] = "--set";
  }
  std::set<std::string> known;
  for (BlockArgument parameter : function.getArguments()) {
    unsigned place = parameter.getArgNumber();
    Argument &argument = arguments[place];
    Attribute init = function.getArgAttr(place, "attn.init");
    Attribute dims = function.getArgAttr(place, "attn.dims");
    if ((init && !isa<StringAttr>(init)) || (dims && !isa<ArrayAttr>(dims))) {
      return fail("argument '" + argument.name +
                  "': attn.init has to be a string, attn.dims an array of "
                  "strings");
    }
    auto type = dyn_cast<RankedTensorType>(parameter.getType());
    if (!type) {
      known.insert(argument.name);
      if (!dtypeOf(parameter.getType())) {
        return fail("argument '" + argument.name + "' has type " +
                    describe(parameter.getType()) +
                    "; supported: ranked tensors, index, i32, i64 and f32");
      }
      continue;
    }
    std::optional<DType> element = dtypeOf(type.getElementType());
    if (!element) {
      return fail("argument '" + argument.name + "' has element type " +
                  describe(type.getElementType()) +
                  "; supported: f16, bf16, f32, i1, i8, i32, i64");
    }
    bool fromFile = argument.value.data() != nullptr;
    if (fromFile && argument.value.rank() != type.getRank()) {
      return fail("'" + argument.origin + "' has rank " +
                  llvm::Twine(argument.value.rank()) + " (shape " +
                  shapeToString(argument.value.shape()) + "); argument '" +
                  argument.name + "' is " + describe(type));
    }
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      std::string name = extentName(place, dim);
      if (type.isDynamicDim(dim)) {
        known.insert(name);
      }
      if (!fromFile) {
        continue;
      }
      int64_t found = argument.value.shape()[dim];
      if (!type.isDynamicDim(dim)) {
        if (found != type.getDimSize(dim)) {
          return fail("'" + argument.origin + "' has shape " +
                      shapeToString(argument.value.shape()) + "; argument '" +
                      argument.name + "' is " + describe(type));
        }
        continue;
      }
      auto [bound, isNew] = extents.try_emplace(name, found);
      if (isNew) {
        extentOrigin[name] = argument.origin;
      } else if (bound->second != found && extentOrigin[name] == "--set") {
        return fail("'" + argument.origin + "' has extent " +
                    llvm::Twine(found) + " in dimension " + llvm::Twine(dim) +
                    ", where --set says " + name + " = " +
                    llvm::Twine(bound->second));
      }
    }
    if (fromFile) {
      // A file of another float type is rounded; integers are not guessed.
      if (isFloat(argument.value.dtype()) != isFloat(*element)) {
        return fail("'" + argument.origin + "' holds " +
                    dtypeName(argument.value.dtype()) + "; argument '" +
                    argument.name + "' is " + describe(type));
      }
      if (argument.value.dtype() != *element) {
        auto converted = argument.value.convertTo(*element);
        if (!converted) {
          return converted.takeError();
        }
        argument.origin += std::string(", converted from ") +
                           dtypeName(argument.value.dtype()).str();
        argument.value = *converted;
      }
    }
  }
  for (auto &[name, value] : options.extents) {
    if (!known.count(name)) {
      std::string list = llvm::join(known, ", ");
      return fail("--set " + name + "=" + llvm::Twine(value) +
                  ": the program has no dynamic extent or integer argument '" +
                  name + "'; it has: " + (list.empty() ? "none" : list));
    }
  }
  return llvm::Error::success();
}

llvm::Error InputMaker::applyInit(StringRef form, HostTensor &tensor,
                                  uint64_t seed) {
  SmallVector<StringRef> words;
  form.split(words, ' ', -1, /*KeepEmpty=*/false);
  auto number = [&](size_t word, double &value) {
    return words.size() > word && !words[word].getAsDouble(value);
  };
  // Whole numbers that doubles, and the tensor's elements, hold.
  auto whole = [&](size_t word, double &value) {
    double limit = tensor.dtype() == DType::I8    ? 128
                   : tensor.dtype() == DType::I32 ? 0x1p31
                                                  : 0x1p53;
    return number(word, value) && std::abs(value) <= limit &&
           value == std::floor(value);
  };
  HostTensor flat = HostTensor::wrap(tensor.dtype(), {tensor.numElements()},
                                     {1}, tensor.data(), nullptr);
  auto setAll = [&](auto value) {
    for (int64_t n = 0; n < tensor.numElements(); ++n) {
      flat.set({n}, value(n));
    }
  };
  double a, b;
  int64_t last = tensor.rank() ? tensor.shape().back() : 1;
  StringRef kind = words.empty() ? StringRef() : words[0];
  if (kind == "normal" && words.size() == 1) {
    fillRandomNormal(tensor, seed);
  } else if (kind == "zeros" && words.size() == 1) {
    setAll([](int64_t) { return 0.0; });
  } else if (kind == "ones" && words.size() == 1) {
    setAll([](int64_t) { return 1.0; });
  } else if (kind == "iota" && words.size() == 1) {
    setAll([&](int64_t n) { return double(n % last); });
  } else if (kind == "value" && words.size() == 2 &&
             (isFloat(tensor.dtype()) ? number(1, a) : whole(1, a))) {
    setAll([&](int64_t) { return a; });
  } else if (kind == "randint" && words.size() == 3 && whole(1, a) &&
             whole(2, b) && a < b) {
    fillRandomInts(tensor, seed, static_cast<int64_t>(a),
                   static_cast<int64_t>(b));
  } else if (kind == "bernoulli" && words.size() == 2 && number(1, a) &&
             a >= 0 && a <= 1) {
    fillRandomBools(tensor, seed, a);
  } else if (kind == "documents" && words.size() == 2 && whole(1, a) &&
             a >= 1) {
    setAll([&](int64_t n) {
      return double((n % last) / static_cast<int64_t>(a));
    });
  } else {
    return fail("attn.init = \"" + form + "\" does not fit " +
                dtypeName(tensor.dtype()) +
                "; supported: normal, zeros, ones, iota, value "
                "X, randint LOW HIGH, bernoulli P, documents LENGTH");
  }
  return llvm::Error::success();
}

llvm::Expected<HostTensor> InputMaker::fill(unsigned place, Type type) {
  Argument &argument = arguments[place];
  uint64_t seed = options.seed * 1000003 + place + 1;
  auto init = function.getArgAttrOfType<StringAttr>(place, "attn.init");
  auto tensorType = dyn_cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  if (tensorType) {
    shape.assign(tensorType.getShape().begin(), tensorType.getShape().end());
    for (int64_t dim = 0; dim < tensorType.getRank(); ++dim) {
      if (tensorType.isDynamicDim(dim)) {
        std::string name = extentName(place, dim);
        auto bound = extents.try_emplace(name, name == "B" ? 1 : 1024).first;
        shape[dim] = bound->second;
      }
    }
  }
  DType element = *dtypeOf(tensorType ? tensorType.getElementType() : type);
  auto tensor = HostTensor::allocate(element, shape);
  if (!tensor) {
    return tensor;
  }
  auto given = options.extents.find(argument.name);
  if (!tensorType && given != options.extents.end()) {
    argument.origin = "--set";
    tensor->set({}, static_cast<double>(given->second));
    return tensor;
  }
  std::string form = init                   ? init.str()
                     : !tensorType          ? "zeros"
                     : isFloat(element)     ? "normal"
                     : element == DType::I1 ? "bernoulli 0.5"
                                            : "zeros";
  argument.origin = form == "normal" ? "random normal" : form;
  if (llvm::Error error = applyInit(form, *tensor, seed)) {
    return std::move(error);
  }
  return tensor;
}

llvm::Expected<std::vector<Argument>> InputMaker::make() {
  if (llvm::Error error = readFiles()) {
    return std::move(error);
  }
  if (llvm::Error error = bindExtents()) {
    return std::move(error);
  }
  for (BlockArgument parameter : function.getArguments()) {
    Argument &argument = arguments[parameter.getArgNumber()];
    if (!argument.value.data()) {
      auto tensor = fill(parameter.getArgNumber(), parameter.getType());
      if (!tensor) {
        return tensor.takeError();
      }
      argument.value = *tensor;
    }
    for (auto [dim, extent] : llvm::enumerate(argument.value.shape())) {
      if (extent == 0 && !options.allowEmpty) {
        return fail("argument '" + argument.name + "' of shape " +
                    shapeToString(argument.value.shape()) +
                    " has extent 0 in dimension " + llvm::Twine(dim) +
                    ": there is nothing to compute; --allow-empty runs it all "
                    "the same");
      }
    }
  }
  return std::move(arguments);
}

llvm::Expected<std::vector<Argument>>
attnfuse::run::makeInputs(func::FuncOp function, StringRef source,
                          const Options &options) {
  return InputMaker(function, source, options).make();
}
