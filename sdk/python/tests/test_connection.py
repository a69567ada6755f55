"""Connections of requests, over a server of sockets that the test plays."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import unittest
from typing import Any
from unittest import mock

from seatkeeper import _clock, _connection, _transport
from seatkeeper._connection import IDLE_MAX, Connection, TransportError
from seatkeeper._core.clocks import SECOND
from seatkeeper._core.request import Call, Failure, Response
from seatkeeper._transport import CONNECTIONS_MAX, Server, Transport

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#: The answer of a server that ends the connection: the next request has a new one.
LAST_ANSWER = ANSWER.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
CALL = Call("PATCH", "/beat")


class ConnectionTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        #: The bytes that answer each request; a connection is closed after an answer if `closes`.
        self.answer = ANSWER
        self.closes = False
        self.accepted = 0
        self.ends: asyncio.Queue[None] = asyncio.Queue()
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.addCleanup(server.close)
        port = server.sockets[0].getsockname()[1]
        self.transport = Transport(Server(f"http://127.0.0.1:{port}", None, 10.0))
        self.addCleanup(self.transport.close)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(self.answer)
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.ends.put_nowait(None)

    async def send(self) -> Response:
        return await self.transport.send(CALL, "t", 10)

    async def fails(self, answer: bytes) -> Failure:
        """Returns the failure of a request whose connection ends after `answer`."""
        self.answer, self.closes = answer, True
        with self.assertRaises(TransportError) as raised:
            await self.send()
        return raised.exception.failure

    async def test_requests_in_turn_share_a_connection(self) -> None:
        for _ in range(3):
            self.assertEqual((await self.send()).body, b"{}")
        self.assertEqual(self.accepted, 1)

    async def test_requests_at_a_time_have_connections_of_their_own(self) -> None:
        answers = await asyncio.gather(*[self.send() for _ in range(3)])
        self.assertEqual([answer.status for answer in answers], [200] * 3)
        self.assertEqual(self.accepted, 3)

    async def test_an_address_that_is_silent_is_left_in_time_and_asked_last_afterwards(self) -> None:
        loop = asyncio.get_running_loop()
        connect, asked = loop.create_connection, list[str]()

        async def connect_or_hang(protocol: Any, address: str, *others: Any, **named: Any) -> Any:
            asked.append(address)
            if address == "silent":
                await asyncio.Event().wait()
            return await connect(protocol, address, *others, **named)

        addresses = mock.AsyncMock(return_value=["silent", "127.0.0.1"])
        self.answer = LAST_ANSWER
        with (
            mock.patch.object(self.transport, "_resolve", addresses),
            mock.patch.object(loop, "create_connection", connect_or_hang),
        ):
            for _ in range(2):
                self.assertEqual((await self.transport.send(CALL, "t", 9)).body, b"{}")
                await asyncio.wait_for(self.ends.get(), 10)
        self.assertEqual(asked, ["silent", "127.0.0.1", "127.0.0.1"])

    async def test_a_slow_address_beside_one_out_of_reach_is_waited_for_and_one_that_is_overtaken_is_left(self) -> None:
        loop = asyncio.get_running_loop()
        connect, left = loop.create_connection, list[str]()

        async def connect_late(protocol: Any, address: str, *others: Any, **named: Any) -> Any:
            if address == "unreachable":
                raise OSError(errno.ENETUNREACH, "Network is unreachable")
            try:
                await asyncio.sleep(0.3 if address == "slow" else 60)
            except asyncio.CancelledError:
                left.append(address)
                raise
            return await connect(protocol, "127.0.0.1", *others, **named)

        self.answer = LAST_ANSWER
        with (
            mock.patch.object(_transport, "ATTEMPT_DELAY", 0.05),
            mock.patch.object(loop, "create_connection", connect_late),
        ):
            for second in ("unreachable", "silent"):
                addresses = mock.AsyncMock(return_value=["slow", second])
                with mock.patch.object(self.transport, "_resolve", addresses):
                    for _ in range(2):
                        self.assertEqual((await self.transport.send(CALL, "t", 9)).body, b"{}")
                        await asyncio.wait_for(self.ends.get(), 10)
        self.assertEqual(left, ["silent", "silent"])

    async def test_a_name_service_that_hangs_delays_a_request_for_a_moment_and_has_one_call(self) -> None:
        answers, look_up, calls = threading.Event(), socket.getaddrinfo, list[Any]()
        self.addCleanup(answers.set)

        def hang(*arguments: Any, **named: Any) -> Any:
            calls.append(arguments)
            if len(calls) > 1:
                answers.wait(20)
            return look_up("127.0.0.1", *arguments[1:], **named)

        port = self.transport._server.port
        transport = Transport(Server(f"http://seats.example:{port}", None, 10.0))
        self.answer = LAST_ANSWER
        with mock.patch.object(socket, "getaddrinfo", hang):
            for _ in range(4):
                answer = await asyncio.wait_for(transport.send(CALL, "t", 9), 10)
                self.assertEqual(answer.body, b"{}")
                await asyncio.wait_for(self.ends.get(), 10)
            self.assertEqual(len(calls), 2)
            assert transport._lookup is not None
            answers.set()
            await asyncio.wait_for(transport._lookup, 10)
            await transport.send(CALL, "t", 9)
            self.assertEqual(len(calls), 3)

    async def test_an_idle_connection_is_closed(self) -> None:
        with mock.patch.object(_connection, "IDLE_MAX", 0.01):
            await self.send()
            await asyncio.wait_for(self.ends.get(), 10)

    async def test_a_connection_with_a_request_is_not_idle(self) -> None:
        with mock.patch.object(_connection, "IDLE_MAX", 0.02):
            await self.send()
            self.answer = b""
            asking = asyncio.ensure_future(self.send())
            # Timers of the loop fire in order: the look at the idle connection comes before the end of this pause.
            await asyncio.sleep(0.05)
            self.assertFalse(asking.done())
            asking.cancel()

    async def test_a_request_without_an_answer_ends_with_its_time(self) -> None:
        await self.send()
        self.answer = b""
        with self.assertRaises(TransportError) as raised:
            await self.transport.send(CALL, "t", 0.05)
        self.assertIs(raised.exception.failure, Failure.TIMEOUT)
        self.answer = ANSWER
        await self.send()
        self.assertEqual(self.accepted, 2, "a late answer is none to the next request")

    async def test_a_request_that_is_cancelled_as_its_connection_opens_leaves_no_connection(self) -> None:
        self.answer = b""
        for turns in range(12):
            asking = asyncio.ensure_future(self.send())

            def cancel_after(left: int, asking: asyncio.Future[Response] = asking) -> None:
                if left == 0:
                    asking.cancel()
                else:
                    asyncio.get_running_loop().call_soon(cancel_after, left - 1)

            class Opening(Connection):
                def connection_made(self, transport: asyncio.BaseTransport) -> None:
                    super().connection_made(transport)
                    cancel_after(turns)  # noqa: B023

            with mock.patch.object(_transport, "Connection", Opening), self.assertRaises(asyncio.CancelledError):
                await asking
            await asyncio.wait_for(self.ends.get(), 10)
        for _ in range(CONNECTIONS_MAX):
            await asyncio.wait_for(self.transport._places.acquire(), 10)

    async def test_after_a_sleep_of_the_host_a_request_has_a_new_connection(self) -> None:
        await self.send()
        later = _clock.boot() + IDLE_MAX * SECOND
        with mock.patch.object(_clock, "boot", lambda: later):
            await self.send()
        self.assertEqual(self.accepted, 2)

    async def test_a_connection_that_the_server_closes_is_not_used_again(self) -> None:
        for answer in (
            LAST_ANSWER,
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            ANSWER + b"more",
        ):
            self.answer = answer
            before = self.accepted
            for _ in range(2):
                self.assertEqual((await self.send()).body, b"{}")
            self.assertEqual(self.accepted - before, 2, answer)

    async def test_a_body_without_a_length_ends_with_its_connection(self) -> None:
        self.answer, self.closes = b"HTTP/1.1 200 OK\r\n\r\n{}", True
        self.assertEqual((await self.send()).body, b"{}")

    async def test_a_connection_that_ends_early_is_a_failure(self) -> None:
        self.assertIs(await self.fails(b""), Failure.RESET_AFTER_SEND)
        self.assertIs(await self.fails(b"HTTP/1.1 200 OK\r\n"), Failure.GARBAGE)
        self.assertIs(await self.fails(b"SSH-2.0-OpenSSH\r\n\r\n"), Failure.GARBAGE)
        self.assertIs(await self.fails(ANSWER[:-1]), Failure.TRUNCATED)
        self.assertIs(await self.fails(ANSWER.replace(b"2\r", b"9999999\r") + b"x" * 2_000_000), Failure.GARBAGE)


if __name__ == "__main__":
    unittest.main()
