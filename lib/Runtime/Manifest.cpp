//===- Manifest.cpp - reading manifests ------------------- -*- C++ -*-===//
// Part of AttnFuse, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Manifest.h"

#include "Base64.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <optional>

using namespace attnfuse;
using namespace attnfuse::runtime;
using Json = nlohmann::json;

namespace {
struct DTypeInfo {
  const char *name;
  int64_t size;
};
} // namespace

/// In the order of attnfuse_dtype.
static constexpr DTypeInfo kDTypes[] = {{"f32", 4}, {"bf16", 2}, {"f16", 2},
                                        {"i64", 8}, {"i32", 4},  {"i8", 1},
                                        {"i1", 1}};

int64_t runtime::sizeOf(attnfuse_dtype dtype) { return kDTypes[dtype].size; }

std::string runtime::nameOf(attnfuse_dtype dtype) {
  return kDTypes[dtype].name;
}

const TensorSpec &Manifest::spec(Operand operand) const {
  switch (operand.kind) {
  case Operand::Kind::Argument:
    return arguments[operand.index];
  case Operand::Kind::Temporary:
    return temporaries[operand.index];
  case Operand::Kind::Constant:
    return constants[operand.index];
  case Operand::Kind::Result:
    break;
  }
  return results[operand.index];
}

namespace {
/// Reads one manifest. The first error is kept; what is read after it is
/// thrown away, so functions go on with what they have.
class Reader {
public:
  explicit Reader(Manifest &manifest) : manifest(manifest) {}

  Status read(const Json &root);

private:
  template <typename... Pieces>
  void error(const std::string &where, const Pieces &...pieces) {
    if (status.ok()) {
      status =
          invalid("manifest: ", where, where.empty() ? "" : " ", pieces...);
    }
  }

  const Json *find(const Json &object, const char *key,
                   const std::string &where, bool required);
  const Json &list(const Json &object, const char *key,
                   const std::string &where);
  int64_t integer(const Json &value, const std::string &where, int64_t low,
                  int64_t high);
  int64_t integerAt(const Json &object, const char *key,
                    const std::string &where, int64_t low, int64_t high,
                    std::optional<int64_t> otherwise = std::nullopt);
  std::string text(const Json &object, const char *key,
                   const std::string &where, bool required);

  void readChip();
  DimensionRef readRef(const Json &value, const std::string &where);
  TensorSpec readTensor(const Json &value, const std::string &where,
                        Operand::Kind kind);
  void readTensors(const Json &root, const char *key, Operand::Kind kind,
                   size_t most, std::vector<TensorSpec> &tensors);
  void readData(const Json &value, const std::string &where,
                TensorSpec &tensor);
  void readEqual(const Json &root);
  Operand readOperand(const Json &value, const std::string &where);
  GridFactor readFactor(const Json &value, const std::string &where,
                        const Step &step);
  Extra readExtra(const Json &value, const std::string &where,
                  const Step &step);
  int readStep(const Json &value, const std::string &where, int depth);

  Manifest &manifest;
  Status status;
};
} // namespace

static std::string at(const std::string &where, const char *key) {
  return where.empty() ? key : where + "." + key;
}

static std::string at(const std::string &where, const char *key, size_t index) {
  return concat(at(where, key), "[", index, "]");
}

const Json *Reader::find(const Json &object, const char *key,
                         const std::string &where, bool required) {
  if (!object.is_object()) {
    error(where, "is not an object");
    return nullptr;
  }
  auto it = object.find(key);
  if (it == object.end()) {
    if (required) {
      error(where, "has no '", key, "'");
    }
    return nullptr;
  }
  return &*it;
}

const Json &Reader::list(const Json &object, const char *key,
                         const std::string &where) {
  static const Json empty = Json::array();
  const Json *value = find(object, key, where, /*required=*/false);
  if (value && !value->is_array()) {
    error(at(where, key), "is not a list");
    return empty;
  }
  return value ? *value : empty;
}

int64_t Reader::integer(const Json &value, const std::string &where,
                        int64_t low, int64_t high) {
  if (!value.is_number_integer()) {
    error(where, "is not an integer");
    return low;
  }
  bool huge = value.is_number_unsigned() &&
              value.get<uint64_t>() >
                  static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  int64_t number = value.get<int64_t>();
  if (huge || number < low || number > high) {
    error(where, "is ", value.dump(), ", not from ", low, " to ", high);
    return low;
  }
  return number;
}

