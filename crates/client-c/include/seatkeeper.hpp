// Seatkeeper for C++11: owners of the handles of seatkeeper.h, and exceptions. Header-only.
#ifndef SEATKEEPER_HPP
#define SEATKEEPER_HPP

#include "seatkeeper.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace seatkeeper {

using Milliseconds = std::chrono::milliseconds;

// The time in which the library gives a seat back.
constexpr std::uint32_t release_ms = 2000;

namespace detail {

// Milliseconds for C: none below zero, and SK_FOREVER for what is longer than 49 days.
inline std::uint32_t milliseconds(Milliseconds span) {
    if (span.count() <= 0) return 0;
    if (span.count() >= static_cast<std::int64_t>(SK_FOREVER)) return SK_FOREVER;
    return static_cast<std::uint32_t>(span.count());
}

// A string for C: the default if empty.
inline const char *c_string(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

} // namespace detail

// A call that failed: what() is the message.
class Error : public std::runtime_error {
public:
    Error(std::int32_t result, const char *code, const char *message, const char *json)
        : std::runtime_error(message), result_(result), code_(code), json_(json) {}

    // SK_DENIED, SK_UNREACHABLE ...
    std::int32_t result() const noexcept { return result_; }
    // The code, such as "license-full".
    const std::string &code() const noexcept { return code_; }
    // The fields of the server's problem as a JSON object.
    const std::string &json() const noexcept { return json_; }

private:
    std::int32_t result_;
    std::string code_, json_;
};

namespace detail {

// Frees the error of a call, and throws what it said.
[[noreturn]] inline void raise(std::int32_t result, sk_error *error) {
    std::unique_ptr<sk_error, void (*)(sk_error *)> owner(error, sk_error_free);
    throw Error(result, sk_error_code(error), sk_error_message(error), sk_error_json(error));
}

inline void require(std::int32_t result, const char *message) {
    if (result < 0) throw Error(result, "misuse", message, "{}");
}

} // namespace detail

// The description of a client. Empty strings are the defaults of sk_options.
struct Options {
    std::string server, tenant, license_key, token, token_file, ca_file, app_name, app_version;
    Milliseconds connect_timeout = Milliseconds(0);
    bool event_streams = true;
    // The directory for Request::per_process; empty: that of the user.
    std::string state_dir;
    // False: no directory, and the names of processes are random.
    bool use_state_dir = true;
};

// The description of a seat. Empty strings are the defaults of sk_request.
struct Request {
    std::string machine_id, license_key, instance_id, metadata_json;
    Milliseconds wait = Milliseconds(0);
    Milliseconds patience = Milliseconds(0);
    // Names this process by a slot of the state directory: see SK_PER_PROCESS.
    bool per_process = false;
};

// A seat. The destructor frees the handle, and gives a held seat back in the background.
class Seat {
public:
    using OnChange = std::function<void(const sk_state &)>;

    explicit Seat(sk_seat *handle) noexcept : handle_(handle) {}
    Seat(Seat &&other) noexcept : handle_(other.handle_), listener_(std::move(other.listener_)) {
        other.handle_ = nullptr;
    }
    // Gives the seat of the left side back at once.
    Seat &operator=(Seat &&other) noexcept {
        Seat moved(std::move(other));
        std::swap(handle_, moved.handle_);
        std::swap(listener_, moved.listener_);
        return *this;
    }
    Seat(const Seat &) = delete;
    Seat &operator=(const Seat &) = delete;
    // The function may itself destroy the seat. On another thread the destructor waits until the function has returned.
    ~Seat() { sk_seat_free(handle_); }

    // SK_OK, SK_OFFLINE or SK_GRACE while the program may go on; below 0 otherwise.
    std::int32_t check() const noexcept { return sk_seat_check(handle_); }
    // True while the program may go on.
    bool held() const noexcept { return check() >= 0; }

    sk_state state() const {
        sk_state state = sk_state();
        state.size = sizeof state;
        detail::require(sk_seat_state(handle_, &state), "the seat has no state");
        return state;
    }

    // Waits for the next change. Returns false if nothing has changed within the time, and at once after the change to
    // SK_STATE_RELEASED, the last one.
    bool wait(Milliseconds timeout) {
        std::int32_t result = sk_seat_wait(handle_, detail::milliseconds(timeout), nullptr);
        if (result == SK_RELEASED) return false;
        detail::require(result, "the seat cannot be waited for");
        return result != SK_TIMEOUT;
    }

    // Calls `function` for each change, on a thread of the library; an empty function removes the old one. An exception of
    // the function ends there. The function may destroy the seat, assign to it and call on_change: what the function has
    // captured lives until the function returns. Unlike the other functions, on_change is for one thread at a time.
    void on_change(OnChange function) {
        detail::require(sk_seat_on_change(handle_, nullptr, nullptr), "the seat has no changes to tell");
        if (!function) return;
        if (!listener_) listener_ = std::make_shared<Listener>();
        listener_->replace(std::make_shared<OnChange>(std::move(function)));
        detail::require(sk_seat_on_change(handle_, &call, listener_.get()), "the seat has no changes to tell");
    }

    // Notes that the user did something.
    void activity() noexcept { sk_seat_activity(handle_); }

