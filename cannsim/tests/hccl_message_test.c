// SPDX-License-Identifier: Apache-2.0
// Messages between ranks: chains, rings, batches, groups, two streams, and
// sides that do not fit.
#include "cannsim/tests/ranks.h"

#define MANY 200000  // int32: more than a ring of the simulator holds

static void Fill(int32_t* host, int count, int base) {
  for (int i = 0; i < count; ++i) host[i] = base * 1000003 + i;
}

static int Wrong(const void* device, int count, int base) {
  int32_t* host = malloc(sizeof(int32_t) * (size_t)count);
  int wrong = 0;
  ToHost(host, device, sizeof(int32_t) * (size_t)count);
  for (int i = 0; i < count; ++i) wrong += host[i] != base * 1000003 + i;
  free(host);
  return wrong;
}

static void* New(int count, int base) {
  int32_t* host = malloc(sizeof(int32_t) * (size_t)count);
  Fill(host, count, base);
  void* device = OnDevice(host, sizeof(int32_t) * (size_t)count);
  free(host);
  return device;
}

static const HcclDataType kInt = HCCL_DATA_TYPE_INT32;

// 0 -> 1 -> ... -> n - 1 -> 0, each sends on what it received.
static void Chain(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  const uint32_t next = (uint32_t)((r->rank + 1) % r->n);
  const uint32_t last = (uint32_t)((r->rank + r->n - 1) % r->n);
  void* buffer = New(MANY, r->rank == 0 ? 17 : 99);
  for (int round = 0; round < 3; ++round) {
    if (r->rank == 0) {
      CHECK_IS(HcclSend(buffer, MANY, kInt, next, r->comm, r->stream), 0);
      CHECK_IS(HcclRecv(buffer, MANY, kInt, last, r->comm, r->stream), 0);
    } else {
      CHECK_IS(HcclRecv(buffer, MANY, kInt, last, r->comm, r->stream), 0);
      CHECK_IS(HcclSend(buffer, MANY, kInt, next, r->comm, r->stream), 0);
    }
  }
  OK(aclrtSynchronizeStream(r->stream));
  CHECK_IS(Wrong(buffer, MANY, 17), 0);
  OK(aclrtFree(buffer));
  Leave(r);
}

// Everybody sends and receives at once: in a batch, in a group, on two
// streams; and two messages to one rank, and one to itself.
static void AtOnce(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  const uint32_t next = (uint32_t)((r->rank + 1) % r->n);
  const uint32_t last = (uint32_t)((r->rank + r->n - 1) % r->n);
  const uint32_t me = (uint32_t)r->rank;
  void* out = New(MANY, r->rank);
  void* small = New(3, 50 + r->rank);
  void* in[3] = {New(MANY, 77), New(3, 77), New(3, 77)};
  HcclSendRecvItem items[] = {
      {HCCL_RECV, in[0], MANY, kInt, last}, {HCCL_SEND, out, MANY, kInt, next},
      {HCCL_SEND, small, 3, kInt, next},    {HCCL_RECV, in[1], 3, kInt, last},
      {HCCL_SEND, small, 3, kInt, me},      {HCCL_RECV, in[2], 3, kInt, me},
  };
  CHECK_IS(HcclBatchSendRecv(items, 6, r->comm, r->stream), 0);
  OK(aclrtSynchronizeStream(r->stream));
  CHECK_IS(Wrong(in[0], MANY, (int)last), 0);
  CHECK_IS(Wrong(in[1], 3, 50 + (int)last), 0);
  CHECK_IS(Wrong(in[2], 3, 50 + r->rank), 0);

  void* group_in = New(MANY, 77);
  CHECK_IS(HcclGroupStart(), 0);
  CHECK_IS(HcclSend(out, MANY, kInt, next, r->comm, r->stream), 0);
  CHECK_IS(HcclRecv(group_in, MANY, kInt, last, r->comm, r->stream), 0);
  CHECK_IS(HcclGroupEnd(), 0);
  OK(aclrtSynchronizeStream(r->stream));
  CHECK_IS(Wrong(group_in, MANY, (int)last), 0);
  CHECK_IS(HcclGroupEnd(), HCCL_E_PARA);

  aclrtStream other = NULL;
  void* stream_in = New(MANY, 77);
  OK(aclrtCreateStream(&other));
  CHECK_IS(HcclSend(out, MANY, kInt, next, r->comm, r->stream), 0);
  CHECK_IS(HcclRecv(stream_in, MANY, kInt, last, r->comm, other), 0);
  OK(aclrtSynchronizeStream(other));
  OK(aclrtSynchronizeStream(r->stream));
  CHECK_IS(Wrong(stream_in, MANY, (int)last), 0);
  OK(aclrtDestroyStream(other));
  for (int i = 0; i < 3; ++i) OK(aclrtFree(in[i]));
  OK(aclrtFree(stream_in));
  OK(aclrtFree(group_in));
  OK(aclrtFree(small));
  OK(aclrtFree(out));
  Leave(r);
}

