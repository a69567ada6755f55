/* A system without room for one more thread: calls fail in time, with a result of their own, and succeed with room. */
#define _GNU_SOURCE
#include <seatkeeper.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "check.h"

static volatile int is_full;
static int started;

/* Takes the place of the system's function, also within the library. A thread inherits the signal mask of its creator, and
 * each thread of the library blocks the signals of the program. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    sigset_t mask;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    CHECK(sigismember(&mask, SIGPIPE) == 1 && sigismember(&mask, SIGTERM) == 1);
    memcpy(&create, &found, sizeof create);
    if (is_full) return EAGAIN;
    __sync_fetch_and_add(&started, 1);
    return create(thread, attributes, start, argument);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static sk_client *opened(sk_options options) {
    sk_client *client;
    options.size = sizeof options;
    options.server = variable("SEATS_URL");
    CHECK_RESULT(sk_client_open(&options, &client, NULL), SK_OK);
    return client;
}

static int32_t acquire(sk_client *client, uint32_t flags, sk_seat **seat, sk_error **error) {
    sk_request request = { .size = sizeof request, .license_key = "PROCESSES", .machine_id = "m", .flags = flags };
    request.patience_ms = 700;
    request.instance_id = flags & SK_PER_PROCESS ? NULL : "i";
    return sk_acquire(client, &request, seat, error);
}

/* Acquires without and with room for a thread. */
static void trial(sk_options options) {
    sk_client *client = opened(options);
    sk_seat *seat;
    sk_error *error;
    is_full = 1;
    double began = seconds();
    CHECK_RESULT(acquire(client, 0, &seat, &error), SK_UNREACHABLE);
    CHECK(seconds() - began < 10);
    CHECK(strcmp(sk_error_code(error), "offline") == 0);
    sk_error_free(error);
    is_full = 0;
    CHECK_RESULT(acquire(client, 0, &seat, NULL), SK_OK);
    is_full = 1;
    CHECK_RESULT(sk_seat_on_change(seat, NULL, NULL), SK_OK);
    CHECK_RESULT(sk_seat_check(seat), SK_OK);
    is_full = 0;
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(client, 2000), SK_OK);
}

/* The state directory is read on a thread. Without a thread the name is random, and the seat is held. */
static void trial_of_a_slot(sk_options options) {
    sk_client *client = opened(options);
    sk_seat *seat;
    char json[2048];
    int before = started;
    CHECK_RESULT(acquire(client, SK_PER_PROCESS, &seat, NULL), SK_OK);
    CHECK(started > before);
    CHECK(sk_seat_json(seat, json, sizeof json) < (int32_t)sizeof json && strstr(json, "\"warning\":null"));
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    sk_seat_free(seat);
    is_full = 1;
    /* The connection of the first acquire is open still, so the look-up of a name needs no thread. */
    CHECK_RESULT(acquire(client, SK_PER_PROCESS, &seat, NULL), SK_OK);
    is_full = 0;
    CHECK(sk_seat_json(seat, json, sizeof json) < (int32_t)sizeof json && strstr(json, "\"warning\":\"unusable: "));
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(client, 2000), SK_OK);
}

int main(void) {
    sk_options token = { .token = variable("SEATS_TOKEN"), .state_dir = variable("SEATS_STATE") };
    sk_options file = { .token_file = variable("SEATS_TOKEN_FILE"), .state_dir = variable("SEATS_STATE") };
    sk_client *client;
    sk_options options = token;
    options.size = sizeof options;
    options.server = variable("SEATS_URL");
    is_full = 1;
    CHECK_RESULT(sk_client_open(&options, &client, NULL), SK_INTERNAL);
    is_full = 0;
    trial(file);
    if (strstr(options.server, "localhost")) trial(token);
    trial_of_a_slot(token);
    puts("ok");
    return 0;
}
