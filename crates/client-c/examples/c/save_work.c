/* Edits a text in the terminal, and asks to save the work when the seat is lost.
 *
 * Usage: save_work FILE, with SEATS_URL, SEATS_KEY and SEATS_MACHINE in the environment. Each line of the input is work; an
 * empty line, or the end of the input, ends the program. */
#define _POSIX_C_SOURCE 200809L

#include <seatkeeper.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The ends of a pipe. The callback writes, and the loop over the terminal reads: no lock, and no call of the terminal from
 * a thread of the library. */
static int news[2];

static void on_change(const sk_state *state, void *context) {
    (void)context;
    if (write(news[1], state, sizeof *state) < 0) {
        /* The pipe is full: the loop looks at the seat anyway. */
    }
}

static int save(const char *path, const char *work, size_t length) {
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(work, 1, length, file) != length || fclose(file) != 0) {
        perror(path);
        return 1;
    }
    printf("saved %zu bytes to %s\n", length, path);
    return 0;
}

/* Returns the answer to a question: true for a line that begins with y, or without an answer. */
static int ask(const char *question) {
    char answer[16];
    printf("%s [Y/n] ", question);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) == NULL || (answer[0] != 'n' && answer[0] != 'N');
}

/* Edits until the input or the seat ends. Returns true if the work has to be saved without a question. */
static int edit(sk_seat *seat, char *work, size_t capacity, size_t *length) {
    struct pollfd sources[] = { { STDIN_FILENO, POLLIN, 0 }, { news[0], POLLIN, 0 } };
    for (;;) {
        printf("> ");
        fflush(stdout);
        if (poll(sources, 2, -1) < 0) {
            return 1;
        }
        if (sources[1].revents != 0) {
            sk_state state;
            if (read(news[0], &state, sizeof state) != (ssize_t)sizeof state) {
                return 1;
            }
            if (state.kind == SK_STATE_LOST) {
                printf("\nThe seat is lost: %s.\n", sk_reason_name(state.reason));
                return !ask("Save your work?") ? -1 : 1;
            }
            printf("\n%s\n", state.kind == SK_STATE_ACTIVE ? "The server answers again." : "The server does not answer.");
            continue;
        }
        char line[256];
        if (fgets(line, sizeof line, stdin) == NULL || line[0] == '\n') {
            return 1;
        }
        sk_seat_activity(seat);
        size_t added = strlen(line);
        if (*length + added > capacity) {
            printf("The text is full.\n");
            return 1;
        }
        memcpy(work + *length, line, added);
        *length += added;
    }
}

int main(int argc, char **argv) {
    if (argc != 2 || pipe(news) != 0) {
        fprintf(stderr, "usage: save_work FILE\n");
        return 2;
    }
    /* poll sees no line that stdio has read ahead. */
    setvbuf(stdin, NULL, _IONBF, 0);

    sk_options options = { .size = sizeof options,
                           .server = getenv("SEATS_URL"),
                           .license_key = getenv("SEATS_KEY"),
                           .app_name = "save_work" };
    sk_request request = { .size = sizeof request, .machine_id = getenv("SEATS_MACHINE") };
    sk_client *client = NULL;
    sk_seat *seat = NULL;
    sk_error *error = NULL;
    if (sk_client_open(&options, &client, &error) != SK_OK || sk_acquire(client, &request, &seat, &error) != SK_OK
        || sk_seat_on_change(seat, on_change, NULL) != SK_OK) {
        fprintf(stderr, "no seat: %s\n%s\n", sk_error_message(error), sk_error_json(error));
        sk_error_free(error);
        sk_seat_free(seat);
        if (client != NULL) {
            sk_client_close(client, 2000);
        }
        return 1;
    }

    static char work[65536];
    size_t length = 0;
    int status = edit(seat, work, sizeof work, &length) > 0 ? save(argv[1], work, length) : 0;
    sk_seat_free(seat);
    sk_client_close(client, 2000);
    return status;
}
