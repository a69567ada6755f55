/* Holds a seat for a few seconds of work. */
#define _POSIX_C_SOURCE 200809L

#include <seatkeeper.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char KEY[] = "TOUR-2030";

/* Prints an error, frees it, and returns the exit code. */
static int fail(sk_error *error) {
    fprintf(stderr, "%s\n", sk_error_message(error));
    sk_error_free(error);
    return 1;
}

int main(void) {
    /* A container has no id of its own: SEATS_MACHINE names the machine there. */
    char id[SK_MACHINE_ID_SIZE];
    const char *machine = getenv("SEATS_MACHINE");
    if (machine == NULL) {
        if (sk_machine_id("com.example.tour", id, sizeof id) != SK_OK) {
            fprintf(stderr, "this machine has no id: set SEATS_MACHINE\n");
            return 1;
        }
        machine = id;
    }

    sk_options options = { .size = sizeof options, .server = getenv("SEATS_URL"), .license_key = KEY };
    sk_client *client;
    sk_error *error;
    if (sk_client_open(&options, &client, &error) != SK_OK) {
        return fail(error);
    }

    sk_request request = { .size = sizeof request, .machine_id = machine, .wait_ms = 300000 };
    sk_seat *seat;
    if (sk_acquire(client, &request, &seat, &error) != SK_OK) {
        sk_client_close(client, 0);
        return fail(error);
    }
    printf("the seat is held\n");
    for (int step = 1; step <= 3 && sk_seat_check(seat) >= 0; step++) {
        printf("step %d\n", step);
        sleep(1);
    }
    if (sk_seat_release(seat, 2000) == SK_OK) {
        printf("the seat is given back\n");
    }
    sk_seat_free(seat);
    sk_client_close(client, 2000);
    return 0;
}
