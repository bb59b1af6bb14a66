// SPDX-License-Identifier: Apache-2.0
// GroupedMatmul: one product for each expert, over rows sorted by expert.
// Simulated: one x and one y, groups of rows (groupType 0, splitItem 2 or 3),
// the weights of all experts in one tensor [experts, K, N] or one tensor each.
//
// An MX scale has one power of two for 32 numbers along K: [M, K/64, 2] of x,
// [experts, K/64, N, 2] of the weights.
#include "aclnnop/aclnn_grouped_matmul_v3.h"
#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "cannsim/ops/v4/product.h"

namespace cannsim {
namespace {

enum Form {
  kPlain,      // floats
  kInt8,       // INT8 and INT8, a scale a column and a row
  kInt4,       // INT8 and INT4: (x - 8) w, whose bias adds 8 sum(w scale)
  kAntiquant,  // FLOAT16 or BF16 and INT8 or INT4
  kMx,         // FP8 or FP4 on both sides, or only in the weights
  kNone
};

struct GroupedArgs {
  const aclTensorList* x;
  const aclTensorList* weight;
  const aclTensorList* bias;
  const aclTensorList* scale;
  const aclTensorList* offset;
  const aclTensorList* antiquant_scale;
  const aclTensorList* antiquant_offset;
  const aclTensorList* per_token;
  const aclTensor* group_list;
  const aclTensorList* y;
  int64_t split_item;
  int64_t group_type;
  int64_t group_list_type;
};

bool GivenList(const aclTensorList* list) {
  return list != nullptr && !list->members.empty() &&
         Given(list->members.front());
}

// The members of a list among the arrays of the operator.
struct Range {
  size_t first = 0;
  size_t n = 0;
};

struct Layout {
  Form form = kNone;
  bool stacked = false;  // [experts, ..] in one tensor, else one each
  int64_t n_experts = 0;
  int64_t list_type = 0;
  Range weight;
  Range bias;
  Range scale;  // of the weights, from whichever list it came
  Range weight_offset;
  bool per_token = false;
};

constexpr size_t kX = 0;
constexpr size_t kY = 1;
constexpr size_t kGroups = 2;
constexpr size_t kPerToken = 3;

// One expert's part of a stacked tensor, or its own tensor.
struct Part {
  const Array* array = nullptr;
  int64_t first = 0;
  size_t skip = 0;  // axes before those of the expert

