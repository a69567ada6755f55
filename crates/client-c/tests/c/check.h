/* The test harness: a failed check prints its place and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

#define CHECK_RESULT(call, wanted)                                                          \
    do {                                                                                    \
        int result_ = (int)(call), wanted_ = (int)(wanted);                                 \
        if (result_ != wanted_) {                                                           \
            fprintf(stderr, "%s:%d: %s is %d, want %d\n", __FILE__, __LINE__, #call, result_, wanted_); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

/* Whether a forked child may allocate: with the address sanitizer of gcc 12, another thread may hold a lock of the
 * allocator at the fork, for which the child then waits without end. */
#ifdef __SANITIZE_ADDRESS__
#define CHILD_MAY_ALLOCATE 0
#else
#define CHILD_MAY_ALLOCATE 1
#endif

/* Returns a variable of the environment, which must be set. */
static inline const char *variable(const char *name) {
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        exit(2);
    }
    return value;
}

#endif
