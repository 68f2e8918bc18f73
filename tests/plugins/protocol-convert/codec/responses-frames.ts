/** Frames of upstreams, for tests of the responses decoder. */

import type { JsonObject } from '../../../../core/json/json.ts';
import type { Event } from '../../../../plugins/common/canonical/reply.ts';
import type { Frame } from './responses-helpers.ts';

export function event(type: string, more: JsonObject): Frame {
  return { event: type, data: { type, ...more } };
}
export const added = (index: number, item: JsonObject) =>
  event('response.output_item.added', { output_index: index, item });
export const done = (index: number, item: JsonObject) =>
  event('response.output_item.done', { output_index: index, item });
export const completed = (output: unknown, more: JsonObject = {}) =>
  event('response.completed', { response: { id: 'resp_1', status: 'completed', output, ...more } });
export const types = (events: readonly Event[]) => events.map(({ type }) => type);
export const argumentsOf = (events: readonly Event[]) =>
  events.flatMap((one) => (one.type === 'tool-delta' ? [one.text] : [])).join('');
export const textDelta = (text: string, index = 0) =>
  event('response.output_text.delta', { output_index: index, item_id: 'm', content_index: 0, delta: text });
