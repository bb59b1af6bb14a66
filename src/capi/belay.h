// SPDX-License-Identifier: Apache-2.0
/*
 * Belay in other programs: DeepSeek-V4 behind a C interface.
 *
 *   belay_model* model = NULL;
 *   belay_session* session = NULL;
 *   if (belay_model_load("path/to/checkpoint", NULL, &model) != BELAY_OK ||
 *       belay_session_new(model, &session) != BELAY_OK ||
 *       belay_session_message(session, "user", "Hello", 5) != BELAY_OK ||
 *       belay_generate(session, NULL, print_piece, NULL, NULL) != BELAY_OK) {
 *     fprintf(stderr, "%s\n", belay_last_error());
 *   }
 *   belay_session_free(session);
 *   belay_model_free(model);
 *
 * Texts are UTF-8 with their length in bytes; they need no zero at the end.
 * Every struct has a function that fills in its defaults, and its first member
 * is its size, so that later versions can add members at the end.
 *
 * Threads: a model may be shared by threads. Up to max_batch sessions generate
 * at once, each on the thread that called belay_generate, and share every step;
 * more of them wait for their turn, first come, first served. What a session
 * says does not depend on who runs beside it. A session belongs to one thread
 * at a time, but for belay_session_cancel, which any thread may call. No
 * function is for signal handlers.
 *
 * No exception and no abort leaves these functions for anything that input,
 * files or memory can cause.
 */
#ifndef BELAY_CAPI_BELAY_H_
#define BELAY_CAPI_BELAY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define BELAY_API __attribute__((visibility("default")))
#else
#define BELAY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct belay_model belay_model;
typedef struct belay_session belay_session;

typedef enum belay_status {
  BELAY_OK = 0,
  BELAY_ERROR = 1 /* belay_last_error and belay_last_error_id say which */
} belay_status;

/* The version of the library, as "0.1.0". */
BELAY_API const char* belay_version(void);

/* What went wrong in the last call of this thread that returned BELAY_ERROR:
 * "CKPT-014 path: ...", and its catalogue id alone ("CKPT-014"), which
 * `belay explain` knows. "" when nothing has. Valid until the next such call of
 * this thread. */
BELAY_API const char* belay_last_error(void);
BELAY_API const char* belay_last_error_id(void);

/* ---- models ---- */

typedef struct belay_model_options {
  size_t struct_bytes;
  const char* backend;   /* "cpu" or "ref" */
  int32_t n_threads;     /* 0 = one for each physical core */
  int64_t max_context;   /* tokens that a session may have */
  uint64_t memory_bytes; /* for caches and activations; 0 = no limit */
  uint64_t prefix_bytes; /* of it for kept prefixes: a session that goes on, or
                            two with a common beginning, compute it once */
  int32_t max_batch;     /* sessions that generate at once, each with caches of
                            max_context; default 1 */
} belay_model_options;

BELAY_API void belay_model_options_init(belay_model_options* options);

/* Opens the checkpoint in the folder `path`, checks and binds its weights and
 * places all memory. The folder is in the official layout: config.json,
 * *.safetensors and tokenizer.json. GGUF files and folders of `belay pack` are
 * not taken here: the error names the file that is missing. `options` may be
 * NULL. *model is NULL after an error. */
BELAY_API belay_status belay_model_load(const char* path,
                                        const belay_model_options* options,
                                        belay_model** model);

/* Frees a model without sessions; NULL does nothing. A model with sessions is
 * freed with the last of them. */
BELAY_API void belay_model_free(belay_model* model);

/* ---- sessions ---- */

/* An empty conversation. */
BELAY_API belay_status belay_session_new(belay_model* model,
                                         belay_session** session);
BELAY_API void belay_session_free(belay_session* session);

/* Adds text to the end, as it is: no chat encoding, no beginning-of-sentence
 * token. Text that spells a special token becomes that token. */
BELAY_API belay_status belay_session_feed(belay_session* session,
                                          const char* text, size_t n_bytes);

/* Adds a message: role is "system", "user", "assistant" or "tool". The prompt
 * is then DeepSeek's chat encoding, and each answer becomes the next message. A
 * session takes messages or plain text, not both. */
BELAY_API belay_status belay_session_message(belay_session* session,
                                             const char* role, const char* text,
                                             size_t n_bytes);

/* Tokens of the session so far, those of answers included. */
BELAY_API int64_t belay_session_tokens(const belay_session* session);

/* Ends a generation that runs in this session, from any thread. One that has
 * not begun is not affected. */
BELAY_API void belay_session_cancel(belay_session* session);

/* ---- generation ---- */

typedef struct belay_generate_options {
  size_t struct_bytes;
  int32_t max_tokens;
  float temperature; /* 0 = greedy */
  int32_t top_k;     /* 0 = all */
  float top_p;       /* (0, 1] */
  float min_p;       /* [0, 1] */
  uint64_t seed;     /* the same seed gives the same text */
  int32_t thinking;  /* messages only: 1 = reason before the answer */
} belay_generate_options;

BELAY_API void belay_generate_options_init(belay_generate_options* options);

typedef enum belay_piece {
  BELAY_CONTENT = 0,
  BELAY_REASONING = 1, /* with thinking */
  BELAY_TOOL_CALL = 2  /* a whole call: {"name": ..., "arguments": {...}} */
} belay_piece;

/* Called on the thread of belay_generate with each piece of text as it becomes
 * certain, while other sessions go on; `text` ends with a zero that n_bytes
 * does not count. Anything but 0 ends the generation. Must not call into the
 * same session, but for cancel. */
typedef int (*belay_text_fn)(void* user, belay_piece piece, const char* text,
                             size_t n_bytes);

typedef enum belay_finish {
  BELAY_STOP = 0,     /* the model ended its turn */
  BELAY_LENGTH = 1,   /* max_tokens, or the end of the context */
  BELAY_CANCELLED = 2 /* by belay_session_cancel or the callback */
} belay_finish;

typedef struct belay_result {
  size_t struct_bytes;
  belay_finish finish;
  int64_t n_prompt; /* tokens */
  int64_t n_cached; /* of them from kept prefixes */
  int64_t n_generated;
} belay_result;

/* Answers what the session holds. `options`, `on_text` and `result` may be
 * NULL; of a result that is not, struct_bytes must be set. What was generated
 * is part of the session afterwards, also when it was cut short. After an error
 * the session is as it was before. */
BELAY_API belay_status belay_generate(belay_session* session,
                                      const belay_generate_options* options,
                                      belay_text_fn on_text, void* user,
                                      belay_result* result);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* BELAY_CAPI_BELAY_H_ */
