/* A server whose certificate is signed by an authority that the system does not know.
 *
 * SEATS_URL is the server, SEATS_CA the file of the authority, SEATS_OTHER_CA the file of another one, and SEATS_NO_CA a file
 * without a certificate. */
#define _DEFAULT_SOURCE

#include <seatkeeper.h>

#include "check.h"

/* Acquires a seat, and checks the result and a part of the message. */
static void acquire(const char *ca_file, int32_t wanted_result, const char *wanted_message) {
    sk_options options = { .size = sizeof options,
                           .server = variable("SEATS_URL"),
                           .license_key = "NONE",
                           .ca_file = ca_file };
    sk_request request = { .size = sizeof request, .machine_id = "m", .patience_ms = 200 };
    sk_client *client;
    sk_seat *seat = NULL;
    sk_error *error = NULL;
    int32_t result = sk_client_open(&options, &client, &error);
    if (result == SK_OK) {
        result = sk_acquire(client, &request, &seat, &error);
        sk_client_close(client, 2000);
    }
    CHECK(seat == NULL);
    if (result != wanted_result || strstr(sk_error_message(error), wanted_message) == NULL) {
        fprintf(stderr, "%s: %d %s\n", ca_file == NULL ? "no file" : ca_file, result, sk_error_json(error));
        exit(1);
    }
    sk_error_free(error);
}

int main(void) {
    acquire(NULL, SK_UNREACHABLE, "the server's certificate was not accepted. Remedy: name a CA file");
    acquire(variable("SEATS_OTHER_CA"), SK_UNREACHABLE, "the server's certificate was not accepted");
    acquire(variable("SEATS_NO_CA"), SK_MISUSE, "there is no certificate among the certificate authorities");
    acquire(variable("SEATS_CA"), SK_DENIED, "license"); /* the server answers */
    puts("ok");
    return 0;
}