  bool present() const { return array != nullptr; }
  int rank() const { return array->rank() - static_cast<int>(skip); }
  int64_t dim(size_t axis) const { return array->dims[skip + axis]; }
  template <typename... I>
  int64_t place(I... index) const {
    int64_t at = first;
    size_t axis = skip;
    ((at += static_cast<int64_t>(index) * array->strides[axis++]), ...);
    return at;
  }
};

Part PartOf(const Arrays& a, const Range& range, bool stacked, int64_t e) {
  if (range.n == 0) return {};
  if (!stacked) return {&a[range.first + static_cast<size_t>(e)], 0, 0};
  const Array& all = a[range.first];
  return {&all, Place(all, e), 1};
}

// The scale of weight (k, n): one a column, one a group of K and column, or
// one a block in the MX layout.
double WeightScale(const Part& scale, int64_t k, int64_t n, int64_t n_inner) {
  if (scale.array->dtype == ACL_FLOAT8_E8M0) {
    const int64_t block = k / 32;
    return LoadF(*scale.array, scale.place(block / 2, n, block % 2));
  }
  if (scale.rank() == 1) return LoadScale(*scale.array, scale.place(n));
  const int64_t group = k * scale.dim(0) / n_inner;
  return LoadScale(*scale.array, scale.place(group, n));
}

struct Group {
  int64_t expert;
  int64_t first;
  int64_t last;
};

// The rows of each expert.
int ReadGroups(const Arrays& a, const Layout& layout,
               std::vector<Group>* groups) {
  const int64_t n_rows = a[kX].dims[0];
  const Array& list = a[kGroups];
  if (!Given(list)) {
    groups->push_back({0, 0, n_rows});
    return 0;
  }
  int64_t row = 0;
  for (int64_t i = 0; i < list.dims[0]; ++i) {
    const bool pairs = layout.list_type == 2;
    const int64_t expert = pairs ? AtI(list, i, 0) : i;
    const int64_t value = pairs ? AtI(list, i, 1) : AtI(list, i);
    if (expert < 0 || expert >= layout.n_experts) {
      return IndexOutOfRange("expert", expert, layout.n_experts);
    }
    if (value < 0 || value > n_rows) {
      return IndexOutOfRange("group", value, n_rows + 1);
    }
    const int64_t last = layout.list_type == 0 ? value : row + value;
    if (last < row || last > n_rows) {
      return IndexOutOfRange("end of a group", last, n_rows + 1);
    }
    groups->push_back({expert, row, last});
    row = last;
  }
  return 0;
}

Dense LeftSide(const Arrays& a, const Layout& layout, const Group& group) {
  const Array& x = a[kX];
  const bool mx = layout.form == kMx && layout.per_token;
  const Array& scale = a[kPerToken];
  return MakeDense(group.last - group.first, x.dims[1],
                   [&](int64_t i, int64_t k) {
                     const int64_t m = group.first + i;
                     double value = At(x, m, k);
                     if (layout.form == kInt4) value -= 8;
                     if (mx) value *= MxScale(scale, Place(scale, m), k, 1);
                     return value;
                   });
}

// With the scales that change along K; those of whole columns come later.
Dense RightSide(const Arrays& a, const Layout& layout, int64_t expert) {
  const Part w = PartOf(a, layout.weight, layout.stacked, expert);
  if (!w.present()) return {};  // never: phase 1 asks for it
  const Part scale = PartOf(a, layout.scale, layout.stacked, expert);
  const Part offset = PartOf(a, layout.weight_offset, layout.stacked, expert);
  const int64_t n_inner = w.dim(0);
  return MakeDense(n_inner, w.dim(1), [&](int64_t k, int64_t n) {
    double value = LoadF(*w.array, w.place(k, n));
    if (offset.present()) value += WeightScale(offset, k, n, n_inner);
    if (scale.present() && layout.form != kInt8) {
      value *= WeightScale(scale, k, n, n_inner);
    }
    return value;
  });
}

// ((sum + whole bias) column scale + bias of INT4) row scale + other bias.
void WriteGroup(const Arrays& a, const Layout& layout, const Group& group,
                const Dense& sums) {
  const Array& y = a[kY];
  const Part bias = PartOf(a, layout.bias, layout.stacked, group.expert);
  const Part scale = PartOf(a, layout.scale, layout.stacked, group.expert);
  const bool rows = layout.per_token && layout.form != kMx;
  for (size_t i = 0; i < sums.rows; ++i) {
    const int64_t m = group.first + static_cast<int64_t>(i);
    const double row_scale = rows ? At(a[kPerToken], m) : 1;
    for (int64_t n = 0; n < y.dims[1]; ++n) {
      double value = sums.row(i)[n];
      const double b = bias.present() ? LoadF(*bias.array, bias.place(n)) : 0;
      const bool whole = bias.present() && bias.array->dtype == ACL_INT32;
      if (whole) value += b;
      if (layout.form == kInt8 && scale.present()) {
        value *= WeightScale(scale, 0, n, 1);
      }
      if (layout.form == kInt4) value += b;
      value *= row_scale;
      if (!whole && layout.form != kInt4) value += b;
      Put(y, value, m, n);
    }
  }
}

int GroupedMatmul(const Arrays& a, const Layout& layout) {
  std::vector<Group> groups;
  const int code = ReadGroups(a, layout, &groups);
  if (code != 0) return code;
  for (const Group& group : groups) {
    if (group.first == group.last) continue;
    WriteGroup(a, layout, group,
               Multiply(LeftSide(a, layout, group),
                        RightSide(a, layout, group.expert)));
  }
  return 0;
}

// INT4 may come as INT32, eight to a number.
aclTensor Unpacked(const aclTensor& weight) {
  aclTensor t = weight;
  if (t.dtype != ACL_INT32 || t.dims.empty() || t.strides.back() != 1) return t;
  t.dtype = ACL_INT4;
  t.dims.back() *= 8;
  for (size_t i = 0; i + 1 < t.strides.size(); ++i) t.strides[i] *= 8;
  t.offset *= 8;
  return t;
}

bool IsHalf(aclDataType d) { return d == ACL_FLOAT16 || d == ACL_BF16; }
bool IsFp4(aclDataType d) { return d == ACL_FLOAT4_E2M1; }

Form FormOf(aclDataType x, aclDataType w) {
  if (x == ACL_INT8 && w == ACL_INT8) return kInt8;
  if (x == ACL_INT8 && w == ACL_INT4) return kInt4;
  if (IsHalf(x) && (w == ACL_INT8 || w == ACL_INT4)) return kAntiquant;
  if (x == w && (IsHalf(x) || x == ACL_FLOAT)) return kPlain;
  const bool mx = (IsHalf(x) && IsFp4(w)) ||
                  (x == ACL_FLOAT8_E4M3FN && (IsFp4(w) || w == x)) ||
                  (IsFp4(x) && IsFp4(w));
  return mx ? kMx : kNone;
}

// Adds all members of a list; says that they fit the number of experts.
Range AddList(Phase1& call, const aclTensorList* list, const char* what,
              const Layout& layout, size_t* n_arrays) {
  if (!GivenList(list) || !call.ok()) return {};
  const Range range{*n_arrays, list->members.size()};
  const auto wanted =
      layout.stacked ? size_t{1} : static_cast<size_t>(layout.n_experts);
  call.Require(range.n == wanted,
               std::string(what) + " must have as many tensors as the weights");
  for (const aclTensor* member : list->members) {
    if (!call.ok()) return {};
    call.NotNull(member, what);
    if (!call.ok()) return {};
    const aclTensor plain = Unpacked(*member);
    call.In(std::string(what) == "weight" ? &plain : member, what);
    call.Require(!layout.stacked || (member->rank() >= 2 &&
                                     member->dims[0] == layout.n_experts),
                 std::string(what) + " must begin with the experts");
  }
  *n_arrays += range.n;
  return range;
}

// The axes of a scale behind the experts: [N], [G, N], or [K/64, N, 2].
void CheckWeightScale(Phase1& call, const aclTensorList* list,
                      const Layout& layout, int64_t k, int64_t n) {
  if (!GivenList(list) || !call.ok()) return;
  for (const aclTensor* t : list->members) {
    const Dims d(t->dims.begin() + (layout.stacked ? 1 : 0), t->dims.end());
    if (layout.form == kMx) {
      call.Require(
          t->dtype == ACL_FLOAT8_E8M0 && d == Dims{(k + 63) / 64, n, 2},
          "an MX scale of the weights must be FLOAT8_E8M0 "
          "[experts, K/64, N, 2]");
      continue;
    }
    const bool column = d == Dims{n};
    const bool groups = d.size() == 2 && d[1] == n && d[0] >= 1 &&
                        k % d[0] == 0 && (layout.form != kInt8 || d[0] == 1);
    call.Require(IsScale(t->dtype) && (column || groups),
                 "a scale or offset of the weights must be [experts, N] or "
                 "[experts, groups, N]");
  }
}

// What each form needs and must not have.
void CheckForm(Phase1& call, const GroupedArgs& args, const Layout& layout,
               const aclTensor* y) {
  const bool scale = GivenList(args.scale);
  const bool antiquant = GivenList(args.antiquant_scale);
  const Generation generation = cannsim_profile()->generation;
  const aclDataType x = args.x->members[0]->dtype;
  switch (layout.form) {
    case kPlain:
      call.Require(!scale && !antiquant && !layout.per_token,
                   "float weights have no scales");
      break;
    case kInt8:
      call.Require(
          !antiquant && (scale ? IsFloat(y->dtype)
                               : y->dtype == ACL_INT32 && !layout.per_token),
          "INT8 weights need scale for a float result, and nothing "
          "for INT32");
      break;
    case kInt4:
      call.Require(
          generation == Generation::kA2 || generation == Generation::kA3,
          "INT8 with INT4 weights exists on A2 and A3 only");
      call.Require(
          scale && !antiquant && layout.per_token && GivenList(args.bias),
          "INT8 with INT4 weights needs scale, perTokenScale and the "
          "bias that corrects the offset");
      break;
    case kAntiquant:
      call.Require(antiquant && !scale && !layout.per_token,
                   "INT weights with float x need antiquantScale only");
      break;
    case kMx:
      call.Require(generation == Generation::kA5,
                   "FP8, FP4 and MX scales exist on the 950 (A5) only");
      call.Require(scale != antiquant && layout.per_token == !IsHalf(x),
                   "MX weights need one scale list, an MX x perTokenScale");
      break;
    default:
      call.Require(false, "no simulated form has these dtypes of x and weight");
  }
  call.Require(IsFloat(y->dtype) || layout.form == kInt8,
               "y must be of a float dtype");
}

void CheckPerToken(Phase1& call, const aclTensor* t, const aclTensor* x,
                   const Layout& layout) {
  if (!call.ok() || !layout.per_token) return;
  if (layout.form == kMx) {
    call.Require(t->dtype == ACL_FLOAT8_E8M0 &&
                     t->dims == Dims{x->dims[0], (x->dims[1] + 63) / 64, 2},
                 "perTokenScale of MX must be FLOAT8_E8M0 [M, K/64, 2]");
    return;
  }
  call.Require(t->dtype == ACL_FLOAT && t->dims == Dims{x->dims[0]},
               "perTokenScale must be FLOAT [M]");
}

void CheckGroupList(Phase1& call, const aclTensor* list, const Layout& layout) {
  if (!call.ok()) return;
  if (!Given(list)) {
    call.Require(layout.n_experts == 1, "groupList is missing");
    return;
  }
  call.Require(list->dtype == ACL_INT64 &&
                   list->rank() == (layout.list_type == 2 ? 2 : 1) &&
                   (layout.list_type == 2 ? list->dims[1] == 2
                                          : list->dims[0] == layout.n_experts),
               "groupList must be INT64 [experts], or [n, 2] for type 2");
}

// Exactly one member that is not null.
bool IsOne(const aclTensorList* list) {
  return list != nullptr && list->members.size() == 1 &&
         list->members[0] != nullptr;
}

aclnnStatus Finish(Phase1& call, const GroupedArgs& args) {
  call.OnlyOn(cannsim::kNpus);
  call.NotNull(args.x, "x").NotNull(args.weight, "weight").NotNull(args.y, "y");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(IsOne(args.x) && IsOne(args.y) && GivenList(args.weight) &&
                   args.group_type == 0 &&
                   (args.split_item == 2 || args.split_item == 3),
               "only one x, one y, groupType 0 and splitItem 2 or 3 are "
               "simulated");
  call.Require(!GivenList(args.offset), "offset is not simulated: pass null");
  call.Require(args.group_list_type >= 0 && args.group_list_type <= 2,
               "groupListType must be 0, 1 or 2");
  if (!call.ok()) return call.Finish(nullptr);
  const aclTensor* x = args.x->members[0];
  const aclTensor* y = args.y->members[0];
  const aclTensor w = Unpacked(*args.weight->members[0]);
  Layout layout;
  layout.stacked = args.weight->members.size() == 1 && w.rank() == 3;
  layout.n_experts = layout.stacked
                         ? w.dims[0]
                         : static_cast<int64_t>(args.weight->members.size());
  layout.form = FormOf(x->dtype, w.dtype);
  layout.list_type = args.group_list_type;
  layout.per_token = GivenList(args.per_token);
  call.Require(!layout.per_token || args.per_token->members.size() == 1,
               "perTokenScale must be one tensor");
  call.Require(w.rank() == (layout.stacked ? 3 : 2) && x->rank() == 2 &&
                   x->dims[1] == w.dims[w.dims.size() - 2] &&
                   y->dims == Dims{x->dims[0], w.dims.back()},
               "x must be [M, K], weight [experts, K, N] or a list of [K, N], "
               "y [M, N]");
  if (!call.ok()) return call.Finish(nullptr);
  call.In(x, "x").Out(y, "y").InOptional(args.group_list, "groupList");
  call.InOptional(layout.per_token ? args.per_token->members[0] : nullptr,
                  "perTokenScale");
  size_t n_arrays = kPerToken + 1;
  layout.weight = AddList(call, args.weight, "weight", layout, &n_arrays);
  layout.bias = AddList(call, args.bias, "bias", layout, &n_arrays);
  const bool antiquant = GivenList(args.antiquant_scale);
  const aclTensorList* scale = antiquant ? args.antiquant_scale : args.scale;
  layout.scale = AddList(call, scale, "scale", layout, &n_arrays);
  layout.weight_offset = AddList(call, args.antiquant_offset, "antiquantOffset",
                                 layout, &n_arrays);
  if (!call.ok()) return call.Finish(nullptr);
  CheckForm(call, args, layout, y);
  CheckWeightScale(call, scale, layout, x->dims[1], w.dims.back());
  if (GivenList(args.antiquant_offset)) {
    call.Require(layout.form == kAntiquant,
                 "antiquantOffset comes with INT weights and a float x");
    CheckWeightScale(call, args.antiquant_offset, layout, x->dims[1],
                     w.dims.back());
  }
  for (const aclTensor* t : args.weight->members) {
    call.Require(Unpacked(*t).dims == w.dims &&
                     t->dtype == args.weight->members[0]->dtype,
                 "the weights differ in shape or dtype");
  }
  if (GivenList(args.bias)) {
    for (const aclTensor* t : args.bias->members) {
      call.Require(t->rank() == (layout.stacked ? 2 : 1) &&
                       t->dims.back() == w.dims.back(),
                   "bias must be [experts, N]");
    }
  }
  CheckPerToken(call, layout.per_token ? args.per_token->members[0] : nullptr,
                x, layout);
  CheckGroupList(call, args.group_list, layout);
  return call.Finish(
      [layout](const Arrays& a) { return GroupedMatmul(a, layout); });
}

// V4 and V5 can also activate: refused.
void RefuseActivation(Phase1& call,
                      std::initializer_list<const aclTensorList*> lists,
                      int64_t act_type) {
  call.OnlyOn(cannsim::kNpus);
  for (const aclTensorList* list : lists) {
    call.Require(!GivenList(list),
                 "activations and quantised results are not simulated");
  }
  call.Require(act_type == 0, "actType must be 0: others are not simulated");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnGroupedMatmulV3GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight,
    const aclTensorList* biasOptional, const aclTensorList* scaleOptional,
    const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional,
    const aclTensorList* antiquantOffsetOptional,
    const aclTensor* groupListOptional, int64_t splitItem, int64_t groupType,
    const aclTensorList* y, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGroupedMatmulV3", workspaceSize, executor);
  return cannsim::Finish(
      call, {x, weight, biasOptional, scaleOptional, offsetOptional,
             antiquantScaleOptional, antiquantOffsetOptional, nullptr,
             groupListOptional, y, splitItem, groupType, 0});
}
CANNSIM_PHASE2(GroupedMatmulV3)

aclnnStatus aclnnGroupedMatmulV4GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight,
    const aclTensorList* biasOptional, const aclTensorList* scaleOptional,
    const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional,
    const aclTensorList* antiquantOffsetOptional,
    const aclTensorList* perTokenScaleOptional,
    const aclTensor* groupListOptional,
    const aclTensorList* activationInputOptional,
    const aclTensorList* activationQuantScaleOptional,
    const aclTensorList* activationQuantOffsetOptional, int64_t splitItem,
    int64_t groupType, int64_t groupListType, int64_t actType,
    aclTensorList* out, aclTensorList* activationFeatureOutOptional,
    aclTensorList* dynQuantScaleOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGroupedMatmulV4", workspaceSize, executor);
  cannsim::RefuseActivation(
      call,
      {activationInputOptional, activationQuantScaleOptional,
       activationQuantOffsetOptional, activationFeatureOutOptional,
       dynQuantScaleOutOptional},
      actType);
  return cannsim::Finish(
      call,
      {x, weight, biasOptional, scaleOptional, offsetOptional,
       antiquantScaleOptional, antiquantOffsetOptional, perTokenScaleOptional,
       groupListOptional, out, splitItem, groupType, groupListType});
}
CANNSIM_PHASE2(GroupedMatmulV4)

aclnnStatus aclnnGroupedMatmulV5GetWorkspaceSize(
    const aclTensorList* x, const aclTensorList* weight,
    const aclTensorList* biasOptional, const aclTensorList* scaleOptional,
    const aclTensorList* offsetOptional,
    const aclTensorList* antiquantScaleOptional,
    const aclTensorList* antiquantOffsetOptional,
    const aclTensorList* perTokenScaleOptional,
    const aclTensor* groupListOptional,
    const aclTensorList* activationInputOptional,
    const aclTensorList* activationQuantScaleOptional,
    const aclTensorList* activationQuantOffsetOptional, int64_t splitItem,
    int64_t groupType, int64_t groupListType, int64_t actType,
    aclIntArray* tuningConfigOptional, aclTensorList* out,
    aclTensorList* activationFeatureOutOptional,
    aclTensorList* dynQuantScaleOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGroupedMatmulV5", workspaceSize, executor);
  (void)tuningConfigOptional;  // of the real one's tiling
  cannsim::RefuseActivation(
      call,
      {activationInputOptional, activationQuantScaleOptional,
       activationQuantOffsetOptional, activationFeatureOutOptional,
       dynQuantScaleOutOptional},
      actType);
  return cannsim::Finish(
      call,
      {x, weight, biasOptional, scaleOptional, offsetOptional,
       antiquantScaleOptional, antiquantOffsetOptional, perTokenScaleOptional,
       groupListOptional, out, splitItem, groupType, groupListType});
}
CANNSIM_PHASE2(GroupedMatmulV5)

}  // extern "C"
