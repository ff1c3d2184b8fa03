"""A tool that has questions, and shows answers."""

from echoic.toolbus import Tool, do, event


class Desk(Tool, name="desk"):
    """Somebody at a desk."""

    @event
    def question(self, text: str) -> None:
        """Ask what a text is worth; it is answered when the script acknowledges."""

    @event
    def leave(self) -> None:
        """Say that there are no more questions."""

    @do
    def show(self, value: int) -> None:
        """Show the value of the last question."""
        print("the value is", value)

    @do
    def complain(self, why: str) -> None:
        """Show why the last question has no value."""
        print("there is no value of", why)

    async def main(self) -> None:
        """Do what the tool does by itself."""
        for text in ("1 + 2", "6 * 7"):
            await self.event("question", text)
        self.event("leave")


if __name__ == "__main__":
    Desk.run()