int64_t Reader::integerAt(const Json &object, const char *key,
                          const std::string &where, int64_t low, int64_t high,
                          std::optional<int64_t> otherwise) {
  const Json *value = find(object, key, where, !otherwise);
  return value ? integer(*value, at(where, key), low, high)
               : otherwise.value_or(low);
}

std::string Reader::text(const Json &object, const char *key,
                         const std::string &where, bool required) {
  const Json *value = find(object, key, where, required);
  if (!value) {
    return "";
  }
  if (!value->is_string()) {
    error(at(where, key), "is not a text");
    return "";
  }
  return value->get<std::string>();
}

void Reader::readChip() {
  // sm_NN or sm_NNN, then perhaps an 'a'.
  std::string_view rest = manifest.chip;
  bool good = rest.substr(0, 3) == "sm_";
  rest.remove_prefix(good ? 3 : rest.size());
  if (!rest.empty() && rest.back() == 'a') {
    manifest.chipSpecific = true;
    rest.remove_suffix(1);
  }
  good = good && rest.size() >= 2 && rest.size() <= 3;
  for (char digit : rest) {
    good = good && digit >= '0' && digit <= '9';
    manifest.chipNumber = 10 * manifest.chipNumber + (digit - '0');
  }
  if (!good) {
    error("chip", "is '", manifest.chip, "', not sm_NN or sm_NNa");
  }
}

DimensionRef Reader::readRef(const Json &value, const std::string &where) {
  DimensionRef ref;
  ref.argument = static_cast<int>(
      integerAt(value, "argument", where, 0,
                std::max<int64_t>(int64_t(manifest.arguments.size()) - 1, 0)));
  ref.dimension =
      static_cast<int>(integerAt(value, "dimension", where, 0, kMaxRank - 1));
  if (!status.ok()) {
    return ref;
  }
  if (manifest.arguments.empty()) {
    error(where, "names an argument, of which there are none");
  } else if (ref.dimension >= manifest.arguments[ref.argument].rank) {
    error(where, "names dimension ", ref.dimension, " of argument ",
          ref.argument, ", which has ", manifest.arguments[ref.argument].rank);
  }
  return ref;
}

void Reader::readData(const Json &value, const std::string &where,
                      TensorSpec &tensor) {
  std::string data = text(value, "data", where, /*required=*/true);
  if (!status.ok()) {
    return;
  }
  int64_t bytes = sizeOf(tensor.dtype);
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d].source.argument >= 0 ||
        __builtin_mul_overflow(bytes, tensor.shape[d].value, &bytes)) {
      error(where, "has a shape that is not a constant's");
      return;
    }
  }
  std::optional<std::string> decoded = decodeBase64(data);
  if (!decoded) {
    error(at(where, "data"), "is not base64");
  } else if (static_cast<int64_t>(decoded->size()) != bytes) {
    error(at(where, "data"), "has ", decoded->size(), " bytes, the shape ",
          bytes);
  } else {
    tensor.data = std::move(*decoded);
  }
}

TensorSpec Reader::readTensor(const Json &value, const std::string &where,
                              Operand::Kind kind) {
  TensorSpec tensor;
  bool argument = kind == Operand::Kind::Argument;
  if (argument) {
    tensor.name = text(value, "name", where, /*required=*/false);
  }
  std::string dtype = text(value, "dtype", where, /*required=*/true);
  int known = 0;
  while (known <= ATTNFUSE_I1 && dtype != kDTypes[known].name) {
    ++known;
  }
  if (known > ATTNFUSE_I1) {
    error(at(where, "dtype"), "is '", dtype,
          "', not f32, bf16, f16, i64, i32, i8 or i1");
    return tensor;
  }
  tensor.dtype = static_cast<attnfuse_dtype>(known);
  const Json *shape = find(value, "shape", where, !argument);
  if (!shape) {
    tensor.scalar = true;
    if (tensor.dtype == ATTNFUSE_BF16 || tensor.dtype == ATTNFUSE_F16) {
      error(where, "is a scalar of type ", dtype,
            "; scalars are f32 or integers");
    }
    return tensor;
  }
  if (!shape->is_array() || shape->size() > kMaxRank) {
    error(at(where, "shape"), "is not a list of at most ", kMaxRank,
          " extents");
    return tensor;
  }
  tensor.rank = static_cast<int>(shape->size());
  for (int d = 0; d < tensor.rank; ++d) {
    const Json &extent = (*shape)[d];
    std::string place = at(where, "shape", d);
    if (argument && extent.is_null()) {
      tensor.shape[d].value = -1;
    } else if (!argument && extent.is_object()) {
      tensor.shape[d].source = readRef(extent, place);
    } else {
      tensor.shape[d].value = integer(extent, place, 0, kMaxExtent);
    }
  }
  if (kind == Operand::Kind::Constant) {
    readData(value, where, tensor);
  }
  return tensor;
}