    // Gives the seat back. Returns true if the server has confirmed; false if Client::close has given the seat back.
    bool release(Milliseconds timeout = Milliseconds(release_ms)) noexcept {
        return sk_seat_release(handle_, detail::milliseconds(timeout)) == SK_OK;
    }

    // Stops the heartbeats without a release, if a second program of the machine keeps the seat.
    void leave() noexcept { sk_seat_leave(handle_); }

    // The seat as a JSON object: see sk_seat_json.
    std::string json() const {
        std::string text;
        std::int32_t length = sk_seat_json(handle_, nullptr, 0);
        // The text may grow between the two calls.
        while (length > 0 && static_cast<std::size_t>(length) >= text.size()) {
            text.resize(static_cast<std::size_t>(length) + 1);
            length = sk_seat_json(handle_, &text[0], text.size());
        }
        text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
        return text;
    }

    sk_seat *handle() const noexcept { return handle_; }

private:
    // The context of `call`: one address for all functions of the seat, because a function that is called at once may
    // replace itself while another thread is still in on_change.
    class Listener : public std::enable_shared_from_this<Listener> {
    public:
        std::shared_ptr<OnChange> function() {
            std::lock_guard<std::mutex> lock(mutex_);
            return function_;
        }
        void replace(std::shared_ptr<OnChange> function) {
            std::lock_guard<std::mutex> lock(mutex_);
            // The old function is destroyed with the parameter, after the unlock.
            function_.swap(function);
        }

    private:
        std::mutex mutex_;
        std::shared_ptr<OnChange> function_;
    };

    static void call(const sk_state *state, void *context) noexcept {
        // The function may destroy the seat, and with the seat the listener. Another thread waits for the end of this call.
        std::shared_ptr<Listener> listener = static_cast<Listener *>(context)->shared_from_this();
        std::shared_ptr<OnChange> function = listener->function();
        try {
            (*function)(*state);
        } catch (...) {
            // No exception may reach C.
        }
    }

    sk_seat *handle_;
    std::shared_ptr<Listener> listener_;
};

// A client of one server. The destructor gives back every seat.
class Client {
public:
    explicit Client(const Options &options) {
        sk_options raw = sk_options();
        raw.size = sizeof raw;
        raw.connect_timeout_ms = detail::milliseconds(options.connect_timeout);
        raw.server = detail::c_string(options.server);
        raw.tenant = detail::c_string(options.tenant);
        raw.license_key = detail::c_string(options.license_key);
        raw.token = detail::c_string(options.token);
        raw.token_file = detail::c_string(options.token_file);
        raw.ca_file = detail::c_string(options.ca_file);
        raw.app_name = detail::c_string(options.app_name);
        raw.app_version = detail::c_string(options.app_version);
        raw.flags = options.event_streams ? 0 : SK_NO_EVENT_STREAMS;
        raw.state_dir = options.use_state_dir ? detail::c_string(options.state_dir) : "";
        sk_error *error = nullptr;
        std::int32_t result = sk_client_open(&raw, &handle_, &error);
        if (result != SK_OK) detail::raise(result, error);
    }
    Client(Client &&other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
    // Closes the client of the left side at once.
    Client &operator=(Client &&other) noexcept {
        Client moved(std::move(other));
        std::swap(handle_, moved.handle_);
        return *this;
    }
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;
    ~Client() {
        if (handle_ != nullptr) sk_client_close(handle_, release_ms);
    }

    // Acquires a seat. Blocks until the server decides, or the wait is over. Throws Error.
    Seat acquire(const Request &request) {
        sk_request raw = sk_request();
        raw.size = sizeof raw;
        raw.wait_ms = detail::milliseconds(request.wait);
        raw.license_key = detail::c_string(request.license_key);
        raw.machine_id = detail::c_string(request.machine_id);
        raw.instance_id = detail::c_string(request.instance_id);
        raw.metadata_json = detail::c_string(request.metadata_json);
        raw.patience_ms = detail::milliseconds(request.patience);
        raw.flags = request.per_process ? SK_PER_PROCESS : 0;
        sk_seat *seat = nullptr;
        sk_error *error = nullptr;
        std::int32_t result = sk_acquire(handle_, &raw, &seat, &error);
        if (result != SK_OK) detail::raise(result, error);
        return Seat(seat);
    }

    // Ends every acquire in flight, from another thread.
    void cancel() noexcept { sk_acquire_cancel(handle_); }

    // Gives back every seat. Returns true if the server has confirmed. The client is empty afterwards.
    bool close(Milliseconds timeout = Milliseconds(release_ms)) noexcept {
        std::int32_t result = sk_client_close(handle_, detail::milliseconds(timeout));
        handle_ = nullptr;
        return result == SK_OK;
    }

private:
    sk_client *handle_ = nullptr;
};

// The id of this machine for the program `app_id`. Throws Error with SK_NO_MACHINE_ID in a container.
inline std::string machine_id(const std::string &app_id) {
    char id[SK_MACHINE_ID_SIZE];
    std::int32_t result = sk_machine_id(app_id.c_str(), id, sizeof id);
    if (result == SK_NO_MACHINE_ID) {
        throw Error(result, "no-machine-id", "this machine has no id: name the machine yourself", "{}");
    }
    detail::require(result, "the app id is empty");
    return id;
}

} // namespace seatkeeper

#endif
