// SPDX-License-Identifier: Apache-2.0
// Streams.
#include "acl/acl_rt.h"
#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Fail;
using cannsim::PeekLastError;
using cannsim::Process;
using cannsim::Stream;

// The stream of a handle that may be asked or waited for now.
std::shared_ptr<Stream> Waitable(aclrtStream handle) {
  auto stream = Process::Get().FindStream(handle);
  if (stream == nullptr) return nullptr;
  if (stream->IsOwnThread()) {
    Fail(ACL_ERROR_RT_PARAM_INVALID,
         "called from a callback of the same stream, which would wait for "
         "itself for ever");
    return nullptr;
  }
  if (const auto capture = stream->capture()) {
    capture->Invalidate();
    Fail(ACL_ERROR_RT_STREAM_CAPTURED, "stream {} is being captured",
         stream->id());
    return nullptr;
  }
  return stream;
}

int Create(aclrtStream* stream, uint32_t flags) {
  if (stream == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  std::shared_ptr<Stream> made;
  const int code = Process::Get().CreateStream(flags, &made);
  if (code == 0) *stream = made.get();
  return code;
}

int Destroy(aclrtStream handle, bool force) {
  Process& process = Process::Get();
  if (handle == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the stream is null");
  }
  const auto stream = process.FindStream(handle);
  if (stream == nullptr) return PeekLastError();
  if (stream == process.CurrentContext()->default_stream ||
      stream->IsOwnThread()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "a default stream, or the stream of the callback that calls, "
                "cannot be destroyed");
  }
  if (stream->capture() != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "stream {} is being captured",
                stream->id());
  }
  process.ForgetStream(stream, force);
  return ACL_SUCCESS;
}

int Synchronize(aclrtStream handle, int timeout_ms) {
  const auto stream = Waitable(handle);
  if (stream == nullptr) return PeekLastError();
  Process& process = Process::Get();
  cannsim::Add(cannsim::Count().host_syncs);
  process.device(stream->device()).waited = true;
  const int code = process.faults().OnCall(
      cannsim::FaultRule::What::kWait, "aclrtSynchronizeStream",
      stream->device(), static_cast<int>(stream->id()));
  if (code != 0) return code;
  return stream->Synchronize(timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

constexpr uint32_t kKnownFlags =
    ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT |
    ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

}  // namespace

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) {
  CANNSIM_CALL(aclrtCreateStream);
  return Create(stream, 0);
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t,
                                     uint32_t flag) {
  CANNSIM_CALL(aclrtCreateStreamWithConfig);
  if ((flag & ~kKnownFlags) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "flag {:#x} does not exist", flag);
  }
  return Create(stream, flag);
}

aclError aclrtDestroyStream(aclrtStream stream) {
  CANNSIM_CALL(aclrtDestroyStream);
  return Destroy(stream, /*force=*/false);
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  CANNSIM_CALL(aclrtDestroyStreamForce);
  return Destroy(stream, /*force=*/true);
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  CANNSIM_CALL(aclrtSynchronizeStream);
  return Synchronize(stream, -1);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream,
                                           int32_t timeout) {
  CANNSIM_CALL(aclrtSynchronizeStreamWithTimeout);
  if (timeout < -1) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "timeout {} is below -1", timeout);
  }
  return Synchronize(stream, timeout);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  CANNSIM_CALL(aclrtStreamQuery);
  if (status == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  const auto found = Waitable(stream);
  if (found == nullptr) return PeekLastError();
  found->LetGo();
  const auto* races = Process::Get().races();
  const auto order =
      races == nullptr ? nullptr : Process::Get().races()->At(found->id());
  const bool is_idle = found->IsIdle();
  if (is_idle && order != nullptr) Process::Get().races()->HostWaits(*order);
  *status = is_idle ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  CANNSIM_CALL(aclrtStreamGetId);
  if (streamId == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  *streamId = static_cast<int32_t>(found->id());
  return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  CANNSIM_CALL(aclrtSetStreamFailureMode);
  Process& process = Process::Get();
  const auto found = process.FindStream(stream);
  if (found == nullptr) return PeekLastError();
  if (mode > ACL_STOP_ON_FAILURE) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "mode {} does not exist", mode);
  }
  if (found->failure_mode_set.exchange(true)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "the failure mode of a stream can be set once only");
  }
  if (mode == ACL_STOP_ON_FAILURE) {
    process.CurrentContext()->failure->stop_on_failure = true;
  }
  return ACL_SUCCESS;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  CANNSIM_CALL(aclrtSetStreamOverflowSwitch);
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  found->overflow_switch = flag;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  CANNSIM_CALL(aclrtGetStreamOverflowSwitch);
  if (flag == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  *flag = found->overflow_switch.load();
  return ACL_SUCCESS;
}

aclError aclrtSetStreamAttribute(aclrtStream stream,
                                 aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  if (value == nullptr) {
    CANNSIM_CALL(aclrtSetStreamAttribute);
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  if (stmAttrType == ACL_STREAM_ATTR_FAILURE_MODE) {
    return aclrtSetStreamFailureMode(stream, value->failureMode);
  }
  CANNSIM_CALL(aclrtSetStreamAttribute);
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      found->overflow_switch = value->overflowSwitch;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      found->user_tag = value->userCustomTag;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      found->cache_op_info = value->cacheOpInfoSwitch;
      return ACL_SUCCESS;
    default:
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "attribute {} does not exist",
                  static_cast<int>(stmAttrType));
  }
}

aclError aclrtGetStreamAttribute(aclrtStream stream,
                                 aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  CANNSIM_CALL(aclrtGetStreamAttribute);
  if (value == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  Process& process = Process::Get();
  const auto found = process.FindStream(stream);
  if (found == nullptr) return PeekLastError();
  *value = {};
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      value->failureMode =
          process.CurrentContext()->failure->stop_on_failure ? 1 : 0;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      value->overflowSwitch = found->overflow_switch.load();
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      value->userCustomTag = found->user_tag.load();
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      value->cacheOpInfoSwitch = found->cache_op_info.load();
      return ACL_SUCCESS;
    default:
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "attribute {} does not exist",
                  static_cast<int>(stmAttrType));
  }
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  CANNSIM_CALL(aclrtSetOpWaitTimeout);
  // Seconds; 0 stands for ever.
  Process::Get().op_wait_timeout_ms =
      timeout == 0 ? -1 : int64_t{1000} * timeout;
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  CANNSIM_CALL(aclrtSetOpExecuteTimeOut);
  Process::Get().op_execute_timeout_s = timeout;
  return ACL_SUCCESS;
}

}  // extern "C"
