/** What tests read of an answer: the events that ReplyEvents makes of it, and the whole reply of legal events. */
import type { ResponseMapping } from '../../../../plugins/common/canonical/codec.ts';
import { Collector } from '../../../../plugins/common/canonical/collect.ts';
import { ReplyEvents } from '../../../../plugins/common/canonical/events.ts';
import type { Event, Reply } from '../../../../plugins/common/canonical/reply.ts';
import { emulating } from '../../../../plugins/protocol-convert/translate/emulate.ts';
import { assertLegal } from '../../../helpers/event-rules.ts';

export function eventsOf(report: (events: ReplyEvents) => void, way: Partial<ResponseMapping> = {}): Event[] {
  const seen: Event[] = [];
  const whole: ResponseMapping = { names: new Map(), wrapped: new Set(), ...way };
  const sink = emulating(whole, (event) => void seen.push(event));
  report(new ReplyEvents(sink, { names: whole.names, idSeed: 'seed' }));
  return seen;
}

export function replyOf(report: (events: ReplyEvents) => void, way: Partial<ResponseMapping> = {}): Reply {
  return collected(eventsOf(report, way));
}

/** The whole reply of these events, which must be legal. */
export function collected(events: readonly Event[]): Reply {
  assertLegal(events);
  const collector = new Collector();
  for (const event of events) collector.event(event);
  return collector.reply();
}
