// SPDX-License-Identifier: Apache-2.0
// Every collective with 1, 2, 3, 4 and 8 ranks, each a process, against what
// the test computes for itself.
#include <math.h>

#include "cannsim/tests/ranks.h"

// Element i of rank r before anything happens: all different, also in size.
static int32_t In(int r, int i) { return 1000003 * (r + 1) + 3 * i; }

#define CALL(expression)                   \
  do {                                     \
    CHECK_IS((expression), HCCL_SUCCESS);  \
    OK(aclrtSynchronizeStream(r->stream)); \
  } while (0)

static int32_t* Filled(const Rank* r, int count) {
  int32_t* host = malloc(sizeof(int32_t) * (size_t)(count + 1));
  for (int i = 0; i < count; ++i) host[i] = In(r->rank, i);
  return host;
}

// Counts around the borders: none, fewer than ranks, more than a ring holds.
static const int kCounts[] = {0, 1, 3, 37, 300001};
#define N_COUNTS 5

static void AllReduce(Rank* r, int count, int in_place) {
  const size_t bytes = sizeof(int32_t) * (size_t)count;
  int32_t* host = Filled(r, count);
  void* send = OnDevice(host, bytes);
  void* recv = in_place ? send : OnDevice(NULL, bytes);
  CALL(HcclAllReduce(send, recv, (uint64_t)count, HCCL_DATA_TYPE_INT32,
                     HCCL_REDUCE_SUM, r->comm, r->stream));
  if (count > 0) ToHost(host, recv, bytes);
  for (int i = 0; i < count; ++i) {
    int64_t sum = 0;
    for (int q = 0; q < r->n; ++q) sum += In(q, i);
    if (host[i] != (int32_t)sum) {
      CHECK_IS(host[i], (int32_t)sum);
      break;
    }
  }
  OK(aclrtFree(send));
  if (!in_place) OK(aclrtFree(recv));
  free(host);
}