void Reader::readTensors(const Json &root, const char *key, Operand::Kind kind,
                         size_t most, std::vector<TensorSpec> &tensors) {
  const Json &values = list(root, key, "");
  if (values.size() > most) {
    error(key, "has ", values.size(), " entries; at most ", most,
          " are supported");
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    tensors.push_back(readTensor(values[i], at("", key, i), kind));
  }
}

void Reader::readEqual(const Json &root) {
  const Json &groups = list(root, "equal", "");
  for (size_t i = 0; i < groups.size(); ++i) {
    std::string where = at("", "equal", i);
    if (!groups[i].is_array() || groups[i].empty()) {
      error(where, "is not a list of extents");
      return;
    }
    DimensionRef first = readRef(groups[i][0], where + "[0]");
    for (size_t j = 1; j < groups[i].size(); ++j) {
      manifest.equal.emplace_back(
          first, readRef(groups[i][j], concat(where, "[", j, "]")));
    }
  }
}

Operand Reader::readOperand(const Json &value, const std::string &where) {
  using Kind = Operand::Kind;
  struct Choice {
    const char *key;
    Kind kind;
    size_t count;
  };
  const Choice choices[] = {
      {"argument", Kind::Argument, manifest.arguments.size()},
      {"temporary", Kind::Temporary, manifest.temporaries.size()},
      {"constant", Kind::Constant, manifest.constants.size()},
      {"result", Kind::Result, manifest.results.size()}};
  for (const Choice &choice : choices) {
    const Json *index = find(value, choice.key, where, /*required=*/false);
    if (!index) {
      continue;
    }
    if (choice.count == 0) {
      error(where, "names a ", choice.key, ", of which there are none");
      return {choice.kind, 0};
    }
    return {choice.kind,
            static_cast<int>(integer(*index, at(where, choice.key), 0,
                                     int64_t(choice.count) - 1))};
  }
  error(where, "is no argument, temporary, constant or result");
  return {Kind::Argument, 0};
}

GridFactor Reader::readFactor(const Json &value, const std::string &where,
                              const Step &step) {
  GridFactor factor;
  factor.operand = static_cast<int>(
      integerAt(value, "operand", where, 0, int64_t(step.operands.size()) - 1));
  factor.dimension =
      static_cast<int>(integerAt(value, "dimension", where, 0, kMaxRank - 1));
  factor.divisor = integerAt(value, "divisor", where, 1, kMaxExtent, 1);
  if (status.ok()) {
    int rank = manifest.spec(step.operands[factor.operand]).rank;
    if (factor.dimension >= rank) {
      error(where, "names dimension ", factor.dimension, " of operand ",
            factor.operand, ", which has ", rank);
    }
  }
  return factor;
}

Extra Reader::readExtra(const Json &value, const std::string &where,
                        const Step &step) {
  Extra extra;
  const Json *map = find(value, "tensor_map", where, /*required=*/false);
  if (!map) {
    const Json *counter = find(value, "counter", where, /*required=*/false);
    if (!counter || !counter->is_boolean() || !counter->get<bool>()) {
      error(where, "is neither a tensor_map nor a counter");
    }
    extra.kind = Extra::Kind::Counter;
    extra.index = manifest.counters++;
    return extra;
  }
  extra.kind = Extra::Kind::TensorMap;
  extra.index = manifest.tensorMaps++;
  extra.operand = static_cast<int>(integer(*map, at(where, "tensor_map"), 0,
                                           int64_t(step.operands.size()) - 1));
  const Json &box = list(value, "box", where);
  if (box.size() != 2) {
    error(at(where, "box"), "is not a list of columns and rows");
    return extra;
  }
  for (int i = 0; i < 2; ++i) {
    extra.box[i] =
        static_cast<int>(integer(box[i], at(where, "box", i), 1, 256));
  }
  extra.swizzle =
      static_cast<int>(integerAt(value, "swizzle", where, 0, 128, 0));
  if (!status.ok()) {
    return extra;
  }
  const TensorSpec &spec = manifest.spec(step.operands[extra.operand]);
  int64_t columns = extra.box[0] * sizeOf(spec.dtype);
  if (spec.rank != 4) {
    error(where, "is a tensor map of a tensor of rank ", spec.rank, ", not 4");
  } else if (extra.swizzle && extra.swizzle != 32 && extra.swizzle != 64 &&
             extra.swizzle != 128) {
    error(at(where, "swizzle"), "is ", extra.swizzle, ", not 0, 32, 64 or 128");
  } else if (columns % 16) {
    error(at(where, "box"), "is ", columns,
          " bytes wide, not a multiple of 16");
  } else if (extra.swizzle && columns > extra.swizzle) {
    error(at(where, "box"), "is ", columns, " bytes wide, the swizzle ",
          extra.swizzle);
  }
  return extra;
}

