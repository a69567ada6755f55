/* Calls from places that run after the library's thread-local values are gone: a destructor of thread-specific data, and a
 * function of atexit. */
#define _POSIX_C_SOURCE 200809L
#include <seatkeeper.h>

#include <pthread.h>

#include "check.h"

static sk_client *client;
static pthread_key_t key;

static sk_seat *acquire(const char *license, uint32_t flags) {
    static int number;
    char machine[32];
    /* Two seats of one machine would be one session. */
    snprintf(machine, sizeof machine, "m%d", number++);
    sk_request request = { .size = sizeof request, .license_key = license, .machine_id = machine, .flags = flags };
    sk_seat *seat;
    CHECK_RESULT(sk_acquire(client, &request, &seat, NULL), SK_OK);
    return seat;
}

static void on_change(const sk_state *state, void *context) {
    (void)state;
    (void)context;
}

static void use(sk_seat *seat) {
    sk_state state = { .size = sizeof state };
    CHECK_RESULT(sk_seat_check(seat), SK_OK);
    CHECK_RESULT(sk_seat_state(seat, &state), SK_OK);
    CHECK_RESULT(state.kind, SK_STATE_ACTIVE);
    CHECK(sk_seat_json(seat, NULL, 0) > 0);
    CHECK_RESULT(sk_seat_activity(seat), SK_OK);
    CHECK_RESULT(sk_seat_wait(seat, 20, &state), SK_TIMEOUT);
    CHECK_RESULT(sk_seat_on_change(seat, on_change, NULL), SK_OK);
    CHECK_RESULT(sk_seat_on_change(seat, NULL, NULL), SK_OK);
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    sk_seat_free(seat);
}

static void refused(void) {
    sk_request request = { .size = sizeof request, .license_key = "NONE", .machine_id = "m" };
    sk_seat *seat;
    sk_error *error;
    CHECK_RESULT(sk_acquire(client, &request, &seat, &error), SK_DENIED);
    CHECK(strcmp(sk_error_code(error), "license-not-found") == 0);
    sk_error_free(error);
}

static sk_client *open_client(void) {
    sk_client *opened;
    sk_options options = { .size = sizeof options, .server = variable("SEATS_URL"), .token = variable("SEATS_TOKEN") };
    options.state_dir = variable("SEATS_STATE");
    CHECK_RESULT(sk_client_open(&options, &opened, NULL), SK_OK);
    return opened;
}

static void late(void *seat) {
    use(seat);
    use(acquire("MANY", 0));
    use(acquire("PROCESSES", SK_PER_PROCESS));
    refused();
    sk_client *own = open_client();
    CHECK_RESULT(sk_acquire_cancel(own), SK_OK);
    CHECK_RESULT(sk_client_close(own, 2000), SK_OK);
}

static void *end_thread(void *seat) {
    use(acquire("MANY", 0));
    pthread_setspecific(key, seat);
    return NULL;
}

static sk_seat *held;

static void at_exit(void) {
    late(held);
    CHECK_RESULT(sk_client_close(client, 2000), SK_OK);
    puts("ok");
}

int main(void) {
    client = open_client();
    use(acquire("MANY", 0));
    pthread_t thread;
    CHECK(pthread_key_create(&key, late) == 0);
    CHECK(pthread_create(&thread, NULL, end_thread, acquire("MANY", 0)) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    held = acquire("MANY", 0);
    CHECK(atexit(at_exit) == 0);
    return 0;
}
