// SPDX-License-Identifier: Apache-2.0
#include "cannsim/nnop/traits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace cannsim {
namespace {

// A compilation of one operator; an order of magnitude, no measurement.
constexpr double kCompileNs = 1e9;
// The article: "padding degrades performance"; it gives no factor.
constexpr double kUnalignedFactor = 4;
constexpr int64_t kLine = 16;

bool Holds(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

double BytesOf(const Array& array) {
  const bool is_half_byte = array.dtype == ACL_INT4 ||
                            array.dtype == ACL_FLOAT4_E2M1 ||
                            array.dtype == ACL_FLOAT4_E1M2;
  const double one =
      is_half_byte ? 0.5 : static_cast<double>(aclDataTypeSize(array.dtype));
  return one * static_cast<double>(array.n_elements());
}

bool IsProduct(std::string_view name) {
  return Holds(name, "Matmul") || Holds(name, "MatMul") || name == "aclnnMm" ||
         name == "aclnnMv";
}

// 2 * M * N * K from the sizes of the two factors and the result alone:
// sqrt(MK * KN * MN) = MKN. Of a batch all three have the batch as a factor,
// which counts once too often under the root.
double ProductFlops(const Arrays& arrays, const std::vector<bool>& outputs) {
  std::vector<const Array*> factors;
  const Array* result = nullptr;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].present) continue;
    if (outputs[i]) {
      if (result == nullptr) result = &arrays[i];
    } else if (factors.size() < 2) {
      factors.push_back(&arrays[i]);
    }
  }
  if (result == nullptr || factors.size() < 2) return 0;
  const auto n = [](const Array& a) {
    return static_cast<double>(a.n_elements());
  };
  double batch = 1;
  const bool is_batch =
      result->rank() > 2 && factors[0]->rank() > 2 && factors[1]->rank() > 2;
  for (int i = 0; is_batch && i < result->rank() - 2; ++i) {
    batch *= static_cast<double>(result->dims[static_cast<size_t>(i)]);
  }
  const double cube = n(*factors[0]) * n(*factors[1]) * n(*result);
  return batch > 0 ? 2 * std::sqrt(cube / batch) : 0;
}

// Scores and their use: twice 2 * |query| * rows of the keys; the rows are the
// longest axis of the second argument.
double AttentionFlops(const Arrays& arrays) {
  if (arrays.size() < 2 || !arrays[0].present || !arrays[1].present ||
      arrays[1].dims.empty()) {
    return 0;
  }
  const int64_t rows =
      *std::max_element(arrays[1].dims.begin(), arrays[1].dims.end());
  return 4 * static_cast<double>(arrays[0].n_elements()) *
         static_cast<double>(rows);
}

// Each output element takes a product with one filter.
double ConvolutionFlops(const Arrays& arrays,
                        const std::vector<bool>& outputs) {
  if (arrays.size() < 2 || !arrays[1].present || arrays[1].dims.empty()) {
    return 0;
  }
  double flops = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!outputs[i] || !arrays[i].present) continue;
    const int64_t filters = std::max<int64_t>(arrays[1].dims[0], 1);
    flops += 2 * static_cast<double>(arrays[i].n_elements()) *
             static_cast<double>(arrays[1].n_elements()) /
             static_cast<double>(filters);
  }
  return flops;
}

bool HasUnalignedRow(const Arrays& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const Array& a) {
    return a.present && a.rank() > 0 && a.dims.back() % kLine != 0;
  });
}

bool HasUnalignedAddress(const Arrays& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const Array& a) {
    return a.base != nullptr && reinterpret_cast<uintptr_t>(a.base) % 16 != 0;
  });
}

// Sixteen of something at the first or the last axis of an input.
bool HasSixteenExperts(const Arrays& arrays, const std::vector<bool>& outputs) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Array& a = arrays[i];
    if (!a.present || outputs[i] || a.rank() == 0) continue;
    if (a.dims.front() == 16 || a.dims.back() == 16) return true;
  }
  return false;
}

bool IsExpertOperator(std::string_view name) {
  return Holds(name, "Moe") || Holds(name, "Grouped") ||
         name == "aclnnIndexSelect" || Holds(name, "Gather");
}

