/* Measures sk_seat_check on a seat of a real server. Prints nanoseconds for each call, the best of ten rounds. */
#define _POSIX_C_SOURCE 200809L

#include <seatkeeper.h>

#include "check.h"

#include <time.h>

enum { CALLS = 1000000 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(void) {
    sk_options options = { .size = sizeof options, .server = variable("SEATS_URL"), .token = variable("SEATS_TOKEN") };
    sk_request request = { .size = sizeof request, .license_key = "MANY", .machine_id = "speed" };
    sk_client *client;
    sk_seat *seat;
    CHECK_RESULT(sk_client_open(&options, &client, NULL), SK_OK);
    CHECK_RESULT(sk_acquire(client, &request, &seat, NULL), SK_OK);
    double best = 1e9, clock = 1e9;
    for (int round = 0; round < 10; round++) {
        double began = now_ns();
        int bad = 0;
        for (int call = 0; call < CALLS; call++) {
            bad |= sk_seat_check(seat);
        }
        double each = (now_ns() - began) / CALLS;
        CHECK(bad == SK_OK);
        best = each < best ? each : best;
        struct timespec time;
        began = now_ns();
        for (int call = 0; call < CALLS; call++) {
            clock_gettime(CLOCK_MONOTONIC, &time);
        }
        each = (now_ns() - began) / CALLS;
        clock = each < clock ? each : clock;
    }
    printf("sk_seat_check: %.1f ns; clock_gettime alone: %.1f ns\n", best, clock);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(client, 2000), SK_OK);
    return 0;
}