static void AllGather(Rank* r, int count, int in_place) {
  const size_t bytes = sizeof(int32_t) * (size_t)count;
  int32_t* host = Filled(r, count);
  int32_t* all = malloc(bytes * (size_t)r->n + 1);
  char* recv = OnDevice(NULL, bytes * (size_t)r->n);
  char* send =
      in_place ? recv + bytes * (size_t)r->rank : OnDevice(NULL, bytes);
  if (bytes > 0) {
    OK(aclrtMemcpy(send, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  CALL(HcclAllGather(send, recv, (uint64_t)count, HCCL_DATA_TYPE_INT32, r->comm,
                     r->stream));
  if (bytes > 0) ToHost(all, recv, bytes * (size_t)r->n);
  int wrong = 0;
  for (int q = 0; q < r->n; ++q) {
    for (int i = 0; i < count; ++i) wrong += all[q * count + i] != In(q, i);
  }
  CHECK_IS(wrong, 0);
  OK(aclrtFree(recv));
  if (!in_place) OK(aclrtFree(send));
  free(host);
  free(all);
}

static void ReduceScatter(Rank* r, int count) {
  const size_t bytes = sizeof(int32_t) * (size_t)count;
  int32_t* host = Filled(r, count * r->n);
  void* send = OnDevice(host, bytes * (size_t)r->n);
  void* recv = OnDevice(NULL, bytes);
  CALL(HcclReduceScatter(send, recv, (uint64_t)count, HCCL_DATA_TYPE_INT32,
                         HCCL_REDUCE_MAX, r->comm, r->stream));
  if (bytes > 0) ToHost(host, recv, bytes);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    wrong += host[i] != In(r->n - 1, r->rank * count + i);
  }
  CHECK_IS(wrong, 0);
  OK(aclrtFree(send));
  OK(aclrtFree(recv));
  free(host);
}

static void Broadcast(Rank* r, int count, int root) {
  const size_t bytes = sizeof(int32_t) * (size_t)count;
  int32_t* host = Filled(r, count);
  void* buffer = OnDevice(host, bytes);
  CALL(HcclBroadcast(buffer, (uint64_t)count, HCCL_DATA_TYPE_INT32,
                     (uint32_t)root, r->comm, r->stream));
  if (bytes > 0) ToHost(host, buffer, bytes);
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += host[i] != In(root, i);
  CHECK_IS(wrong, 0);
  OK(aclrtFree(buffer));
  free(host);
}

static void ReduceAndScatter(Rank* r, int count, int root) {
  const size_t bytes = sizeof(int32_t) * (size_t)count;
  int32_t* host = Filled(r, count * r->n);
  void* send = OnDevice(host, bytes * (size_t)r->n);
  void* recv = OnDevice(host, bytes);
  CALL(HcclReduce(send, recv, (uint64_t)count, HCCL_DATA_TYPE_INT32,
                  HCCL_REDUCE_MIN, (uint32_t)root, r->comm, r->stream));
  int32_t* got = malloc(bytes + 1);
  if (bytes > 0) ToHost(got, recv, bytes);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {  // only the root's changes
    wrong += got[i] != (r->rank == root ? In(0, i) : In(r->rank, i));
  }
  CHECK_IS(wrong, 0);
  CALL(HcclScatter(r->rank == root ? send : NULL, recv, (uint64_t)count,
                   HCCL_DATA_TYPE_INT32, (uint32_t)root, r->comm, r->stream));
  if (bytes > 0) ToHost(got, recv, bytes);
  for (int i = 0; i < count; ++i) {
    wrong += got[i] != In(root, r->rank * count + i);
  }
  CHECK_IS(wrong, 0);
  OK(aclrtFree(send));
  OK(aclrtFree(recv));
  free(got);
  free(host);
}

static void AlltoAll(Rank* r, int count) {
  const size_t bytes = sizeof(int32_t) * (size_t)count * (size_t)r->n;
  int32_t* host = Filled(r, count * r->n);
  void* send = OnDevice(host, bytes);
  void* recv = OnDevice(NULL, bytes);
  CALL(HcclAlltoAll(send, (uint64_t)count, HCCL_DATA_TYPE_INT32, recv,
                    (uint64_t)count, HCCL_DATA_TYPE_INT32, r->comm, r->stream));
  if (bytes > 0) ToHost(host, recv, bytes);
  int wrong = 0;
  for (int q = 0; q < r->n; ++q) {
    for (int i = 0; i < count; ++i) {
      wrong += host[q * count + i] != In(q, r->rank * count + i);
    }
  }
  CHECK_IS(wrong, 0);
  OK(aclrtFree(send));
  OK(aclrtFree(recv));
  free(host);
}

// From rank a to rank b: some nothing, some more than a ring; with holes.
static uint64_t Uneven(int a, int b) {
  if ((a + b) % 3 == 0) return 0;
  return (uint64_t)(a == 1 && b == 0 ? 150000 : 5 * a + 3 * b + 1);
}

static void AlltoAllV(Rank* r, int by_matrix) {
  uint64_t sends[8], receives[8], from[8], to[8], matrix[64];
  uint64_t n_send = 0, n_recv = 0;
  const uint64_t hole = by_matrix ? 0 : 2;
  for (int q = 0; q < r->n; ++q) {
    sends[q] = Uneven(r->rank, q);
    receives[q] = Uneven(q, r->rank);
    from[q] = n_send + hole;
    to[q] = n_recv + hole;
    n_send = from[q] + sends[q];
    n_recv = to[q] + receives[q];
    for (int p = 0; p < r->n; ++p) matrix[q * r->n + p] = Uneven(q, p);
  }
  int32_t* host = Filled(r, (int)n_send);
  void* send = OnDevice(host, n_send * 4);
  int32_t* got = malloc(n_recv * 4 + 4);
  for (uint64_t i = 0; i < n_recv; ++i) got[i] = -5;
  void* recv = OnDevice(got, n_recv * 4);
  if (by_matrix) {
    CALL(HcclAlltoAllVC(send, matrix, HCCL_DATA_TYPE_INT32, recv,
                        HCCL_DATA_TYPE_INT32, r->comm, r->stream));
  } else {
    CALL(HcclAlltoAllV(send, sends, from, HCCL_DATA_TYPE_INT32, recv, receives,
                       to, HCCL_DATA_TYPE_INT32, r->comm, r->stream));
  }
  if (n_recv > 0) ToHost(got, recv, n_recv * 4);
  int wrong = 0;
  for (int q = 0; q < r->n; ++q) {
    uint64_t begin = hole;  // where rank q keeps what is for us
    for (int p = 0; p < r->rank; ++p) begin += Uneven(q, p) + hole;
    for (uint64_t i = 0; i < receives[q]; ++i) {
      wrong += got[to[q] + i] != In(q, (int)(begin + i));
    }
    for (uint64_t i = 0; i < hole; ++i) wrong += got[to[q] - hole + i] != -5;
  }
  CHECK_IS(wrong, 0);
  OK(aclrtFree(send));
  OK(aclrtFree(recv));
  free(host);
  free(got);
}

// Rank q contributes q + 2 elements; then each rank reduces its own part.
static void VForms(Rank* r) {
  uint64_t counts[8], places[8];
  uint64_t all = 0;
  for (int q = 0; q < r->n; ++q) {
    counts[q] = (uint64_t)(q + 2) % 4;  // some have none
    places[q] = all;
    all += counts[q];
  }
  int32_t* host = Filled(r, (int)all + 8);
  void* send = OnDevice(host, (all + 8) * 4);
  void* recv = OnDevice(host, (all + 8) * 4);
  const uint64_t mine = counts[r->rank];
  CALL(HcclAllGatherV(send, mine, recv, counts, places, HCCL_DATA_TYPE_INT32,
                      r->comm, r->stream));
  ToHost(host, recv, (all + 8) * 4);
  int wrong = 0;
  for (int q = 0; q < r->n; ++q) {
    for (uint64_t i = 0; i < counts[q]; ++i) {
      wrong += host[places[q] + i] != In(q, (int)i);
    }
  }
  CALL(HcclReduceScatterV(send, counts, places, recv, mine,
                          HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, r->comm,
                          r->stream));
  ToHost(host, recv, (all + 8) * 4);
  for (uint64_t i = 0; i < mine; ++i) {
    int64_t sum = 0;
    for (int q = 0; q < r->n; ++q) sum += In(q, (int)(places[r->rank] + i));
    wrong += host[i] != (int32_t)sum;
  }
  CHECK_IS(wrong, 0);
  OK(aclrtFree(send));
  OK(aclrtFree(recv));
  free(host);
}

static void AllOfThem(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  uint32_t size = 0, rank = 99;
  CHECK_IS(HcclGetRankSize(r->comm, &size), HCCL_SUCCESS);
  CHECK_IS(HcclGetRankId(r->comm, &rank), HCCL_SUCCESS);
  CHECK_IS(size, r->n);
  CHECK_IS(rank, r->rank);
  for (int c = 0; c < N_COUNTS; ++c) {
    AllReduce(r, kCounts[c], c % 2);
    AllReduce(r, kCounts[c], (c + 1) % 2);
    if (r->n * kCounts[c] > 1000000) continue;
    AllGather(r, kCounts[c], 0);
    AllGather(r, kCounts[c], 1);
    ReduceScatter(r, kCounts[c]);
    AlltoAll(r, kCounts[c]);
    for (int root = 0; root < r->n; root += r->n == 8 ? 7 : 1) {
      Broadcast(r, kCounts[c], root);
      ReduceAndScatter(r, kCounts[c], root);
    }
  }
  AlltoAllV(r, 0);
  AlltoAllV(r, 1);
  VForms(r);
  CALL(HcclBarrier(r->comm, r->stream));
  Leave(r);
}

// --- Types and reductions ---

typedef struct {
  HcclDataType type;
  int bytes;
  int exponent_bits;  // 0: an integer
  int mantissa_bits;
  int is_signed;
} Type;

static const Type kTypes[] = {
    {HCCL_DATA_TYPE_INT8, 1, 0, 0, 1},    {HCCL_DATA_TYPE_INT16, 2, 0, 0, 1},
    {HCCL_DATA_TYPE_INT32, 4, 0, 0, 1},   {HCCL_DATA_TYPE_INT64, 8, 0, 0, 1},
    {HCCL_DATA_TYPE_UINT8, 1, 0, 0, 0},   {HCCL_DATA_TYPE_UINT16, 2, 0, 0, 0},
    {HCCL_DATA_TYPE_UINT32, 4, 0, 0, 0},  {HCCL_DATA_TYPE_UINT64, 8, 0, 0, 0},
    {HCCL_DATA_TYPE_INT128, 16, 0, 0, 1}, {HCCL_DATA_TYPE_FP16, 2, 5, 10, 1},
    {HCCL_DATA_TYPE_BFP16, 2, 8, 7, 1},   {HCCL_DATA_TYPE_FP32, 4, 8, 23, 1},
    {HCCL_DATA_TYPE_FP64, 8, 11, 52, 1},  {HCCL_DATA_TYPE_FP8E4M3, 1, 4, 3, 1},
    {HCCL_DATA_TYPE_FP8E5M2, 1, 5, 2, 1},
};

// The value of a code of a small float.
static double ValueOf(const Type* t, uint64_t code) {
  const int m = t->mantissa_bits;
  const int e = (int)(code >> m) & ((1 << t->exponent_bits) - 1);
  const double fraction = ldexp((double)(code & ((1U << m) - 1)), -m);
  const int bias = (1 << (t->exponent_bits - 1)) - 1;
  const double size =
      e == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, e - bias);
  return (code >> (m + t->exponent_bits) & 1) != 0 ? -size : size;
}

// The code that lies nearest, among all of them; of two the even one.
static uint64_t Nearest(const Type* t, double x) {
  uint64_t best = 0;
  double distance = INFINITY;
  for (uint64_t code = 0; code < 1ULL << (8 * t->bytes); ++code) {
    const double d = fabs(ValueOf(t, code) - x);
    if (d < distance || (d == distance && code % 2 == 0 && best % 2 != 0)) {
      best = code;
      distance = d;
    }
  }
  return best;
}

#define N_VALUES 23

// A code of the type for element i of rank r: small, of both signs.
static void Encode(const Type* t, int r, int i, void* out) {
  const int whole = (13 * r + 29 * i) % 11 + 1 - (t->is_signed ? 5 : 0);
  if (t->exponent_bits == 0) {
    const long long wide[2] = {whole, whole < 0 ? -1 : 0};
    memcpy(out, wide, (size_t)t->bytes);
  } else if (t->type == HCCL_DATA_TYPE_FP64) {
    const double x = whole / 7.0;
    memcpy(out, &x, 8);
  } else if (t->type == HCCL_DATA_TYPE_FP32) {
    const float x = (float)(whole / 7.0);
    memcpy(out, &x, 4);
  } else {
    const uint64_t code = Nearest(t, whole / 7.0);
    memcpy(out, &code, (size_t)t->bytes);
  }
}

static double Decode(const Type* t, const void* in) {
  if (t->type == HCCL_DATA_TYPE_FP64) {
    double x;
    memcpy(&x, in, 8);
    return x;
  }
  if (t->type == HCCL_DATA_TYPE_FP32) {
    float x;
    memcpy(&x, in, 4);
    return x;
  }
  uint64_t code = 0;
  memcpy(&code, in, (size_t)(t->bytes > 8 ? 8 : t->bytes));
  if (t->exponent_bits > 0) return ValueOf(t, code);
  const int shift = t->bytes >= 8 ? 0 : 64 - 8 * t->bytes;
  return t->is_signed ? (double)((int64_t)(code << shift) >> shift)
                      : (double)code;
}

static double Joined(HcclReduceOp op, double a, double b) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return a + b;
    case HCCL_REDUCE_PROD:
      return a * b;
    case HCCL_REDUCE_MAX:
      return a > b ? a : b;
    default:
      return a < b ? a : b;
  }
}

