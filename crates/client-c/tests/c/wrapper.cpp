// Seats of a real server, through the C++ wrapper. The environment is that of seat.c.
#include <seatkeeper.hpp>

#include "check.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>

using seatkeeper::Client;
using seatkeeper::Error;
using seatkeeper::Milliseconds;
using seatkeeper::Options;
using seatkeeper::Request;
using seatkeeper::Seat;

static Options options() {
    Options options;
    options.server = variable("SEATS_URL");
    options.token = variable("SEATS_TOKEN");
    return options;
}

static Request request(const char *license, const char *machine) {
    Request request;
    request.license_key = license;
    request.machine_id = machine;
    return request;
}

static void end_session(const Seat &seat) {
    std::string json = seat.json();
    std::size_t start = json.find("\"session_id\":\"") + 14;
    std::string command = std::string(variable("SEATS_REVOKE")) + " " + json.substr(start, 36) + " >/dev/null";
    CHECK_RESULT(std::system(command.c_str()), 0);
}

static void seats_move_and_are_given_back_by_scopes() {
    Client client((options()));
    {
        Seat seat = client.acquire(request("ONE", "m"));
        CHECK(seat.held() && seat.state().kind == SK_STATE_ACTIVE && !seat.wait(Milliseconds(10)));
        Seat moved(std::move(seat));
        CHECK(moved.held() && !seat.held());
        seat = std::move(moved);
        Seat again = client.acquire(request("MANY", "again"));
        sk_seat *old = again.handle();
        again = std::move(seat);
        CHECK_RESULT(sk_seat_check(old), SK_MISUSE);
        seat = std::move(again);
        CHECK(seat.held());
        seat.activity();
    }
    Request wanted = request("ONE", "n");
    wanted.wait = std::chrono::seconds(10);
    Seat next = client.acquire(wanted);
    Client other(std::move(client));
    CHECK(next.release() && next.check() == SK_RELEASED);
    CHECK(other.close());
}

static void a_refusal_is_an_exception() {
    Client client((options()));
    Seat held = client.acquire(request("ONE", "m"));
    try {
        client.acquire(request("ONE", "n"));
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.result() == SK_DENIED && error.code() == "license-full");
        CHECK(error.json().find("\"machine_id\":\"m\"") != std::string::npos);
        CHECK(std::string(error.what()).find("license-full: All license seats") == 0);
    }
    try {
        Client none((Options()));
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.result() == SK_MISUSE);
    }
}

