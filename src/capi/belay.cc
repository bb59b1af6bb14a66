// SPDX-License-Identifier: Apache-2.0
// The functions of belay.h: pointers are checked here, errors remembered.
#include "capi/belay.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "base/error_ids.h"
#include "capi/model.h"
#include "capi/session.h"

struct belay_model {
  std::shared_ptr<belay::capi::Model> model;
};
struct belay_session {
  explicit belay_session(std::shared_ptr<belay::capi::Model> model)
      : session(std::move(model)) {}
  belay::capi::Session session;
};

namespace {

using belay::ErrorIdOf;
using belay::MakeError;
using belay::Status;

// The one place of this library that outlives a call: C has no other way to
// ask what went wrong.
struct LastError {
  std::string text;
  std::string id;
};
LastError& Last() {
  thread_local LastError last;
  return last;
}

belay_status Keep(const Status& status) {
  if (status.ok()) return BELAY_OK;
  Last().text = std::string(status.message());
  Last().id = ErrorIdOf(status);
  return BELAY_ERROR;
}

Status Misuse(const char* where, const char* expected) {
  return MakeError(
      belay::kCapiMisuse,
      {.where = where, .what = "", .expected = expected, .got = ""});
}

// Runs `work`; memory that runs out is an error like any other.
template <typename Work>
belay_status Guarded(const char* where, Work work) {
  try {
    return Keep(work());
  } catch (const std::bad_alloc&) {
    return Keep(
        MakeError(belay::kSysOutOfMemory,
                  {.where = where, .what = "", .expected = "", .got = ""}));
  } catch (const std::exception& error) {
    return Keep(Misuse(where, error.what()));
  }
}

// The caller's struct, which may be older and shorter than ours.
template <typename T>
T Read(const T* given, void (*init)(T*)) {
  T options;
  init(&options);
  if (given != nullptr) {
    std::memcpy(&options, given, std::min(given->struct_bytes, sizeof(T)));
    options.struct_bytes = sizeof(T);
  }
  return options;
}

}  // namespace

const char* belay_version(void) { return BELAY_VERSION; }

const char* belay_last_error(void) { return Last().text.c_str(); }
const char* belay_last_error_id(void) { return Last().id.c_str(); }

void belay_model_options_init(belay_model_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_bytes = sizeof(*options);
  options->backend = "cpu";
  options->max_context = 4096;
  options->prefix_bytes = uint64_t{64} << 20;
  options->max_batch = 1;
}

belay_status belay_model_load(const char* path,
                              const belay_model_options* options,
                              belay_model** model) {
  return Guarded("belay_model_load", [&]() -> Status {
    if (model != nullptr) *model = nullptr;
    if (path == nullptr || model == nullptr) {
      return Misuse("belay_model_load", "path and model");
    }
    const auto read = Read(options, belay_model_options_init);
    if (read.backend == nullptr || read.max_context < 1 || read.max_batch < 1) {
      return Misuse("belay_model_options",
                    "a backend, max_context >= 1, max_batch >= 1");
    }
    BELAY_ASSIGN_OR_RETURN(auto loaded, belay::capi::LoadModel(path, read));
    *model = new belay_model{std::move(loaded)};
    return absl::OkStatus();
  });
}

void belay_model_free(belay_model* model) { delete model; }

belay_status belay_session_new(belay_model* model, belay_session** session) {
  return Guarded("belay_session_new", [&]() -> Status {
    if (session != nullptr) *session = nullptr;
    if (model == nullptr || session == nullptr) {
      return Misuse("belay_session_new", "model and session");
    }
    *session = new belay_session(model->model);
    return absl::OkStatus();
  });
}

void belay_session_free(belay_session* session) { delete session; }

belay_status belay_session_feed(belay_session* session, const char* text,
                                size_t n_bytes) {
  return Guarded("belay_session_feed", [&]() -> Status {
    if (session == nullptr || (text == nullptr && n_bytes > 0)) {
      return Misuse("belay_session_feed", "session and text");
    }
    return session->session.Feed({text, n_bytes});
  });
}

belay_status belay_session_message(belay_session* session, const char* role,
                                   const char* text, size_t n_bytes) {
  return Guarded("belay_session_message", [&]() -> Status {
    if (session == nullptr || role == nullptr ||
        (text == nullptr && n_bytes > 0)) {
      return Misuse("belay_session_message", "session, role and text");
    }
    return session->session.AddMessage(role, {text, n_bytes});
  });
}

int64_t belay_session_tokens(const belay_session* session) {
  return session == nullptr ? 0 : session->session.n_tokens();
}

void belay_session_cancel(belay_session* session) {
  if (session != nullptr) session->session.Cancel();
}

void belay_generate_options_init(belay_generate_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_bytes = sizeof(*options);
  options->max_tokens = 256;
  options->top_p = 1;
}

belay_status belay_generate(belay_session* session,
                            const belay_generate_options* options,
                            belay_text_fn on_text, void* user,
                            belay_result* result) {
  return Guarded("belay_generate", [&]() -> Status {
    if (session == nullptr) return Misuse("belay_generate", "a session");
    BELAY_ASSIGN_OR_RETURN(
        belay_result made,
        session->session.Generate(Read(options, belay_generate_options_init),
                                  {.on_text = on_text, .user = user}));
    if (result != nullptr) {
      const size_t n = std::min(result->struct_bytes, sizeof(made));
      made.struct_bytes = n;
      std::memcpy(result, &made, n);
    }
    return absl::OkStatus();
  });
}
