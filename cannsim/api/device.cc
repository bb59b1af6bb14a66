// SPDX-License-Identifier: Apache-2.0
// Devices and contexts.
#include <unistd.h>

#include "acl/acl_rt.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Fail;
using cannsim::Process;
using cannsim::Profile;

int Null() { return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument"); }

bool InfoOf(const Profile& p, int physical_id, aclrtDevAttr attribute,
            int64_t* value) {
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
      *value = p.n_ai_cpu_cores;
      return true;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      *value = p.n_cube_cores;
      return true;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      *value = p.n_vector_cores;
      return true;
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
      *value = static_cast<int64_t>(p.ub_bytes);
      return true;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = static_cast<int64_t>(p.memory_bytes);
      return true;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      *value = static_cast<int64_t>(p.l2_bytes);
      return true;
    case ACL_DEV_ATTR_PHY_CHIP_ID:
      *value = physical_id;
      return true;
    case ACL_DEV_ATTR_IS_VIRTUAL:
      *value = 0;
      return true;
    case ACL_DEV_ATTR_NPU_ARCH:
      *value = p.npu_arch;
      return true;
    default:
      return false;  // super pods and threads of a warp are not simulated
  }
}

}  // namespace

extern "C" {

const char* aclrtGetSocName() {
  const Process& process = Process::Get();
  const bool usable = process.settings().error.empty();
  return usable && process.n_devices() > 0 ? process.profile().name.c_str()
                                           : nullptr;
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  CANNSIM_CALL(aclrtGetRunMode);
  if (runMode == nullptr) return Null();
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  CANNSIM_CALL(aclrtGetDeviceCount);
  if (count == nullptr) return Null();
  *count = 0;
  if (const int code = Process::Get().CheckDevice(0); code != 0) return code;
  *count = static_cast<uint32_t>(Process::Get().n_devices());
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t deviceId) {
  CANNSIM_CALL(aclrtSetDevice);
  return Process::Get().SetDevice(deviceId);
}

aclError aclrtResetDevice(int32_t deviceId) {
  CANNSIM_CALL(aclrtResetDevice);
  return Process::Get().ResetDevice(deviceId, /*force=*/false);
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  CANNSIM_CALL(aclrtResetDeviceForce);
  return Process::Get().ResetDevice(deviceId, /*force=*/true);
}

aclError aclrtGetDevice(int32_t* deviceId) {
  CANNSIM_CALL(aclrtGetDevice);
  if (deviceId == nullptr) return Null();
  const auto context = Process::Get().CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *deviceId = context->device;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice() {
  return aclrtSynchronizeDeviceWithTimeout(-1);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  CANNSIM_CALL(aclrtSynchronizeDevice);
  Process& process = Process::Get();
  const auto context = process.CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  const int code = process.CheckNoCapture(context->device);
  if (code != 0) return code;
  return process.SynchronizeDevice(context->device, timeout);
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr,
                            int64_t* value) {
  CANNSIM_CALL(aclrtGetDeviceInfo);
  if (value == nullptr) return Null();
  Process& process = Process::Get();
  const auto id = static_cast<int>(deviceId);
  if (const int code = process.CheckDevice(id); code != 0) return code;
  const int physical = process.device(id).physical_id;
  if (InfoOf(process.profile(), physical, attr, value)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "attribute {} is not simulated",
              static_cast<int>(attr));
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                       aclrtUtilizationInfo* utilizationInfo) {
  CANNSIM_CALL(aclrtGetDeviceUtilizationRate);
  if (utilizationInfo == nullptr) return Null();
  Process& process = Process::Get();
  if (const int code = process.CheckDevice(deviceId); code != 0) return code;
  std::string error;
  const auto* memory = process.Memory(deviceId, &error);
  const auto used = memory == nullptr ? 0 : memory->used_bytes();
  *utilizationInfo = {};
  utilizationInfo->memoryUtilization =
      static_cast<int32_t>(100.0 * static_cast<double>(used) /
                           static_cast<double>(process.profile().memory_bytes));
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  CANNSIM_CALL(aclrtDeviceGetBareTgid);
  if (pid == nullptr) return Null();
  *pid = getpid();
  return ACL_SUCCESS;
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid,
                                       int32_t* const logicDevId) {
  CANNSIM_CALL(aclrtGetLogicDevIdByUserDevId);
  if (logicDevId == nullptr) return Null();
  Process& process = Process::Get();
  if (const int code = process.CheckDevice(userDevid); code != 0) return code;
  *logicDevId = process.device(userDevid).physical_id;
  return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags,
                                 int32_t* active) {
  CANNSIM_CALL(aclrtGetPrimaryCtxState);
  if (active == nullptr) return Null();
  Process& process = Process::Get();
  if (const int code = process.CheckDevice(deviceId); code != 0) return code;
  cannsim::Device& device = process.device(deviceId);
  const std::lock_guard lock(device.mutex);
  if (flags != nullptr) *flags = 0;
  *active = device.primary != nullptr ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                  int32_t peerDeviceId) {
  CANNSIM_CALL(aclrtDeviceCanAccessPeer);
  if (canAccessPeer == nullptr) return Null();
  Process& process = Process::Get();
  if (const int code = process.CheckDevice(deviceId); code != 0) return code;
  if (const int code = process.CheckDevice(peerDeviceId); code != 0) {
    return code;
  }
  if (deviceId == peerDeviceId) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "a device is no peer of itself");
  }
  *canAccessPeer = 1;
  return ACL_SUCCESS;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  CANNSIM_CALL(aclrtDeviceEnablePeerAccess);
  Process& process = Process::Get();
  const auto context = process.CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  if (const int code = process.CheckDevice(peerDeviceId); code != 0) {
    return code;
  }
  if (flags != 0 || peerDeviceId == context->device) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "flags must be 0 and the peer another device");
  }
  cannsim::Device& device = process.device(context->device);
  const std::lock_guard lock(device.mutex);
  device.peers.insert(peerDeviceId);
  return ACL_SUCCESS;
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  CANNSIM_CALL(aclrtDeviceDisablePeerAccess);
  Process& process = Process::Get();
  const auto context = process.CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  cannsim::Device& device = process.device(context->device);
  const std::lock_guard lock(device.mutex);
  if (device.peers.erase(peerDeviceId) == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "access to {} is not enabled",
                peerDeviceId);
  }
  return ACL_SUCCESS;
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  CANNSIM_CALL(aclrtSetDeviceSatMode);
  if (mode != ACL_RT_OVERFLOW_MODE_SATURATION &&
      mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "mode {} does not exist",
                static_cast<int>(mode));
  }
  Process::Get().saturation_mode = mode;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  CANNSIM_CALL(aclrtGetDeviceSatMode);
  if (mode == nullptr) return Null();
  *mode = static_cast<aclrtFloatOverflowMode>(
      Process::Get().saturation_mode.load());
  return ACL_SUCCESS;
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  CANNSIM_CALL(aclrtCreateContext);
  if (context == nullptr) return Null();
  Process& process = Process::Get();
  if (const int code = process.CheckDevice(deviceId); code != 0) return code;
  std::shared_ptr<cannsim::Context> made;
  const int code = process.CreateContext(deviceId, /*primary=*/false, &made);
  if (code != 0) return code;
  *context = made.get();
  cannsim::ThisThread().context = std::move(made);
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  CANNSIM_CALL(aclrtDestroyContext);
  return Process::Get().DestroyContext(context);
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  CANNSIM_CALL(aclrtSetCurrentContext);
  auto found = Process::Get().contexts.Find(context);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is no live context", context);
  }
  cannsim::ThisThread().context = std::move(found);
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  CANNSIM_CALL(aclrtGetCurrentContext);
  if (context == nullptr) return Null();
  const auto found = Process::Get().CurrentContext();
  if (found == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *context = found.get();
  return ACL_SUCCESS;
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  CANNSIM_CALL(aclrtCtxSetSysParamOpt);
  const auto context = Process::Get().CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  const std::lock_guard lock(context->mutex);
  context->options[opt] = value;
  return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  CANNSIM_CALL(aclrtSetSysParamOpt);
  Process& process = Process::Get();
  const std::lock_guard lock(process.options_mutex);
  process.options[opt] = value;
  return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  CANNSIM_CALL(aclrtGetSysParamOpt);
  if (value == nullptr) return Null();
  Process& process = Process::Get();
  const std::lock_guard lock(process.options_mutex);
  const auto it = process.options.find(opt);
  if (it == process.options.end()) {
    return Fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "option {} was never set",
                static_cast<int>(opt));
  }
  *value = it->second;
  return ACL_SUCCESS;
}

}  // extern "C"
