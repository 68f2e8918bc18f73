/** How a vendor tells what a whole answer took: events of a session or of a stream, some of them twice, read by the gateway's own meters. */
import { ResponsesUsageMeter } from '../../plugins/protocol-convert/protocols/responses/usage-meter.ts';
import { RealtimeDialect } from '../../plugins/websockets/realtime/realtime.ts';
import type { Counts } from './tariff.ts';

/** The same for the same request, without a draw: worlds run as they would without it. */
function hashOf(id: string): number {
  let hash = 7;
  for (let at = 0; at < id.length; at += 1) hash = (hash * 31 + id.charCodeAt(at)) % 1_000_003;
  return hash;
}

/** Whether the events of a session tell it, which know no reasoning and no tools. */
const isOfSession = (id: string, { reasoning, call }: Counts): boolean =>
  reasoning === undefined && call === undefined && hashOf(id) % 2 === 0;

/** How often it is reported. */
export const timesReported = (id: string): number => 1 + (hashOf(id) % 3);

/** What the gateway's meter makes of it. */
export function heard(counts: Counts, id: string): Counts {
  const { input = 0, output = 0, cache_read: cached, reasoning, call } = counts;
  const reported = Array.from({ length: timesReported(id) });
  const inputs = { input_tokens: input + (cached ?? 0), output_tokens: output + (reasoning ?? 0) };
  if (isOfSession(id, counts)) {
    const usage = { ...inputs, input_token_details: { cached_tokens: cached } };
    const dialect = new RealtimeDialect('m');
    const done = { type: 'response.done', response: { id, status: 'completed', usage } };
    const events = [{ type: 'response.created', response: { id } }, ...reported.map(() => done)];
    const metered = events.flatMap(
      (event) => dialect.upstream({ data: Buffer.from(JSON.stringify(event)), isBinary: false })?.metered?.usage ?? [],
    );
    return metered.reduce<Counts>((sum, one) => added(sum, one), {});
  }
  const usage = {
    ...inputs,
    input_tokens_details: { cached_tokens: cached },
    output_tokens_details: { reasoning_tokens: reasoning },
    server_side_tool_usage_details: { mcp_calls: call },
  };
  const meter = new ResponsesUsageMeter();
  for (const _ of reported)
    meter.payload({ type: 'response.completed', response: { id, status: 'completed', output: [], usage } }, undefined);
  return meter.reading.usage;
}

const names = ['input', 'output', 'cache_read', 'reasoning', 'call'] as const;

/** Both together. */
export function added(one: Counts, other: Counts): Counts {
  // A reported zero stays one: a report without any count is none.
  const reported = names.filter((name) => one[name] !== undefined || other[name] !== undefined);
  return Object.fromEntries(reported.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]));
}