static void OneType(Rank* r, const Type* t, HcclReduceOp op) {
  unsigned char mine[N_VALUES * 16], got[N_VALUES * 16], other[16];
  const size_t bytes = (size_t)(N_VALUES * t->bytes);
  for (int i = 0; i < N_VALUES; ++i) Encode(t, r->rank, i, mine + i * t->bytes);
  void* buffer = OnDevice(mine, bytes);
  CALL(
      HcclAllReduce(buffer, buffer, N_VALUES, t->type, op, r->comm, r->stream));
  ToHost(got, buffer, bytes);
  for (int i = 0; i < N_VALUES; ++i) {
    Encode(t, 0, i, other);
    double want = Decode(t, other);
    for (int q = 1; q < r->n; ++q) {
      Encode(t, q, i, other);
      want = Joined(op, want, Decode(t, other));
    }
    if (t->exponent_bits == 0) {  // wraps
      const int64_t whole[2] = {(int64_t)want, want < 0 ? -1 : 0};
      want = Decode(t, whole);
    }
    if (t->type == HCCL_DATA_TYPE_FP32) want = (double)(float)want;
    if (t->exponent_bits > 0 && t->bytes <= 2) {
      want = ValueOf(t, Nearest(t, want));
    }
    const double is = Decode(t, got + i * t->bytes);
    if (is != want) {
      printf("type %d, reduction %d: element %d is %.17g, not %.17g\n",
             (int)t->type, (int)op, i, is, want);
      CHECK(0);
    }
  }
  OK(aclrtFree(buffer));
}

