"""A script written in Python: three travellers ask, two guides answer, and one atlas is enough for both.

    python examples/toolbus/questions.py

The atlas is a tool in this very process. `ask` and `serve` see to it that every traveller gets the answer to his own
question, whichever guide has it. What is printed first is the same script as T-script has it.
"""

from typing import Annotated

from echoic.scripts import python_spelling as ts
from echoic.scripts.python_spelling import Behaviour, Var, term
from echoic.scripts.syntax import write_script
from echoic.toolbus import Bus, Term, Tool, eval_

CAPITALS = {"Peru": "Lima", "Kenya": "Nairobi", "Norway": "Oslo", "Laos": "Vientiane"}

Country, City, Name = ts.var("Country", str), ts.var("City", str), ts.var("Name", str)
Left = ts.var("Left", int)
Atlas = ts.var("Atlas", atlas := ts.tool("atlas"))


@ts.process
def traveller(name: Var[str], country: Var[str]) -> Behaviour:
    return (
        ts.ask(term.capital_of(country), term.capital(City.q))
        >> ts.printf("%s learns that the capital of %s is %s\n", name, country, City)
        >> ts.snd_msg(term.leaves(name))
    )


@ts.process
def guide(tool: Annotated[Var[object], atlas]) -> Behaviour:
    look_up = ts.ask_tool(tool, term.look_up(Country), term.found(Country, City.q))
    return ts.serve(term.capital_of(Country.q), look_up, term.capital(City))


@ts.process
def office() -> Behaviour:
    pid = ts.var("Pid", int)
    return (
        ts.execute(atlas(), Atlas.q)
        >> ts.create(guide(Atlas), pid.q)
        >> ts.create(guide(Atlas), pid.q)
        >> Left.set(3)
        >> ts.loop(ts.when(Left > 0).then(ts.rec_msg(term.leaves(Name.q)) >> Left.set(Left - 1))).until(
            ts.when(Left == 0).then(ts.shutdown("all know"))
        )
    )


class AtlasTool(Tool, name="atlas"):
    @eval_
    def look_up(self, country: str) -> Annotated[Term, "found(str,str)"]:
        return Term("found", country, CAPITALS[country])


def main() -> None:
    script = ts.bus(office(), traveller("Ann", "Peru"), traveller("Bob", "Kenya"), traveller("Cleo", "Norway"))
    print(write_script(script))
    with Bus(script) as bus:
        bus.attach(AtlasTool)
        print(bus.run(timeout=30))


if __name__ == "__main__":
    main()