static void a_loss_is_told_to_a_function_and_exceptions_stay() {
    Client client((options()));
    Seat seat = client.acquire(request("MANY", "m"));
    std::promise<sk_state> lost;
    std::atomic<bool> has_thrown(false);
    seat.on_change([&](const sk_state &state) {
        if (has_thrown.exchange(true)) return;
        lost.set_value(state);
        throw std::runtime_error("planted");
    });
    end_session(seat);
    std::future<sk_state> told = lost.get_future();
    CHECK(told.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
    CHECK(told.get().reason == SK_REASON_REVOKED && !seat.held());
    std::promise<int> again;
    seat.on_change([&](const sk_state &state) { again.set_value(state.kind); });
    CHECK(again.get_future().get() == SK_STATE_LOST);
}

// Counts the destroyed copies of a function, and tells if this copy is whole.
struct Captured {
    explicit Captured(std::atomic<int> &destroyed) : destroyed_(destroyed), text_(100, 'x') {}
    Captured(const Captured &) = default;
    ~Captured() { ++destroyed_; }
    bool is_whole() const { return text_ == std::string(100, 'x'); }

private:
    std::atomic<int> &destroyed_;
    std::string text_;
};

// Sets a function that ends itself by `end`, and checks that what the function captured lives until the function returns.
static void end_within_the_function(Client &client, void (*end)(std::unique_ptr<Seat> &)) {
    std::unique_ptr<Seat> seat(new Seat(client.acquire(request("MANY", "m"))));
    std::promise<bool> whole;
    std::atomic<int> destroyed(0);
    auto captured = std::make_shared<Captured>(destroyed);
    std::unique_ptr<Seat> *place = &seat;
    std::promise<bool> *told = &whole;
    std::atomic<int> *count = &destroyed;
    seat->on_change([captured, place, told, count, end](const sk_state &) {
        end(*place);
        told->set_value(*count == 0 && captured->is_whole());
    });
    captured.reset();
    end_session(*seat);
    CHECK(whole.get_future().get());
    seat.reset();
    for (int tries = 0; destroyed == 0 && tries < 2000; ++tries) std::this_thread::sleep_for(Milliseconds(5));
    CHECK_RESULT(destroyed, 1);
}

static void a_function_may_free_or_replace_itself() {
    Client client((options()));
    end_within_the_function(client, [](std::unique_ptr<Seat> &seat) { seat.reset(); });
    end_within_the_function(client, [](std::unique_ptr<Seat> &seat) { seat->on_change([](const sk_state &) {}); });
    end_within_the_function(client, [](std::unique_ptr<Seat> &seat) { *seat = Seat(nullptr); });
}

// A function of a lost seat is called at once, while this thread is still in on_change.
static void a_function_that_is_called_at_once_may_replace_itself() {
    Client client((options()));
    Seat seat = client.acquire(request("MANY", "m"));
    end_session(seat);
    while (seat.held()) seat.wait(Milliseconds(1000));
    std::atomic<int> heard(0);
    for (int round = 1; round <= 500; ++round) {
        std::string text(100, 'x');
        seat.on_change([&heard, &seat, text](const sk_state &) {
            seat.on_change([&heard, text](const sk_state &) { heard += text == std::string(100, 'x'); });
            CHECK(text == std::string(100, 'x'));
        });
        while (heard < round) std::this_thread::yield();
    }
    seat.on_change(nullptr);
    CHECK_RESULT(heard, 500);
}

static void a_released_seat_has_no_change_to_wait_for() {
    Client client((options()));
    Seat seat = client.acquire(request("ONE", "m"));
    CHECK(seat.release());
    CHECK(seat.wait(Milliseconds(1000)) && seat.state().kind == SK_STATE_RELEASED);
    CHECK(!seat.wait(Milliseconds(1000)));
}

static void a_process_is_named_by_a_slot() {
    char folder[] = "/tmp/seatkeeper-wrapper-XXXXXX";
    CHECK(mkdtemp(folder) != nullptr);
    Options with_folder = options(), without = options();
    with_folder.state_dir = folder;
    without.use_state_dir = false;
    Request wanted = request("MANY", "m");
    auto name = [](const Seat &seat) {
        std::string json = seat.json();
        return json.substr(json.find("\"instance_id\":\"") + 15, 36);
    };
    wanted.per_process = true;
    std::string first, other;
    {
        Client client(with_folder);
        first = name(client.acquire(wanted));
    }
    {
        Client client(with_folder);
        CHECK(name(client.acquire(wanted)) == first);
    }
    {
        Client client(without);
        other = name(client.acquire(wanted));
        CHECK(other.size() == 36 && other != first);
    }
    CHECK_RESULT(std::system((std::string("rm -r ") + folder).c_str()), 0);
}

static void a_wait_is_cancelled() {
    Client client((options()));
    Seat held = client.acquire(request("ONE", "m"));
    Request wanted = request("ONE", "n");
    wanted.wait = std::chrono::hours(24 * 365);
    std::atomic<bool> is_over(false);
    std::thread canceller([&] {
        /* A cancel does nothing to an acquire that begins later. */
        while (!is_over) {
            std::this_thread::sleep_for(Milliseconds(300));
            client.cancel();
        }
    });
    try {
        client.acquire(wanted);
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.result() == SK_CANCELLED);
    }
    is_over = true;
    canceller.join();
}

int main() {
    seats_move_and_are_given_back_by_scopes();
    a_refusal_is_an_exception();
    a_loss_is_told_to_a_function_and_exceptions_stay();
    a_function_may_free_or_replace_itself();
    a_function_that_is_called_at_once_may_replace_itself();
    a_released_seat_has_no_change_to_wait_for();
    a_process_is_named_by_a_slot();
    a_wait_is_cancelled();
    std::puts("ok");
    return 0;
}
