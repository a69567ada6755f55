"""A client with a list of servers."""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback
import unittest
from typing import Any
from unittest import mock

from seatkeeper import Client, Misuse, Offline
from seatkeeper._core.request import Call, Response
from seatkeeper._servers import Servers
from seatkeeper._transport import Server, Transport

from .scripted import GRANT, Arrived, Reply, scripted

ACQUIRE = "POST /api/v1/licenses/acquire"
CLOSED = "http://127.0.0.1:1"


def granting(*_: Any) -> Reply:
    return Reply(201, GRANT)


def take_and_give(client: Client, patience: float) -> None:
    client.license("K").acquire(machine="m", patience=patience).release()


class ServersTest(unittest.TestCase):
    def test_a_server_that_refuses_connections_is_passed_over_and_the_next_one_kept(self) -> None:
        with scripted(granting) as good, scripted(granting) as spare:
            with Client([CLOSED, good.url, spare.url], token="t") as client:
                for _ in range(3):
                    take_and_give(client, 0)
            self.assertEqual((len(good.arrived(ACQUIRE)), len(spare.arrived())), (3, 0))

    def test_a_503_without_retry_after_moves_on_and_one_with_it_stays(self) -> None:
        def busy(_: Arrived, earlier: int) -> Reply:
            return Reply(503, retry_after=1) if earlier == 0 else Reply(201, GRANT)

        with scripted(granting) as good:
            with scripted(lambda *_: Reply(503)) as gone, Client([gone.url, good.url], token="t") as client:
                take_and_give(client, 60)
            self.assertEqual((len(gone.arrived(ACQUIRE)), len(good.arrived(ACQUIRE))), (1, 1))
            with scripted(busy) as server, Client([server.url, good.url], token="t") as client:
                take_and_give(client, 60)
            self.assertEqual(len(server.arrived(ACQUIRE)), 2)

    def test_the_second_5xx_in_a_row_moves_on(self) -> None:
        for reply in (Reply(503, retry_after=1), Reply(502)):
            with self.subTest(status=reply.status), scripted(granting) as good:
                with scripted(lambda *_, reply=reply: reply) as cut_off:
                    with Client([cut_off.url, good.url], token="t") as client:
                        take_and_give(client, 60)
                    self.assertEqual((len(cut_off.arrived(ACQUIRE)), len(good.arrived(ACQUIRE))), (2, 1))

    def test_a_late_answer_of_a_node_that_was_left_counts_for_nothing_once_the_node_is_in_use_again(self) -> None:
        asyncio.run(self.answer_late())

    async def answer_late(self) -> None:
        answers = asyncio.Queue[Response]()
        busy, gone = Response(503, 1, b""), Response(503, None, b"")
        with mock.patch.object(Transport, "send", lambda *_: answers.get()):
            servers = Servers([Server("http://a", None, 1), Server("http://b", None, 1)])
            first = servers.in_use

            async def answered(response: Response) -> None:
                answers.put_nowait(response)
                await servers.send(Call("PATCH", "/"), "t", 1)

            late = asyncio.ensure_future(servers.send(Call("PATCH", "/"), "t", 1))
            await asyncio.sleep(0)
            self.assertIs(servers.in_use, first)
            waiting, answers = answers, asyncio.Queue[Response]()
            await answered(gone)
            self.assertIsNot(servers.in_use, first)
            await answered(gone)
            self.assertIs(servers.in_use, first)
            waiting.put_nowait(gone)
            await late
            self.assertIs(servers.in_use, first, "a late answer leaves the node")
            await answered(busy)
            self.assertIs(servers.in_use, first)
            await answered(busy)
            self.assertIsNot(servers.in_use, first)

    def test_a_broken_connection_moves_the_next_request_and_never_repeats_one(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, scripted(granting) as good:
            threading.Thread(target=break_all, args=(listener,), daemon=True).start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with Client([url, good.url], token="t") as client:
                with self.assertRaises(Offline) as offline:
                    take_and_give(client, 0)
                self.assertIn("broke before the answer", str(offline.exception))
                take_and_give(client, 0)

    def test_a_list_without_a_server_that_answers_is_offline_and_a_wrong_address_misuse(self) -> None:
        with Client([CLOSED, "http://127.0.0.1:2"], token="t") as client, self.assertRaises(Offline):
            take_and_give(client, 0)
        for urls in ([], [CLOSED, "seats"]):
            with self.assertRaises(Misuse):
                Client(urls, token="t")

    def test_the_error_of_an_address_with_a_password_shows_no_password(self) -> None:
        for url in (
            "https://ann:canary@seats.example",
            "https://ann:canary@seats.example:port",
            "https://ann:canary#4711@seats.example",
            "ftp://ann:canary@seats.example",
            "ann:canary@seats.example",
            "https://canary@seats.example",
        ):
            with self.assertRaises(Misuse) as misuse:
                Client(url, token="t")
            shown = traceback.TracebackException.from_exception(misuse.exception)
            # The lines of the program's own code, which a traceback quotes, are left out.
            errors = [shown, shown.__cause__, None if shown.__suppress_context__ else shown.__context__]
            for error in errors:
                self.assertNotIn("canary", str(error))
        with self.assertRaisesRegex(Misuse, "a user name: pass a token instead"):
            Client("https://ann:canary@seats.example", token="t")


def break_all(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        # Closes after the request has arrived: earlier, the client may see the end before it sends the request.
        connection.recv(65_536)
        connection.close()


if __name__ == "__main__":
    unittest.main()
