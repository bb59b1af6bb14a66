// SPDX-License-Identifier: Apache-2.0
/*
 * Asks a checkpoint one question and prints the answer as it comes.
 *
 *   cc -std=c11 ask.c -I include -L lib -lbelay -o ask
 *   ./ask data/demo "What is error 507034?"
 */
#include <stdio.h>
#include <string.h>

#include "belay.h"

static int print_piece(void* user, belay_piece piece, const char* text,
                       size_t n_bytes) {
  (void)piece;
  return fwrite(text, 1, n_bytes, (FILE*)user) == n_bytes ? 0 : 1;
}

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, belay_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s CHECKPOINT QUESTION\n", argv[0]);
    return 2;
  }
  belay_model* model = NULL;
  belay_session* session = NULL;
  if (belay_model_load(argv[1], NULL, &model) != BELAY_OK) return fail("load");
  int code = 0;
  belay_generate_options options;
  belay_generate_options_init(&options);
  options.max_tokens = 64;
  belay_result result = {.struct_bytes = sizeof(result)};
  if (belay_session_new(model, &session) != BELAY_OK ||
      belay_session_message(session, "user", argv[2], strlen(argv[2])) !=
          BELAY_OK ||
      belay_generate(session, &options, print_piece, stdout, &result) !=
          BELAY_OK) {
    code = fail("generate");
  } else {
    printf("\n[%lld prompt tokens, %lld tokens generated]\n",
           (long long)result.n_prompt, (long long)result.n_generated);
  }
  belay_session_free(session);
  belay_model_free(model);
  return code;
}
