/* Clients on a machine without certificate authorities: the environment names none. */
#include <seatkeeper.h>

#include "check.h"

static int32_t opened(const char *servers) {
    sk_options options = { .size = sizeof options, .server = servers, .license_key = "NONE" };
    sk_client *client;
    sk_error *error;
    int32_t result = sk_client_open(&options, &client, &error);
    if (result == SK_OK) {
        sk_client_close(client, 2000);
    } else {
        CHECK(strcmp(sk_error_code(error), "offline") == 0);
        CHECK(strstr(sk_error_message(error), "certificate authorities: install them") != NULL);
        sk_error_free(error);
    }
    return result;
}

int main(void) {
    CHECK_RESULT(opened("http://127.0.0.1:1"), SK_OK);
    CHECK_RESULT(opened("http://127.0.0.1:1 HTTP://127.0.0.1:2"), SK_OK);
    CHECK_RESULT(opened("https://127.0.0.1:1"), SK_UNREACHABLE);
    CHECK_RESULT(opened("http://127.0.0.1:1 https://127.0.0.1:2"), SK_UNREACHABLE);
    puts("ok");
    return 0;
}
