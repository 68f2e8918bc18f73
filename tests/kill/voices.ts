/** Clients of realtime sessions that go on through crashes, and what must hold of them between vendor, clients and ledger. */
import { randomInt } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { Findings } from './batches.ts';
import type { Bill, VoiceCharge } from './compare.ts';
import { Reconnecting } from './sockets.ts';

interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
}

export class VoiceClients extends Reconnecting {
  /** Responses that came whole, by the vendor's id. */
  readonly acknowledged = new Map<string, Usage>();

  constructor(origin: string, keys: readonly string[], workers: number) {
    super(origin, '/v1/realtime?model=voice', keys, workers);
  }

  protected talk(socket: WebSocket): void {
    socket.on('message', (data) => this.#hear(socket, JSON.parse(String(data))));
  }

  #hear(
    socket: WebSocket,
    event: { type: string; response?: { id: string; status: string; usage: Usage | null } },
  ): void {
    const { type, response } = event;
    // What it was asked for cannot be had: no response comes.
    if (type === 'error') socket.close();
    if (type === 'response.done' && response?.usage != null) this.acknowledged.set(response.id, response.usage);
    if (type !== 'session.created' && type !== 'response.done') return;
    if (!this.running) {
      socket.close();
      return;
    }
    const text = `Hello [[sandbox: tokens=${randomInt(5, 60)} chunk_delay=${randomInt(1, 20)}ms]]`;
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
    socket.send(JSON.stringify({ type: 'conversation.item.create', item }));
    socket.send(JSON.stringify({ type: 'response.create', response: { output_modalities: ['text'] } }));
    if (randomInt(10) === 0) this.leave(socket);
  }
}

/** Every response that a client has whole was charged once, exactly; and nothing that the vendor ran is missing. */
export function compareVoices(
  { acknowledged, cancelled }: Pick<VoiceClients, 'acknowledged' | 'cancelled'>,
  charges: readonly VoiceCharge[],
  bill: Bill,
): Findings {
  const violations: string[] = [];
  const exact = charges.filter(({ estimated }) => !estimated);
  const byId = new Map<string, VoiceCharge>();
  for (const charge of exact.filter(({ tokens }) => tokens > 0)) {
    if (byId.has(charge.upstreamId)) violations.push(`the response ${charge.upstreamId} was charged twice`);
    byId.set(charge.upstreamId, charge);
  }
  for (const [id, { input_tokens: into, output_tokens: out }] of acknowledged) {
    const charged = byId.get(id)?.tokens;
    if (charged !== into + out) violations.push(`the response ${id} has ${into + out} tokens, ${charged} were charged`);
  }
  const billed = Object.values(bill.totals).reduce((sum, usage) => sum + totalOf(usage), 0);
  const charged = exact.reduce((sum, { tokens }) => sum + tokens, 0);
  if (charged > billed)
    violations.push(`${charged} tokens of voices were charged exactly, the vendor billed ${billed}`);
  const estimated = charges.length - exact.length;
  if (bill.requests > byId.size + estimated)
    violations.push(`the vendor ran ${bill.requests} responses of voices, the ledger has ${byId.size + estimated}`);
  const account = [
    `${acknowledged.size} responses of realtime sessions came whole, ${cancelled} sessions were broken off; the vendor billed ${bill.requests} responses (${billed} tokens), ${byId.size} were charged exactly (${charged}), ${estimated} by estimate`,
  ];
  return { account, violations };
}

function totalOf(usage: Readonly<Record<string, number>>): number {
  return Object.values(usage).reduce((sum, count) => sum + count, 0);
}
