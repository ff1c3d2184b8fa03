"""gRPC: a unary call per event, with generic handlers, so that the codec is the one of all rivals and not protobuf.

One channel and one callable are kept, as its performance guide says. Several sinks are called by futures, side by side.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import grpc

from benchmarks.rivals.codec import Codec
from echoic.testing.bench import Argument, Contender, Control, Session, Setup, join, start_peers, time_call

__all__ = ["CONTENDERS"]

SINK = f"{__name__}:serve"
SERVICE, METHOD = "echoic.Bench", "Submit"
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
QUIET = {"GRPC_VERBOSITY": "ERROR"}


@contextmanager
def _call(setup: Setup) -> Iterator[Session]:
    with ExitStack() as stack:
        codec = Codec(setup)
        peers = stack.enter_context(start_peers(SINK, setup, [{}] * setup.sinks, QUIET))
        submits = []
        for peer in peers:
            channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{peer.address()['port']}", OPTIONS))
            submits.append(channel.unary_unary(f"/{SERVICE}/{METHOD}", request_serializer=codec.encode))
        events = codec.endless()

        def call() -> None:
            submits[0](next(events))

        def call_all() -> None:
            event = next(events)
            for answer in [submit.future(event) for submit in submits]:
                answer.result()

        chosen = call if len(submits) == 1 else call_all
        join(peers, lambda _: chosen())
        yield time_call(chosen)


def serve(control: Control, setup: Setup, _: Argument) -> None:
    """Handle and answer."""
    handle = control.tally.event

    def submit(event: object, _: grpc.ServicerContext) -> bytes:
        handle(event)
        return b""

    server = grpc.server(ThreadPoolExecutor(max_workers=1), options=OPTIONS)
    method = grpc.unary_unary_rpc_method_handler(submit, request_deserializer=Codec(setup).decode)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    control.ready(port=port)
    control.wait()
    server.stop(None)


CONTENDERS = (Contender("grpc, unary", _call, lambda setup: setup.synchronous),)