// Both sides are told; the next message goes.
static void Misfit(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = New(MANY, r->rank);
  const uint64_t counts[2] = {MANY, 5};
  const HcclDataType types[2] = {kInt, HCCL_DATA_TYPE_FP32};
  for (int what = 0; what < 2; ++what) {
    const uint64_t count = what == 0 ? counts[r->rank] : 7;
    const HcclDataType type = what == 1 ? types[r->rank] : kInt;
    CHECK_IS(r->rank == 0
                 ? HcclSend(buffer, count, type, 1, r->comm, r->stream)
                 : HcclRecv(buffer, count, type, 0, r->comm, r->stream),
             0);
    CHECK_IS(aclrtSynchronizeStream(r->stream),
             ACL_ERROR_RT_FFTS_PLUS_EXCEPTION);
    CHECK(strstr(aclGetRecentErrMsg(), "EI0005") != NULL);
    HcclResult async = HCCL_SUCCESS;
    CHECK_IS(HcclGetCommAsyncError(r->comm, &async), 0);
    CHECK_IS(async, HCCL_E_PARA);
  }
  CHECK_IS(r->rank == 0 ? HcclSend(buffer, 9, kInt, 1, r->comm, r->stream)
                        : HcclRecv(buffer, 9, kInt, 0, r->comm, r->stream),
           0);
  OK(aclrtSynchronizeStream(r->stream));
  CHECK_IS(Wrong(buffer, 9, 0), 0);
  OK(aclrtFree(buffer));
  Leave(r);
}

// A send waits for its receiver however small it is, as on a card: two that
// send first wait for each other, until the time is up.
static void Crossed(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = New(4, r->rank);
  const uint32_t other = (uint32_t)(1 - r->rank);
  CHECK_IS(HcclSend(buffer, 4, kInt, other, r->comm, r->stream), 0);
  CHECK_IS(HcclRecv(buffer, 4, kInt, other, r->comm, r->stream), 0);
  CHECK_IS(aclrtSynchronizeStream(r->stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
  CHECK(strstr(aclGetRecentErrMsg(), "EI0002") != NULL);
  OK(aclrtFree(buffer));
  Leave(r);
}

static void Refusals(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = New(4, 1);
  const HcclComm comm = r->comm;
  const aclrtStream s = r->stream;
  CHECK_IS(HcclSend(buffer, 4, kInt, 2, comm, s), HCCL_E_PARA);
  CHECK_IS(HcclSend(buffer, 4, kInt, 0, comm, s), HCCL_E_PARA);  // itself
  CHECK_IS(HcclSend(NULL, 4, kInt, 1, comm, s), HCCL_E_PTR);
  CHECK_IS(HcclSend(buffer, 4, kInt, 1, NULL, s), HCCL_E_PTR);
  CHECK_IS(HcclRecv(buffer, 4, (HcclDataType)13, 1, comm, s),
           HCCL_E_NOT_SUPPORT);
  CHECK_IS(HcclRecv(buffer, 400, kInt, 1, comm, s), HCCL_E_PARA);  // too long
  CHECK_IS(HcclBatchSendRecv(NULL, 1, comm, s), HCCL_E_PTR);
  HcclSendRecvItem item = {HCCL_SEND, buffer, 4, kInt, 1};
  CHECK_IS(HcclBatchSendRecv(&item, 0, comm, s), HCCL_E_PARA);
  item.sendRecvType = (HcclSendRecvType)2;
  CHECK_IS(HcclBatchSendRecv(&item, 1, comm, s), HCCL_E_PARA);
  OK(aclrtFree(buffer));
  Leave(r);
}

// Two ranks, so that rank 0 has somebody to send to.
static void RefusalsOfOne(Rank* r) {
  if (r->rank == 0) {
    Refusals(r);
  } else {
    Enter(r);
    CHECK_IS(Connect(r), HCCL_SUCCESS);
    Leave(r);
  }
}

int main(void) {
  setenv("CANNSIM_DEVICES", "8", 1);
  CHECK_IS(RunRanks(2, Chain, NULL), 0);
  CHECK_IS(RunRanks(4, Chain, NULL), 0);
  CHECK_IS(RunRanks(8, Chain, NULL), 0);
  CHECK_IS(RunRanks(2, AtOnce, NULL), 0);
  CHECK_IS(RunRanks(4, AtOnce, NULL), 0);
  CHECK_IS(RunRanks(2, Misfit, NULL), 0);
  CHECK_IS(RunRanks(2, RefusalsOfOne, NULL), 0);
  setenv("HCCL_EXEC_TIMEOUT", "300", 1);
  setenv("CANNSIM_HCCL_SECOND", "0.001", 1);
  CHECK_IS(RunRanks(2, Crossed, NULL), 0);
  return FAILURES();
}
