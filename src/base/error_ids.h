// SPDX-License-Identifier: Apache-2.0
// Every catalogue id that code can emit. Texts (English, Chinese), causes and
// fixes are in data/catalogue/errors/<area>.json; a test holds the two sides
// together. An id never changes its meaning and is never used again.
#ifndef BELAY_BASE_ERROR_IDS_H_
#define BELAY_BASE_ERROR_IDS_H_

#include "base/error.h"

namespace belay {

// The list is an X-macro so that a test can walk it: X(constant, id, code).
// clang-format off
#define BELAY_ERROR_IDS(X)                                                        \
  /* SYS: files, memory, the operating system */                                  \
  X(kSysUnreadable,        "SYS-001", kNotFound)           /* cannot open or read */  \
  X(kSysWriteFailed,       "SYS-002", kUnavailable)        /* cannot write, disk full */ \
  X(kSysOutOfMemory,       "SYS-003", kResourceExhausted)                         \
  X(kSysInterrupted,       "SYS-004", kCancelled)          /* Ctrl-C, SIGTERM */  \
  X(kSysTopology,          "SYS-005", kUnavailable)        /* cores and NUMA nodes unknown */ \
  /* CKPT: checkpoint files */                                                    \
  X(kCkptTruncated,        "CKPT-001", kDataLoss)          /* file shorter than its tensors */ \
  X(kCkptHeaderTooLong,    "CKPT-002", kDataLoss)          /* header longer than the file */ \
  X(kCkptHeaderMalformed,  "CKPT-003", kDataLoss)          /* header is not what the format says */ \
  X(kCkptBadOffsets,       "CKPT-004", kDataLoss)          /* overlap, out of range, size mismatch */ \
  X(kCkptWrongDtype,       "CKPT-005", kInvalidArgument)                          \
  X(kCkptWrongShape,       "CKPT-006", kInvalidArgument)                          \
  X(kCkptMissingTensor,    "CKPT-007", kNotFound)                                 \
  X(kCkptNanScale,         "CKPT-008", kDataLoss)          /* e8m0 255, NaN or inf f32 scale */ \
  X(kCkptUnknownTensor,    "CKPT-009", kInvalidArgument)   /* warning; error with --strict */ \
  X(kCkptBadIndex,         "CKPT-010", kDataLoss)          /* index and shards disagree */ \
  X(kCkptMissingShard,     "CKPT-011", kNotFound)                                 \
  X(kCkptDuplicateTensor,  "CKPT-012", kDataLoss)                                 \
  X(kCkptBadValue,         "CKPT-013", kDataLoss)          /* an expert id of tid2eid out of range */ \
  X(kCkptNotFound,         "CKPT-014", kNotFound)          /* no checkpoint in the folder */ \
  X(kCkptUnsliceable,      "CKPT-015", kInvalidArgument)   /* tp or ep does not divide */ \
  /* GGUF: GGUF files; what they share with safetensors is CKPT's */              \
  X(kGgufNotGguf,          "GGUF-001", kDataLoss)          /* magic or version */ \
  X(kGgufMalformed,        "GGUF-002", kDataLoss)          /* header cut off or not what the format says */ \
  X(kGgufArchitecture,     "GGUF-003", kInvalidArgument)   /* not deepseek4 */    \
  X(kGgufUnsupportedType,  "GGUF-004", kUnimplemented)     /* a tensor type that is not read */ \
  X(kGgufTokenizer,        "GGUF-005", kUnimplemented)     /* no tokenizer, or one of another kind */ \
  /* CONF: config.json */                                                         \
  X(kConfMissingKey,       "CONF-001", kInvalidArgument)                          \
  X(kConfUnknownModelType, "CONF-002", kInvalidArgument)                          \
  X(kConfBadValue,         "CONF-003", kInvalidArgument)   /* wrong type or out of range */ \
  X(kConfMalformed,        "CONF-004", kInvalidArgument)   /* not JSON */         \
  X(kConfInconsistent,     "CONF-005", kInvalidArgument)   /* two keys contradict */ \
  /* ARG: what the user typed */                                                  \
  X(kArgUsage,             "ARG-001", kInvalidArgument)                           \
  X(kArgThreads,           "ARG-002", kInvalidArgument)                           \
  X(kArgTokenOutOfRange,   "ARG-003", kInvalidArgument)                           \
  X(kArgEmptyPrompt,       "ARG-004", kInvalidArgument)                           \
  X(kArgBadTokens,         "ARG-005", kInvalidArgument)    /* not a list of ids */ \
  X(kArgUnknownBackend,    "ARG-006", kInvalidArgument)                           \
  X(kArgBadSampling,       "ARG-007", kInvalidArgument)                           \
  X(kArgUnknownId,         "ARG-008", kNotFound)           /* explain: no such id */ \
  X(kArgUnknownSimdTarget, "ARG-009", kInvalidArgument)                           \
  /* ENG: engine */                                                               \
  X(kEngContextTooLong,    "ENG-001", kInvalidArgument)    /* beyond the plan */  \
  X(kEngNoSlot,            "ENG-002", kResourceExhausted)                         \
  X(kEngMemoryBudget,      "ENG-003", kResourceExhausted)                         \
  X(kEngNotFinite,         "ENG-004", kInternal)           /* NaN or inf logits */ \
  X(kEngNoMtp,             "ENG-005", kInvalidArgument)    /* checkpoint has no MTP head */ \
  X(kEngQueueFull,         "ENG-006", kResourceExhausted)  /* try again later */  \
  X(kEngNoAdapter,         "ENG-007", kInvalidArgument)    /* no such adapter slot */ \
  /* BACK: back ends */                                                           \
  X(kBackUnavailable,      "BACK-001", kUnavailable)                              \
  X(kBackUnsupported,      "BACK-002", kUnimplemented)     /* operator or format refused */ \
  /* TOK: tokenizer.json, text and ids */                                         \
  X(kTokMalformed,         "TOK-001", kInvalidArgument)    /* not JSON */         \
  X(kTokBadField,          "TOK-002", kInvalidArgument)    /* missing, wrong type */ \
  X(kTokUnsupported,       "TOK-003", kUnimplemented)      /* another kind of tokenizer */ \
  X(kTokInconsistent,      "TOK-004", kInvalidArgument)    /* vocabulary, merges, added tokens disagree */ \
  X(kTokBadPattern,        "TOK-005", kUnimplemented)      /* a split pattern we cannot use */ \
  X(kTokMatchLimit,        "TOK-006", kResourceExhausted)  /* a split pattern backtracks too much */ \
  X(kTokTextTooLong,       "TOK-007", kInvalidArgument)    /* 2 GiB or more */    \
  X(kTokUnknownId,         "TOK-008", kInvalidArgument)    /* detokenize: no such token */ \
  /* CHAT: messages, prompts, completions */                                      \
  X(kChatBadJson,          "CHAT-001", kInvalidArgument)   /* not JSON */         \
  X(kChatBadField,         "CHAT-002", kInvalidArgument)   /* wrong type or missing */ \
  X(kChatUnknownRole,      "CHAT-003", kInvalidArgument)                          \
  X(kChatBadMessage,       "CHAT-004", kInvalidArgument)   /* the encoding cannot express it */ \
  X(kChatUnknownTask,      "CHAT-005", kInvalidArgument)                          \
  X(kChatBadTool,          "CHAT-006", kInvalidArgument)   /* tool or call without its function */ \
  X(kChatBadOption,        "CHAT-007", kInvalidArgument)   /* mode, effort, encoding */ \
  X(kChatNoThinkEnd,       "CHAT-010", kDataLoss)          /* 010 on: diagnostics of a completion */ \
  X(kChatCallMalformed,    "CHAT-011", kDataLoss)                                 \
  X(kChatCallCut,          "CHAT-012", kDataLoss)                                 \
  X(kChatCallRepaired,     "CHAT-013", kDataLoss)                                 \
  X(kChatStrayMarker,      "CHAT-014", kDataLoss)                                 \
  X(kChatStrayText,        "CHAT-015", kDataLoss)                                 \
  /* HTTP: the wire; 010 on: what a server answers before a request is one */    \
  X(kHttpCannotListen,     "HTTP-001", kUnavailable)       /* address in use, not allowed */ \
  X(kHttpBadUrl,           "HTTP-002", kInvalidArgument)                          \
  X(kHttpNoConnection,     "HTTP-003", kUnavailable)       /* refused, or it broke */ \
  X(kHttpBadAnswer,        "HTTP-004", kDataLoss)          /* not HTTP */         \
  X(kHttpTimeout,          "HTTP-005", kDeadlineExceeded)                         \
  X(kHttpCancelled,        "HTTP-006", kCancelled)         /* by ourselves */     \
  X(kHttpMalformedRequest, "HTTP-010", kInvalidArgument)   /* 400 */              \
  X(kHttpHeaderTooLarge,   "HTTP-011", kResourceExhausted) /* 431 */              \
  X(kHttpBodyTooLarge,     "HTTP-012", kResourceExhausted) /* 413 */              \
  X(kHttpTooSlow,          "HTTP-013", kDeadlineExceeded)  /* 408: header or body did not come */ \
  X(kHttpTooManyConnections, "HTTP-014", kResourceExhausted) /* 503 */            \
  /* API: requests to the server; 030 on: notes in an answer */                   \
  X(kApiBadField,          "API-002", kInvalidArgument)    /* wrong type, out of range, missing */ \
  X(kApiUnknownPath,       "API-003", kNotFound)                                  \
  X(kApiWrongMethod,       "API-004", kInvalidArgument)                           \
  X(kApiUnauthorized,      "API-005", kUnauthenticated)                           \
  X(kApiForbiddenOrigin,   "API-006", kPermissionDenied)   /* a foreign web page */ \
  X(kApiNotReady,          "API-010", kUnavailable)        /* the model loads */  \
  X(kApiUnknownModel,      "API-011", kNotFound)                                  \
  X(kApiUnsupported,       "API-012", kUnimplemented)                             \
  X(kApiDraining,          "API-013", kUnavailable)        /* the server ends */  \
  X(kApiDeadline,          "API-014", kDeadlineExceeded)                          \
  X(kApiFinishedTurn,      "API-017", kInvalidArgument)    /* nothing to answer */ \
  X(kApiIgnoredInThinking, "API-030", kInvalidArgument)                           \
  X(kApiUnknownField,      "API-031", kInvalidArgument)                           \
  X(kApiNoEffect,          "API-032", kInvalidArgument)                           \
  /* SRV: the server itself; 010 on: its canary */                                \
  X(kSrvOpenToAll,         "SRV-001", kFailedPrecondition) /* warning: no keys, not loopback */ \
  X(kSrvBadKeyFile,        "SRV-002", kInvalidArgument)                           \
  X(kSrvCanaryNotFinite,   "SRV-010", kInternal)                                  \
  X(kSrvCanaryNotRepeatable, "SRV-011", kInternal)         /* the same request twice */ \
  X(kSrvCanaryBatch,       "SRV-012", kInternal)           /* alone and in company */ \
  X(kSrvCanaryRepetition,  "SRV-013", kInternal)           /* warning */          \
  X(kSrvCanaryMarkers,     "SRV-014", kInternal)           /* warning */          \
  /* GRAM: structured output, schemas as grammars */                               \
  X(kGramBadSchema,        "GRAM-001", kInvalidArgument)   /* a keyword's value is wrong */ \
  X(kGramKeyword,          "GRAM-002", kUnimplemented)     /* a keyword that is not supported */ \
  X(kGramPattern,          "GRAM-003", kUnimplemented)     /* a pattern or format likewise */ \
  X(kGramUnsatisfiable,    "GRAM-004", kInvalidArgument)   /* no value is valid */ \
  X(kGramTooLarge,         "GRAM-005", kResourceExhausted)                        \
  X(kGramBadRef,           "GRAM-006", kInvalidArgument)   /* $ref leads nowhere */ \
  X(kGramOneOf,            "GRAM-007", kUnimplemented)     /* oneOf whose parts overlap */ \
  X(kGramTokenizer,        "GRAM-008", kUnimplemented)     /* a byte without a token */ \
  /* LOAD: the load test; 010 on: its findings */                                 \
  X(kLoadNoServer,         "LOAD-001", kUnavailable)                              \
  X(kLoadPrompts,          "LOAD-002", kInvalidArgument)   /* a line of --prompts */ \
  X(kLoadFailed,           "LOAD-010", kInternal)          /* requests without an answer */ \
  X(kLoadCut,              "LOAD-011", kDataLoss)          /* streams without an end */ \
  X(kLoadGarbage,          "LOAD-012", kDataLoss)                                 \
  X(kLoadRepeats,          "LOAD-013", kDataLoss)                                 \
  X(kLoadEmpty,            "LOAD-014", kDataLoss)                                 \
  X(kLoadDiffers,          "LOAD-015", kDataLoss)          /* greedy answers to one prompt */ \
  X(kLoadSlo,              "LOAD-016", kDeadlineExceeded)                         \
  X(kLoadClientLate,       "LOAD-017", kUnavailable)       /* warning: the client measures itself */ \
  /* CFG: configuration files of commands */                                      \
  X(kCfgMalformed,         "CFG-001", kInvalidArgument)    /* not TOML */         \
  X(kCfgUnknownKey,        "CFG-002", kInvalidArgument)                           \
  X(kCfgBadValue,          "CFG-003", kInvalidArgument)                           \
  /* CAPI: the C interface */                                                     \
  X(kCapiMisuse,           "CAPI-001", kInvalidArgument)   /* null, or a call out of place */ \
  /* PACK: files of `belay pack` */                                               \
  X(kPackNotPack,          "PACK-001", kDataLoss)          /* magic or version */ \
  X(kPackDamaged,          "PACK-002", kDataLoss)          /* cut off, or a checksum does not fit */ \
  X(kPackOtherLayout,      "PACK-003", kInvalidArgument)   /* packed for other kernels */ \
  X(kPackNeedsCpu,         "PACK-004", kInvalidArgument)   /* another back end, or exact numerics */ \
  /* TRACE: the test hooks */                                                     \
  X(kTraceBadTensor,       "TRACE-001", kInvalidArgument)  /* replay or inject tensor missing or misfit */ \
  /* DIAG: the catalogue itself */                                                \
  X(kDiagBadCatalogue,     "DIAG-001", kInvalidArgument)   /* a file breaks the schema */
// clang-format on

#define BELAY_DECLARE_ERROR_ID(name, text, status_code) \
  inline constexpr ErrorId name{text, absl::StatusCode::status_code};
BELAY_ERROR_IDS(BELAY_DECLARE_ERROR_ID)
#undef BELAY_DECLARE_ERROR_ID

}  // namespace belay

#endif  // BELAY_BASE_ERROR_IDS_H_
