/* Prints the sizes, offsets and numbers of the header. */
#include <seatkeeper.h>

#include <stdio.h>

#define OFFSET(type, member) printf("%s %lld\n", #member, (long long)offsetof(type, member))
#define NUMBER(name) printf("%s %lld\n", #name, (long long)(name))
#define REASON(number) printf("%s %lld\n", sk_reason_name(number), (long long)(number))

int main(void) {
    printf("sk_options %lld\n", (long long)sizeof(sk_options));
    OFFSET(sk_options, server);
    OFFSET(sk_options, tenant);
    OFFSET(sk_options, token_file);
    OFFSET(sk_options, flags);
    OFFSET(sk_options, state_dir);
    printf("sk_request %lld\n", (long long)sizeof(sk_request));
    OFFSET(sk_request, license_key);
    OFFSET(sk_request, metadata_json);
    OFFSET(sk_request, patience_ms);
    OFFSET(sk_request, flags);
    printf("sk_state %lld\n", (long long)sizeof(sk_state));
    OFFSET(sk_state, retry);
    OFFSET(sk_state, remaining_ms);
    NUMBER(SK_OK);
    NUMBER(SK_OFFLINE);
    NUMBER(SK_GRACE);
    NUMBER(SK_TIMEOUT);
    NUMBER(SK_LOST);
    NUMBER(SK_UNCONFIRMED);
    NUMBER(SK_RELEASED);
    NUMBER(SK_DENIED);
    NUMBER(SK_UNREACHABLE);
    NUMBER(SK_CANCELLED);
    NUMBER(SK_CLOSED);
    NUMBER(SK_MISUSE);
    NUMBER(SK_NOT_OWNER);
    NUMBER(SK_INTERNAL);
    NUMBER(SK_NO_MACHINE_ID);
    NUMBER(SK_STATE_ACTIVE);
    NUMBER(SK_STATE_OFFLINE);
    NUMBER(SK_STATE_GRACE);
    NUMBER(SK_STATE_REACQUIRING);
    NUMBER(SK_STATE_LOST);
    NUMBER(SK_STATE_RELEASED);
    NUMBER(SK_FOREVER);
    NUMBER(SK_NO_EVENT_STREAMS);
    NUMBER(SK_PER_PROCESS);
    NUMBER(SK_MACHINE_ID_SIZE);
    printf("SK_ABI %lld\n", (long long)SK_ABI_MAJOR << 16 | SK_ABI_MINOR);
    REASON(SK_REASON_DEADLINE);
    REASON(SK_REASON_UNAUTHORIZED);
    REASON(SK_REASON_NOT_FOUND);
    REASON(SK_REASON_EXPIRED);
    REASON(SK_REASON_EVICTED);
    REASON(SK_REASON_SUPERSEDED);
    REASON(SK_REASON_UPGRADED);
    REASON(SK_REASON_REVOKED);
    REASON(SK_REASON_IDLE);
    REASON(SK_REASON_ENTITLEMENT_ENDED);
    REASON(SK_REASON_RELEASED);
    REASON(SK_REASON_ENDED);
    REASON(SK_REASON_OTHER);
    return 0;
}
