"""Parsers of event streams, fed whole and byte by byte."""

from __future__ import annotations

import unittest

from seatkeeper._reply import HEAD_BYTES_MAX, NotHttp, StreamedReply
from seatkeeper._sse import EVENT_BYTES_MAX, EventParser, EventTooLong, ServerEvent

#: Streams, their events, and the last id.
STREAMS: list[tuple[bytes, list[tuple[str, str]], str]] = [
    (b"event: revoked\ndata: {}\nid: 7\n\n", [("revoked", "{}")], "7"),
    (b"event: revoked\r\ndata: {}\r\nid: 7\r\n\r\n", [("revoked", "{}")], "7"),
    (b"event: revoked\rdata: {}\rid: 7\r\r", [("revoked", "{}")], "7"),
    (b"data: a\r\n\ndata: b\r\rdata: c\n\r\n", [("message", "a"), ("message", "b"), ("message", "c")], ""),
    (b"data: a\ndata:\ndata:  b\n\n", [("message", "a\n\n b")], ""),
    (b"data\n\ndata:\n\n", [("message", ""), ("message", "")], ""),
    (b": still here\n\n:\n\n: data: x\n\n", [], ""),
    (b"id: 3\n\n", [], "3"),
    (b"id: 3\n\nid\n\n", [], ""),
    (b"id: 3\n\nid: 4\ndata: x\n", [], "3"),
    (b"id: 3\nid: 4\0\ndata: x\n\n", [("message", "x")], "3"),
    (b"event: old\n\ndata: x\n\n", [("message", "x")], ""),
    (b"event: a\nevent: b\ndata: x\n\n", [("b", "x")], ""),
    (b"retry: 9\nunknown: x\nDATA: x\n data: x\ndata: y\n\n", [("message", "y")], ""),
    (b"\xef\xbb\xbfdata: x\n\n", [("message", "x")], ""),
    (b"data: x\n\xef\xbb\xbfdata: y\n\n", [("message", "x")], ""),
    ("data: Ann\u2019s phone\n\n".encode(), [("message", "Ann\u2019s phone")], ""),
    (b"data: \xff\n\n", [("message", "\ufffd")], ""),
]


def parse(stream: bytes, size: int) -> tuple[list[ServerEvent], str]:
    """Returns the events and the last id of a stream that arrives in pieces of ``size``."""
    parser, events = EventParser(), []
    for start in range(0, len(stream), size):
        events += parser.feed(stream[start : start + size])
        events += parser.feed(b"")
    return events, parser.last_id


class EventParserTest(unittest.TestCase):
    def test_each_stream_has_its_events_however_its_bytes_arrive(self) -> None:
        for stream, wanted, last_id in STREAMS:
            for size in (1, 2, 3, len(stream)):
                events = [ServerEvent(name, data) for name, data in wanted]
                self.assertEqual(parse(stream, size), (events, last_id), (stream, size))

    def test_a_stream_goes_on_after_the_id_of_the_stream_before(self) -> None:
        parser = EventParser("9")
        self.assertEqual(parser.last_id, "9")
        parser.feed(b"data: x\n\n")
        self.assertEqual(parser.last_id, "9")

    def test_an_event_without_an_end_is_given_up_and_many_events_are_not(self) -> None:
        line = b"data: " + b"x" * 1_000 + b"\n"
        parser = EventParser()
        with self.assertRaises(EventTooLong):
            for _ in range(EVENT_BYTES_MAX // 1_000 + 1):
                parser.feed(line)
        parser = EventParser()
        with self.assertRaises(EventTooLong):
            for _ in range(EVENT_BYTES_MAX // 1_000 + 1):
                parser.feed(b"x" * 1_000)
        parser = EventParser()
        for _ in range(2 * EVENT_BYTES_MAX // 1_000):
            self.assertEqual(len(parser.feed(line + b"\n")), 1)


#: Responses, their status and body, and if the body has ended.
RESPONSES: list[tuple[bytes, int, bytes, bool]] = [
    (b"HTTP/1.1 200 OK\r\n\r\nabc", 200, b"abc", False),
    (b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabcd", 200, b"abc", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", 200, b"abc", False),
    (b"HTTP/1.0 404 Not found\r\ncontent-length: 0\r\n\r\n", 404, b"", True),
    (b"HTTP/1.1 204 No content\r\n\r\n", 204, b"", True),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nab", 200, b"ab", False),
    (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n",
        200,
        b"abc0123456789",
        False,
    ),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n2\r\n\r\n\r\n0\r\n\r\n", 200, b"\n\r\n", True),
]

NO_HTTP = [
    b"SSH-2.0-OpenSSH\r\n\r\n",
    b"HTTP/2 200\r\n\r\n",
    b"HTTP/1.1 fine\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 2_000,
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_BYTES_MAX,
]


def read(response: bytes, size: int) -> tuple[StreamedReply, bytes]:
    reply, body = StreamedReply(), b""
    for start in range(0, len(response), size):
        body += reply.feed(response[start : start + size])
    return reply, body


class StreamedReplyTest(unittest.TestCase):
    def test_each_response_has_its_body_however_its_bytes_arrive(self) -> None:
        for response, status, wanted, is_over in RESPONSES:
            for size in (1, 2, 3, len(response)):
                reply, body = read(response, size)
                self.assertEqual((reply.status, body), (status, wanted), (response, size))
                if size == len(response):
                    self.assertEqual(reply.is_over, is_over, response)

    def test_what_is_no_response_is_an_error(self) -> None:
        for response in NO_HTTP:
            for size in (1, len(response)):
                with self.assertRaises(NotHttp, msg=response[:60]):
                    read(response, size)

    def test_headers_are_found_by_name_in_lower_case(self) -> None:
        reply, _ = read(b"HTTP/1.1 200 OK\r\nContent-Type:  text/event-stream \r\n\r\n", 100)
        self.assertEqual(reply.headers["content-type"], "text/event-stream")
        self.assertIsNone(StreamedReply().status)


if __name__ == "__main__":
    unittest.main()
