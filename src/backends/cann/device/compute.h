// SPDX-License-Identifier: Apache-2.0
// The words that operators are composed of: one call, one operator of CANN.
// Outputs come first. Temporaries live until the Scope around them ends; work
// runs in order, so that their memory can be used again at once.
#ifndef BELAY_BACKENDS_CANN_DEVICE_COMPUTE_H_
#define BELAY_BACKENDS_CANN_DEVICE_COMPUTE_H_

#include <cstddef>
#include <span>

#include "backends/cann/device/array.h"
#include "backends/cann/device/launcher.h"
#include "cann_api/runtime.h"

namespace belay::cann {

inline constexpr aclDataType kF32 = cann_api::ACL_FLOAT;
inline constexpr aclDataType kBf16 = cann_api::ACL_BF16;
inline constexpr aclDataType kI16 = cann_api::ACL_INT16;
inline constexpr aclDataType kI32 = cann_api::ACL_INT32;
inline constexpr aclDataType kI64 = cann_api::ACL_INT64;
inline constexpr aclDataType kBool = cann_api::ACL_BOOL;

// Lower than any score: what is masked. Finite, so that differences stay
// numbers.
inline constexpr double kMasked = -3e38;

// Every operand begins at a multiple of this.
inline constexpr size_t kAlignment = 512;

class Compute {
 public:
  Compute(cann_api::Runtime& runtime, Launcher& launcher)
      : api_(runtime.api()), runtime_(runtime), launcher_(launcher) {}

  Launcher& launcher() { return launcher_; }
  void SetScratch(std::span<std::byte> scratch) { scratch_ = scratch; }
  size_t scratch_left() const { return scratch_.size() - used_; }
  // An event to record behind writes into caches: some versions run the
  // operator behind such a write before it otherwise.
  void SetFence(cann_api::aclrtEvent event) { fence_ = event; }

  // Gives temporaries back at its end.
  class Scope {
   public:
    explicit Scope(Compute& compute)
        : compute_(compute), used_(compute.used_) {}
    ~Scope() { compute_.used_ = used_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Compute& compute_;
    size_t used_;
  };

  // Contiguous, not initialised. A fault when the scratch memory is full.
  Array Temp(aclDataType dtype, Dims dims);

  // --- Copies; `in` may be a view with repeated axes ---
  void Cast(const Array& out, const Array& in);
  void Fill(const Array& out, double value);
  // out[i] = table[index[i]], rows of a table [n, width] (any width).
  void GatherRows(const Array& out, const Array& table, const Array& index);
  // out[i] = values[index[i]], a flat list.
  void GatherFlat(const Array& out, const Array& values, const Array& index);
  // table[index[i]] = rows[i].
  void ScatterRows(const Array& table, const Array& index, const Array& rows);

  // --- Element by element, with broadcasting ---
  void Add(const Array& out, const Array& a, const Array& b);
  void Sub(const Array& out, const Array& a, const Array& b);
  void Mul(const Array& out, const Array& a, const Array& b);
  void Div(const Array& out, const Array& a, const Array& b);
  void Equal(const Array& out, const Array& a, const Array& b);
  void Scale(const Array& a, double by);                        // a *= by
  void Offset(const Array& a, double by);                       // a += by
  void Times(const Array& a, const Array& b);                   // a *= b
  void Plus(const Array& a, const Array& b);                    // a += b
  void Greater(const Array& out, const Array& a, double than);  // BOOL
  void Abs(const Array& out, const Array& in);
  void AtLeast(const Array& out, const Array& in, double low);
  void Clamp(const Array& out, const Array& in, double low, double high);
  // a > than ? a : value; NaN is not greater.
  void Threshold(const Array& a, double than, double value);
  void Neg(const Array& out, const Array& in);
  void Sqrt(const Array& out, const Array& in);
  void Exp(const Array& out, const Array& in);
  void Sigmoid(const Array& out, const Array& in);
  void Softplus(const Array& out, const Array& in);  // linear above 20
  void Silu(const Array& out, const Array& in);
  void Cos(const Array& out, const Array& in);
  void Sin(const Array& out, const Array& in);

  // --- Along an axis ---
  void Sum(const Array& out, const Array& in, int axis);   // axis goes
  void Mean(const Array& out, const Array& in, int axis);  // axis stays as 1
  void Softmax(const Array& out, const Array& in, int axis);
  void Cumsum(const Array& out, const Array& in, int axis);
  // The k largest, largest first.
  void Largest(const Array& values, const Array& ids, const Array& in, int k,
               int axis);
  // Only their values.
  void Max(const Array& out, const Array& in, int axis);
  void ArgMax(const Array& out, const Array& in, int axis);
  void Argsort(const Array& out, const Array& in);  // ascending, last axis
  void RmsNorm(const Array& out, const Array& in, const Array& weight,
               double eps);
  // x [1, rows, 1 or heads, n]: pairs of neighbours are rotated.
  void Rotate(const Array& out, const Array& in, const Array& cos,
              const Array& sin);

  // --- Hyper-connections in one, where the libraries have it ---
  bool has_hc_pre() const;
  bool has_hc_post() const;
  // h [n, 4, dim]; out [n, 1] f32.
  void HcInverseRms(const Array& out, const Array& h, double eps);
  struct HcPreOut {
    Array x;     // [n, dim] h's dtype
    Array post;  // [n, 4] f32
    Array comb;  // [n, 4, 4] f32
  };
  struct HcPreIn {
    Array mixes;  // [n, 24] f32, not yet divided by the rms
    Array inverse_rms;
    Array scale;  // [3] f32
    Array base;   // [24] f32
    Array h;
  };
  void HcPreSinkhorn(const HcPreOut& out, const HcPreIn& in, int iterations,
                     double eps);
  void HcPost(const Array& out, const Array& y, const Array& h,
              const Array& post, const Array& comb);

  // --- Products ---
  void Matmul(const Array& out, const Array& a, const Array& b);
  // Rows of x sorted by expert; `ends` [experts] i64: where each one's end.
  void GroupedMatmul(const Array& out, const Array& x, const Array& weights,
                     const Array& ends);

 private:
  const cann_api::Api& api_;
  cann_api::Runtime& runtime_;
  Launcher& launcher_;
  std::span<std::byte> scratch_;
  size_t used_ = 0;
  cann_api::aclrtEvent fence_ = nullptr;
};

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_DEVICE_COMPUTE_H_
