// Read AsyncAPI documents as JSON lines from stdin; print what the reference parser finds wrong with each, as JSON lines.
import { Parser } from "@asyncapi/parser";
import { createInterface } from "node:readline";

const parser = new Parser();
for await (const line of createInterface({ input: process.stdin })) {
  const { document, diagnostics } = await parser.parse(line);
  const found = diagnostics.map(({ severity, message, path }) => ({ severity, message, path: path.join("/") }));
  const channels = document === undefined ? [] : document.channels().all().map((channel) => channel.id());
  console.log(JSON.stringify({ understood: document !== undefined, channels, found }));
}