// NaN in every float format: all bits set. (Integers become -1.)
void Spoil(const Array& array) {
  if (array.n_elements() == 0) return;
  const size_t bytes = aclDataTypeSize(array.dtype);
  std::vector<int64_t> index(array.dims.size(), 0);
  while (true) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * array.strides[i];
    std::memset(array.base + at * static_cast<int64_t>(bytes), 0xFF, bytes);
    size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == array.dims[axis - 1]) {
      index[--axis] = 0;
    }
    if (axis == 0) return;
  }
}

// Whether this operator has not had this output shape before.
bool IsNewShape(const char* name, const Arrays& arrays,
                const std::vector<bool>& outputs) {
  static std::mutex mutex;
  static auto* const seen = new std::set<std::string>;
  std::string key = name;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!outputs[i] || !arrays[i].present) continue;
    key += '/';
    for (const int64_t dim : arrays[i].dims) key += fmt::format("{},", dim);
  }
  const std::lock_guard lock(mutex);
  return seen->insert(std::move(key)).second;
}

void DynamicK(const char* name, const Arrays& arrays,
              const std::vector<bool>& outputs, TaskCost* cost) {
  const bool fits =
      Holds(name, "TopK") || Holds(name, "Topk") || Holds(name, "Slice");
  if (!fits || !IsNewShape(name, arrays, outputs)) return;
  cannsim_compiled();
  cost->extra_ns += kCompileNs;
  cannsim_tell(Quirk::kDynamicK,
               fmt::format("{} is compiled, and again for each output shape "
                           "that it did not have yet",
                           name)
                   .c_str());
}

Kernel OutOfRange(const char* name) {
  cannsim_tell(
      Quirk::kExpertIndex,
      fmt::format("{} over 16 experts reads an index out of range", name)
          .c_str());
  return [](const Arrays&) {
    return cannsim_fail(ACL_ERROR_RT_AICORE_EXCEPTION,
                        "The DDR address of the MTE instruction is out of "
                        "range");
  };
}

}  // namespace

TaskCost CostOf(const std::string& name, const Arrays& arrays,
                const std::vector<bool>& outputs) {
  TaskCost cost;
  for (const Array& array : arrays) {
    if (array.present) cost.bytes += BytesOf(array);
  }
  if (IsProduct(name)) cost.flops = ProductFlops(arrays, outputs);
  if (Holds(name, "Attention") || Holds(name, "Attn")) {
    cost.flops = AttentionFlops(arrays);
  }
  if (Holds(name, "Convolution")) {
    cost.flops = ConvolutionFlops(arrays, outputs);
  }
  return cost;
}

Kernel WithQuirks(const char* name, const Arrays& arrays,
                  const std::vector<bool>& outputs, Kernel kernel,
                  TaskCost* cost) {
  if (cannsim_quirk(Quirk::kDynamicK)) DynamicK(name, arrays, outputs, cost);
  if (cannsim_quirk(Quirk::kSlowLastDim) && HasUnalignedRow(arrays)) {
    cost->bytes *= kUnalignedFactor;
    cost->flops *= kUnalignedFactor;
    cannsim_tell(Quirk::kSlowLastDim,
                 fmt::format("{} has a last dimension that is no multiple of "
                             "16: it takes {} times as long",
                             name, kUnalignedFactor)
                     .c_str());
  }
  if (cannsim_quirk(Quirk::kExpertIndex) && IsExpertOperator(name) &&
      HasSixteenExperts(arrays, outputs)) {
    return OutOfRange(name);
  }
  if (!cannsim_quirk(Quirk::kNanAddress) || !HasUnalignedAddress(arrays)) {
    return kernel;
  }
  cannsim_tell(Quirk::kNanAddress,
               fmt::format("{} has an address that is no multiple of 16: its "
                           "results are NaN",
                           name)
                   .c_str());
  return [kernel = std::move(kernel), outputs](const Arrays& all) {
    const int code = kernel(all);
    for (size_t i = 0; i < all.size() && code == 0; ++i) {
      if (outputs[i] && all[i].present) Spoil(all[i]);
    }
    return code;
  };
}

}  // namespace cannsim