static void Types(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  for (size_t k = 0; k < sizeof(kTypes) / sizeof(kTypes[0]); ++k) {
    for (int op = 0; op < 4; ++op) OneType(r, &kTypes[k], (HcclReduceOp)op);
  }
  Leave(r);
}

// Integers wrap; NaN wins; every rank gets the same bits of a sum whose order
// matters.
static void Borders(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  const int8_t small = 100;
  void* buffer = OnDevice(&small, 1);
  CALL(HcclAllReduce(buffer, buffer, 1, HCCL_DATA_TYPE_INT8, HCCL_REDUCE_SUM,
                     r->comm, r->stream));
  int8_t wrapped = 0;
  ToHost(&wrapped, buffer, 1);
  CHECK_IS(wrapped, (int8_t)(100 * r->n));
  const float parts[2] = {r->rank == 1 ? NAN : (float)r->rank,
                          r->rank == 0 ? 1e17F : 1.25F * (float)r->rank};
  void* floats = OnDevice(parts, 8);
  CALL(HcclAllReduce(floats, floats, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX,
                     r->comm, r->stream));
  CALL(HcclAllReduce((float*)floats + 1, (float*)floats + 1, 1,
                     HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, r->comm, r->stream));
  float got[2];
  ToHost(got, floats, 8);
  CHECK(isnan(got[0]));
  double sum = (double)1e17F;
  for (int q = 1; q < r->n; ++q) sum += (double)(1.25F * (float)q);
  CHECK(got[1] == (float)sum);
  // What can only be moved is not reduced.
  CHECK_IS(HcclAllReduce(floats, floats, 1, HCCL_DATA_TYPE_HIF8,
                         HCCL_REDUCE_SUM, r->comm, r->stream),
           HCCL_E_NOT_SUPPORT);
  CHECK_IS(HcclAllReduce(floats, floats, 1, HCCL_DATA_TYPE_FP8E8M0,
                         HCCL_REDUCE_MAX, r->comm, r->stream),
           HCCL_E_NOT_SUPPORT);
  CHECK_IS(HcclAllReduce(floats, floats, 1, HCCL_DATA_TYPE_FP32,
                         HCCL_REDUCE_RESERVED, r->comm, r->stream),
           HCCL_E_NOT_SUPPORT);
  CHECK_IS(HcclAllReduce(floats, floats, 1, HCCL_DATA_TYPE_RESERVED,
                         HCCL_REDUCE_SUM, r->comm, r->stream),
           HCCL_E_NOT_SUPPORT);
  CALL(HcclBroadcast(floats, 8, HCCL_DATA_TYPE_HIF8, 0, r->comm, r->stream));
  OK(aclrtFree(floats));
  OK(aclrtFree(buffer));
  Leave(r);
}

int main(void) {
  setenv("CANNSIM_DEVICES", "8", 1);
  const int sizes[] = {1, 2, 3, 4, 8};
  for (int i = 0; i < 5; ++i) {
    CHECK_IS(RunRanks(sizes[i], AllOfThem, NULL), 0);
  }
  CHECK_IS(RunRanks(2, Types, NULL), 0);
  CHECK_IS(RunRanks(5, Types, NULL), 0);
  CHECK_IS(RunRanks(3, Borders, NULL), 0);
  return FAILURES();
}
