/** Decodes answers of `/api/chat`, whole ones and the lines of a stream, which have the same form. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../core/json/json.ts';
import type { ReplyDecoder } from '../common/canonical/codec.ts';
import type { ReplyEvents } from '../common/canonical/events.ts';

export function createDecoder(events: ReplyEvents): ReplyDecoder {
  let calls = 0;
  return {
    payload(json) {
      const message = objectOf(json['message']) ?? {};
      events.start(undefined, secondsOf(json['created_at']));
      const thinking = textOf(message['thinking']);
      if (thinking !== undefined && thinking !== '') events.reasoning(0, thinking);
      events.text(0, textOf(message['content']) ?? '');
      for (const call of listOf(message['tool_calls'])) takeCall(events, `${calls++}`, objectOf(call) ?? {});
      if (json['done'] === true) events.stop(0, json['done_reason'] === 'length' ? 'length' : 'stop');
    },
    end: () => events.stop(0, 'stop'),
  };
}

export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  const decoder = createDecoder(events);
  decoder.payload(json, undefined);
  decoder.end();
}

/** A call comes whole: its arguments are an object. */
function takeCall(events: ReplyEvents, key: string, call: JsonObject): void {
  const { name, arguments: given } = objectOf(call['function']) ?? {};
  const input = isObject(given) ? JSON.stringify(given) : textOf(given);
  events.call(0, key, { id: textOf(call['id']), name: textOf(name), input });
  events.endCall(0, key);
}

function secondsOf(date: unknown): number | undefined {
  const milliseconds = typeof date === 'string' ? Date.parse(date) : Number.NaN;
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000);
}