int Reader::readStep(const Json &value, const std::string &where, int depth) {
  Step step;
  step.kernel = text(value, "kernel", where, /*required=*/true);
  step.threads = static_cast<int>(integerAt(value, "threads", where, 1, 1024));
  step.shared = integerAt(value, "shared", where, 0, kMaxExtent, 0);
  step.persistent =
      static_cast<int>(integerAt(value, "persistent", where, 0, 1 << 16, 0));
  const Json &operands = list(value, "operands", where);
  for (size_t i = 0; i < operands.size() && status.ok(); ++i) {
    step.operands.push_back(readOperand(operands[i], at(where, "operands", i)));
  }
  const Json &grid = list(value, "grid", where);
  for (size_t i = 0; i < grid.size() && status.ok(); ++i) {
    step.grid.push_back(readFactor(grid[i], at(where, "grid", i), step));
  }
  const Json &extras = list(value, "extras", where);
  for (size_t i = 0; i < extras.size() && status.ok(); ++i) {
    step.extras.push_back(readExtra(extras[i], at(where, "extras", i), step));
  }
  if (!status.ok()) {
    return -1;
  }
  int bytes = layOutParameters(manifest, step, [](int, int) {});
  if (bytes > kMaxParameterBytes) {
    error(where, "has ", bytes, " bytes of parameters; a kernel may have ",
          kMaxParameterBytes);
  }
  if (manifest.steps.size() == kMaxSteps || depth > 4) {
    error(where, "is one step too many; ", kMaxSteps,
          " are supported, and 4 alternatives of one");
    return -1;
  }
  const Json *otherwise = find(value, "otherwise", where, /*required=*/false);
  if (otherwise && !otherwise->is_null()) {
    step.otherwise = readStep(*otherwise, at(where, "otherwise"), depth + 1);
  }
  const Json *fill = find(value, "otherwise_fill", where, /*required=*/false);
  if (fill && !fill->is_null()) {
    Operand target = readOperand(*fill, at(where, "otherwise_fill"));
    if (status.ok() && target.kind != Operand::Kind::Temporary) {
      error(at(where, "otherwise_fill"), "is not a temporary");
    }
    step.otherwiseFill = target.index;
  }
  manifest.steps.push_back(std::move(step));
  return static_cast<int>(manifest.steps.size()) - 1;
}

Status Reader::read(const Json &root) {
  int64_t version = integerAt(root, "version", "", 1, kMaxExtent);
  if (status.ok() && version != 1) {
    error("", "is of version ", version,
          "; this runtime reads version 1: use the runtime that came with the "
          "compiler");
  }
  manifest.chip = text(root, "chip", "", /*required=*/true);
  manifest.ptx = static_cast<int>(integerAt(root, "ptx", "", 10, 999));
  manifest.entry = text(root, "entry", "", /*required=*/false);
  if (status.ok()) {
    readChip();
  }
  readTensors(root, "arguments", Operand::Kind::Argument, kMaxArguments,
              manifest.arguments);
  readTensors(root, "results", Operand::Kind::Result, kMaxResults,
              manifest.results);
  readTensors(root, "temporaries", Operand::Kind::Temporary, kMaxTemporaries,
              manifest.temporaries);
  readTensors(root, "constants", Operand::Kind::Constant, kMaxConstants,
              manifest.constants);
  if (status.ok()) {
    readEqual(root);
    const Json &steps = list(root, "steps", "");
    for (size_t i = 0; i < steps.size() && status.ok(); ++i) {
      manifest.order.push_back(readStep(steps[i], at("", "steps", i), 0));
    }
  }
  return std::move(status);
}

Status Manifest::parse(std::string_view text, Manifest &manifest) {
  manifest = Manifest();
  Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    return invalid("manifest: not JSON");
  }
  if (!root.is_object()) {
    return invalid("manifest: not an object");
  }
  return Reader(manifest).read(root);
}
