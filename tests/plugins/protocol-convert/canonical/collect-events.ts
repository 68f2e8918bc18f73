/** Tells an answer to ReplyEvents and hands back the events; and checks that a list of events is legal. */
import assert from 'node:assert/strict';
import type { ResponseMapping } from '../../../../plugins/common/canonical/codec.ts';
import { Collector } from '../../../../plugins/common/canonical/collect.ts';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Event, Reply } from '../../../../plugins/common/canonical/reply.ts';
import { emulating } from '../../../../plugins/protocol-convert/translate/emulate.ts';

export function eventsOf(report: (events: ReplyEvents) => void, way: Partial<ResponseMapping> = {}): Event[] {
  const seen: Event[] = [];
  const whole: ResponseMapping = { names: new Map(), wrapped: new Set(), ...way };
  const sink = emulating(whole, (event) => void seen.push(event));
  report(new ReplyEvents(sink, { names: whole.names, idSeed: 'seed' }));
  return seen;
}

export function replyOf(report: (events: ReplyEvents) => void, way: Partial<ResponseMapping> = {}): Reply {
  const collector = new Collector();
  for (const event of eventsOf(report, way)) collector.event(event);
  return collector.reply();
}

/** The rules of `Event`: blocks start in order, grow while open, end once; nothing after its choice's stop. */
export function assertLegal(events: readonly Event[]): void {
  const open = new Map<number, string>();
  const stopped = new Set<number>();
  let next = 0;
  assert.ok(events.length === 0 || events[0]?.type === 'reply-start', 'reply-start comes first');
  for (const event of events.slice(1)) {
    assert.notEqual(event.type, 'reply-start');
    if (event.type === 'reply-start') continue;
    assert.ok(!stopped.has(event.choice), `${event.type} after the stop of its choice`);
    if (event.type === 'stop') {
      stopped.add(event.choice);
      continue;
    }
    const [kind, step] = event.type.split('-') as [string, string | undefined];
    if (event.type === 'citation') assert.equal(open.get(event.block), 'text');
    else if (step === 'start' || step === undefined) {
      assert.equal(event.block, next++, 'blocks are numbered as they start');
      if (step === 'start') open.set(event.block, kind);
    } else {
      assert.equal(open.get(event.block), kind, `${event.type} of a block that is not open`);
      if (step === 'end') open.delete(event.block);
    }
  }
  assert.equal(open.size, 0, 'every block ends');
}
