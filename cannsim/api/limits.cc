// SPDX-License-Identifier: Apache-2.0
// How many cores a device, a stream or a thread may use. Kept and told; the
// simulator's speed does not depend on them.
#include "acl/acl_rt.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Device;
using cannsim::Fail;
using cannsim::PeekLastError;
using cannsim::Process;
using cannsim::Stream;

int64_t All(aclrtDevResLimitType type) {
  const auto& profile = Process::Get().profile();
  return type == ACL_RT_DEV_RES_CUBE_CORE ? profile.n_cube_cores
                                          : profile.n_vector_cores;
}

// The limit of something that has both; -1 = not set.
template <typename T>
std::atomic<int64_t>& LimitOf(T& owner, aclrtDevResLimitType type) {
  return type == ACL_RT_DEV_RES_CUBE_CORE ? owner.cube_limit
                                          : owner.vector_limit;
}

int Check(aclrtDevResLimitType type, const void* value) {
  if (value == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "resource {} does not exist",
                static_cast<int>(type));
  }
  return ACL_SUCCESS;
}

int CheckAmount(aclrtDevResLimitType type, uint32_t value) {
  if (const int code = Check(type, &value); code != 0) return code;
  if (value == 0 || value > All(type)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} cores: there are 1 to {}",
                value, All(type));
  }
  return ACL_SUCCESS;
}

int64_t OfDevice(int id, aclrtDevResLimitType type) {
  const int64_t limit = LimitOf(Process::Get().device(id), type).load();
  return limit < 0 ? All(type) : limit;
}

int64_t OfStream(Stream& stream, aclrtDevResLimitType type) {
  const int64_t limit = LimitOf(stream, type).load();
  return limit < 0 ? OfDevice(stream.device(), type) : limit;
}

}  // namespace

extern "C" {

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                uint32_t* value) {
  CANNSIM_CALL(aclrtGetDeviceResLimit);
  if (const int code = Check(type, value); code != 0) return code;
  if (const int code = Process::Get().CheckDevice(deviceId); code != 0) {
    return code;
  }
  *value = static_cast<uint32_t>(OfDevice(deviceId, type));
  return ACL_SUCCESS;
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                uint32_t value) {
  CANNSIM_CALL(aclrtSetDeviceResLimit);
  if (const int code = CheckAmount(type, value); code != 0) return code;
  if (const int code = Process::Get().CheckDevice(deviceId); code != 0) {
    return code;
  }
  LimitOf(Process::Get().device(deviceId), type) = value;
  return ACL_SUCCESS;
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  CANNSIM_CALL(aclrtResetDeviceResLimit);
  if (const int code = Process::Get().CheckDevice(deviceId); code != 0) {
    return code;
  }
  Process::Get().device(deviceId).cube_limit = -1;
  Process::Get().device(deviceId).vector_limit = -1;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                uint32_t* value) {
  CANNSIM_CALL(aclrtGetStreamResLimit);
  if (const int code = Check(type, value); code != 0) return code;
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  *value = static_cast<uint32_t>(OfStream(*found, type));
  return ACL_SUCCESS;
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                uint32_t value) {
  CANNSIM_CALL(aclrtSetStreamResLimit);
  if (const int code = CheckAmount(type, value); code != 0) return code;
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  LimitOf(*found, type) = value;
  return ACL_SUCCESS;
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  CANNSIM_CALL(aclrtResetStreamResLimit);
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  found->cube_limit = -1;
  found->vector_limit = -1;
  return ACL_SUCCESS;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  CANNSIM_CALL(aclrtUseStreamResInCurrentThread);
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  cannsim::ThisThread().limits_of = found;
  return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  CANNSIM_CALL(aclrtUnuseStreamResInCurrentThread);
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  cannsim::ThisThread().limits_of.reset();
  return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type,
                                    uint32_t* value) {
  CANNSIM_CALL(aclrtGetResInCurrentThread);
  if (const int code = Check(type, value); code != 0) return code;
  const auto context = Process::Get().CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  const auto stream = cannsim::ThisThread().limits_of.lock();
  *value = static_cast<uint32_t>(stream != nullptr
                                     ? OfStream(*stream, type)
                                     : OfDevice(context->device, type));
  return ACL_SUCCESS;
}

}  // extern "C"
