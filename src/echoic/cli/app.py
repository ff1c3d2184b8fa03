"""The verbs, gathered into one application. A verb's module is imported when the verb is used."""

import sys
from typing import Final

import cyclopts

import echoic
from echoic.cli.screen import printable
from echoic.errors import EchoicError, ECodeError, ScriptError

__all__ = ["GROUPS", "app", "load_all", "report_error"]

HELP: Final = """
Typed event channels whose consumers run their own code inside the producer.

Start with `echoic demo`. Or type in one terminal
    echoic echo trades
and in another
    echoic pub trades 'Trade{symbol: str, price: float}' symbol=IBM price=75.5
To run code of yours inside whoever publishes:
    echoic echo trades --filter 'input.price < 80'
"""

BUS_HELP: Final = """
Run T-scripts: short texts that say when tools act, and what they tell each other.

Put into a file hello.tb
    process Hello is printf("hello\\n") . shutdown("done")
    toolbus(Hello)
and type
    echoic bus check hello.tb
    echoic bus run hello.tb
"""

app: Final = cyclopts.App(
    "echoic",
    help=HELP,
    help_format="plaintext",
    version=echoic.__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
fuzz: Final = cyclopts.App("fuzz", help="Feed hostile input to the parsers, from a seed.")
ecode: Final = cyclopts.App("ecode", help="Check the code of derived channels.")
keys: Final = cyclopts.App("keys", help="Say who is who by certificates and tokens, and whose modulators run here.")
acl: Final = cyclopts.App("acl", help="See who may do what with which channels, and why.")
journal: Final = cyclopts.App("journal", help="Look at what was recorded, mend it, take it elsewhere.")
pipeline: Final = cyclopts.App("pipeline", help="Turn channels into tables and results into channels, on Spark.")
context: Final = cyclopts.App("context", help="Give systems names, and choose the one that verbs look at.")
names: Final = cyclopts.App("names", help="Serve names, and look at them.")
bus: Final = cyclopts.App("bus", help=BUS_HELP, help_format="plaintext")
group: Final = cyclopts.App("group", help="Join ordered groups, look at them and at what they have ordered.")

app.command("echoic.cli.demo:demo")
app.command("echoic.cli.up:up")
app.command("echoic.cli.listing:ls")
app.command("echoic.cli.looking:info")
app.command("echoic.cli.looking:show_type", name="type")
app.command("echoic.cli.echo:echo")
app.command("echoic.cli.pub:pub")
app.command("echoic.cli.record:record")
app.command("echoic.cli.intake:intake")
app.command("echoic.cli.replay:replay")
app.command("echoic.cli.derive:derive")
app.command("echoic.cli.param:param")
app.command("echoic.cli.steer:steer")
app.command("echoic.cli.rates:hz")
app.command("echoic.cli.rates:bw")
app.command("echoic.cli.delay:delay")
app.command("echoic.cli.top:top")
app.command("echoic.cli.report:report")
app.command("echoic.cli.viewer:viewer")
app.command("echoic.cli.metrics:metrics")
app.command("echoic.cli.asyncapi:asyncapi")
app.command("echoic.cli.foxglove:foxglove")
app.command("echoic.cli.bench:bench")
app.command("echoic.cli.soak:soak")
app.command("echoic.cli.doctor:doctor")
app.command("echoic.cli.layout:layout")
app.command("echoic.cli.completion:completion")
app.command(ecode)
ecode.command("echoic.cli.ecode:check")
app.command(keys)
keys.command("echoic.cli.authority:init")
keys.command("echoic.cli.authority:issue")
keys.command("echoic.cli.authority:rotate")
keys.command("echoic.cli.authority:revoke")
keys.command("echoic.cli.authority:token")
keys.command("echoic.cli.keys:new")
keys.command("echoic.cli.keys:list_keys", name="list")
keys.command("echoic.cli.keys:show")
keys.command("echoic.cli.keys:trust")
keys.command("echoic.cli.keys:distrust")
app.command(acl)
acl.command("echoic.cli.acl:check")
acl.command("echoic.cli.acl:list_rules", name="list")
app.command(journal)
journal.command("echoic.cli.journal:info")
journal.command("echoic.cli.cat:cat")
journal.command("echoic.cli.journal:verify_journal", name="verify")
journal.command("echoic.cli.journal:recover_journal", name="recover")
journal.command("echoic.cli.exports:export_journal", name="export")
journal.command("echoic.cli.exports:import_journal", name="import")
app.command(pipeline)
pipeline.command("echoic.cli.pipeline:run")
pipeline.command("echoic.cli.pipeline:status")
pipeline.command("echoic.cli.pipeline:stop")
pipeline.command("echoic.cli.pipeline:check")
pipeline.command("echoic.cli.pipeline:conf")
pipeline.command("echoic.cli.pipeline:pack")
app.command(context)
context.command("echoic.cli.context:add")
context.command("echoic.cli.context:use")
context.command("echoic.cli.context:list_contexts", name="ls")
context.command("echoic.cli.context:show")
context.command("echoic.cli.context:remove", name="rm")
app.command(names)
names.command("echoic.cli.names:serve")
names.command("echoic.cli.listing:list_names", name="ls")
app.command(group)
group.command("echoic.cli.group:join")
group.command("echoic.cli.group_view:view")
group.command("echoic.cli.group_log:log")
group.command("echoic.cli.group_bench:bench")
app.command(bus)
bus.command("echoic.cli.bus_run:run")
bus.command("echoic.cli.bus_check:check")
bus.command("echoic.cli.bus_trace:trace")
bus.command("echoic.cli.bus_tifs:tifs")
bus.command("echoic.cli.bus_console:console")
bus.command("echoic.cli.bus_refs:refs")
bus.command("echoic.cli.bus_record:record")
bus.command("echoic.cli.bus_record:replay")
app.command(fuzz)
fuzz.command("echoic.cli.fuzz:fuzz_frames", name="frames")
fuzz.command("echoic.cli.fuzz:fuzz_channels", name="channels")
fuzz.command("echoic.cli.fuzz:fuzz_parsers", name="parsers")


GROUPS: Final = {each.name[0]: each for each in (acl, ecode, journal, keys, pipeline, context, names, group, bus, fuzz)}
"""Those that have verbs of their own."""


def load_all() -> None:
    """Import every verb, so that help can describe it."""
    for each in (app, *GROUPS.values()):
        each.resolved_commands()


def report_error(error: EchoicError) -> None:
    """Say on stderr what went wrong: in one line, but for code, of which the places are shown."""
    head = "\033[1;31merror:\033[0m" if sys.stderr.isatty() else "error:"
    keep = "\n\t" if isinstance(error, ECodeError | ScriptError) else ""
    print(head, printable(str(error), keep), file=sys.stderr)
