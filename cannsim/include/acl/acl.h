// SPDX-License-Identifier: Apache-2.0
// The header that clients include: start and end of the process's use of acl,
// and all the rest.
#ifndef BELAY_CANNSIM_INCLUDE_ACL_ACL_H_
#define BELAY_CANNSIM_INCLUDE_ACL_ACL_H_

#include "acl/acl_base.h"
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

// Once a process; configPath is null or a JSON file. A second call returns
// 100002 and counts.
aclError aclInit(const char* configPath);
// Ends all uses at once, however often aclInit was called.
aclError aclFinalize(void);
// Ends one use and tells how many are left.
aclError aclFinalizeReference(uint64_t* refCount);
// versionStr takes at least 64 bytes.
aclError aclsysGetVersionStr(char* pkgName, char* versionStr);

#ifdef __cplusplus
}
#endif

#endif  // BELAY_CANNSIM_INCLUDE_ACL_ACL_H_
