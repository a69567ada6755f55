/* A program that takes the descriptors of the library away, as some do to become a daemon: the thread of the client ends, and
 * every call says so at once. */
#define _GNU_SOURCE
#include <seatkeeper.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"

/* Puts the null device in the place of each epoll descriptor of the process: a close would lead to foreign descriptors. */
static int take_descriptors(void) {
    int taken = 0, null = open("/dev/null", O_RDWR);
    CHECK(null >= 0);
    for (int fd = 3; fd < 256; fd++) {
        char link[64], to[64] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, to, sizeof to - 1) > 0 && strcmp(to, "anon_inode:[eventpoll]") == 0) {
            CHECK(dup2(null, fd) == fd);
            taken++;
        }
    }
    close(null);
    return taken;
}

static sk_client *client;

static int32_t acquire(const char *machine, sk_seat **seat, sk_error **error) {
    sk_request request = { .size = sizeof request, .license_key = "MANY", .machine_id = machine };
    return sk_acquire(client, &request, seat, error);
}

static void *wait_for_loss(void *seat) {
    sk_state state = { .size = sizeof state };
    CHECK_RESULT(sk_seat_wait(seat, SK_FOREVER, &state), SK_OK);
    CHECK_RESULT(state.kind, SK_STATE_LOST);
    CHECK_RESULT(state.reason, SK_REASON_OTHER);
    CHECK_RESULT(state.retry, 0);
    CHECK_RESULT(sk_seat_wait(seat, SK_FOREVER, &state), SK_RELEASED);
    return NULL;
}

int main(void) {
    sk_options options = { .size = sizeof options, .server = variable("SEATS_URL"), .token = variable("SEATS_TOKEN") };
    CHECK_RESULT(sk_client_open(&options, &client, NULL), SK_OK);
    sk_seat *seat, *none;
    sk_error *error;
    char json[2048];
    CHECK_RESULT(acquire("m", &seat, NULL), SK_OK);
    pthread_t waiting;
    CHECK(pthread_create(&waiting, NULL, wait_for_loss, seat) == 0);
    CHECK(take_descriptors() > 0);
    /* The call wakes the thread, which ends during the acquire. */
    CHECK_RESULT(acquire("n", &none, &error), SK_CLOSED);
    CHECK(strcmp(sk_error_code(error), "closed") == 0);
    sk_error_free(error);
    CHECK(pthread_join(waiting, NULL) == 0);
    CHECK_RESULT(sk_seat_check(seat), SK_LOST);
    CHECK(sk_seat_json(seat, json, sizeof json) > 0 && strstr(json, "\"reason\":\"client_ended\""));
    CHECK_RESULT(acquire("n", &none, NULL), SK_CLOSED);
    CHECK_RESULT(sk_seat_release(seat, 60000), SK_CLOSED);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(client, 60000), SK_CLOSED);
    puts("ok");
    return 0;
}
