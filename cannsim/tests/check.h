// SPDX-License-Identifier: Apache-2.0
// For the C programs of the tests: CHECK says what failed and goes on; main
// ends with FAILURES().
#ifndef BELAY_CANNSIM_TESTS_CHECK_H_
#define BELAY_CANNSIM_TESTS_CHECK_H_

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"

static int g_n_failures;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      ++g_n_failures;                                                 \
      printf("%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
    }                                                                 \
  } while (0)

#define CHECK_IS(expression, expected)                                \
  do {                                                                \
    const long long got_ = (long long)(expression);                   \
    const long long want_ = (long long)(expected);                    \
    if (got_ != want_) {                                              \
      ++g_n_failures;                                                 \
      printf("%s:%d: %s is %lld, not %lld\n  %s", __FILE__, __LINE__, \
             #expression, got_, want_, aclGetRecentErrMsg());         \
    }                                                                 \
  } while (0)

#define OK(expression) CHECK_IS(expression, ACL_SUCCESS)

#define FAILURES() \
  (printf("%d failures\n", g_n_failures), g_n_failures == 0 ? 0 : 1)

// A door in a stream: work behind it waits until it is opened. Proves order
// and concurrency without looking at a clock.
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int is_open;
  int reached;  // a callback stands in front of it, or has passed
} Door;

static inline void DoorInit(Door* door) {
  pthread_mutex_init(&door->mutex, NULL);
  pthread_cond_init(&door->changed, NULL);
  door->is_open = 0;
  door->reached = 0;
}

// The callback: aclrtLaunchHostFunc(stream, DoorWait, &door).
static inline void DoorWait(void* arg) {
  Door* door = (Door*)arg;
  pthread_mutex_lock(&door->mutex);
  door->reached = 1;
  pthread_cond_broadcast(&door->changed);
  while (!door->is_open) pthread_cond_wait(&door->changed, &door->mutex);
  pthread_mutex_unlock(&door->mutex);
}

static inline void DoorOpen(Door* door) {
  pthread_mutex_lock(&door->mutex);
  door->is_open = 1;
  pthread_cond_broadcast(&door->changed);
  pthread_mutex_unlock(&door->mutex);
}

// Waits until the stream has come to the door.
static inline void DoorAwait(Door* door) {
  pthread_mutex_lock(&door->mutex);
  while (!door->reached) pthread_cond_wait(&door->changed, &door->mutex);
  pthread_mutex_unlock(&door->mutex);
}

// A callback that counts.
static inline void AddOne(void* arg) { atomic_fetch_add((atomic_int*)arg, 1); }

#endif  // BELAY_CANNSIM_TESTS_CHECK_H_
