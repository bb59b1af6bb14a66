// SPDX-License-Identifier: Apache-2.0
// Collectives between the devices of one host (libhccl.so).
#ifndef BELAY_CANNSIM_INCLUDE_HCCL_HCCL_H_
#define BELAY_CANNSIM_INCLUDE_HCCL_HCCL_H_

#include "acl/acl_base.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);
HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                uint32_t rank, HcclComm* comm);
HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks,
                                      const HcclRootInfo* rootInfo,
                                      uint32_t rank,
                                      const HcclCommConfig* config,
                                      HcclComm* comm);
HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank,
                                   HcclComm* comm);
HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                         HcclCommConfig* config,
                                         HcclComm* comm);
HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);
HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum,
                                   uint32_t* rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId,
                                   HcclCommConfig* config, HcclComm* subComm);
HcclResult HcclCommDestroy(HcclComm comm);
HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count,
                         HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                         aclrtStream stream);
HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount,
                         HcclDataType dataType, HcclComm comm,
                         aclrtStream stream);
HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf,
                          const void* recvCounts, const void* recvDispls,
                          HcclDataType dataType, HcclComm comm,
                          aclrtStream stream);
HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                             HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream);
HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts,
                              const void* sendDispls, void* recvBuf,
                              uint64_t recvCount, HcclDataType dataType,
                              HcclReduceOp op, HcclComm comm,
                              aclrtStream stream);
HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType,
                         uint32_t root, HcclComm comm, aclrtStream stream);
HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count,
                      HcclDataType dataType, HcclReduceOp op, uint32_t root,
                      HcclComm comm, aclrtStream stream);
HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                       HcclDataType dataType, uint32_t root, HcclComm comm,
                       aclrtStream stream);
HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount,
                        HcclDataType sendType, const void* recvBuf,
                        uint64_t recvCount, HcclDataType recvType,
                        HcclComm comm, aclrtStream stream);
HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts,
                         const void* sdispls, HcclDataType sendType,
                         const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream);
HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix,
                          HcclDataType sendType, const void* recvBuf,
                          HcclDataType recvType, HcclComm comm,
                          aclrtStream stream);
HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType,
                    uint32_t destRank, HcclComm comm, aclrtStream stream);
HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType,
                    uint32_t srcRank, HcclComm comm, aclrtStream stream);
HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum,
                             HcclComm comm, aclrtStream stream);
HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);
HcclResult HcclGroupStart(void);
HcclResult HcclGroupEnd(void);
HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
HcclResult HcclGetCommName(HcclComm comm, char* commName);
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
const char* HcclGetErrorString(HcclResult code);
uint32_t HcclGetCommConfigCapability(void);
HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue);
HcclResult HcclCommSuspend(HcclComm comm);
HcclResult HcclCommResume(HcclComm comm);

#ifdef __cplusplus
}
#endif

#endif  // BELAY_CANNSIM_INCLUDE_HCCL_HCCL_H_
