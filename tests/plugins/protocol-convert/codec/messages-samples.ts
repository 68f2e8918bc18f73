/** Words that the tests of messages requests share: bodies, turns, parts, and what refusals look like. */
import type { JsonObject } from '../../../../core/json/json.ts';

export const body = (more: object = {}): JsonObject => ({
  model: 'm',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
  ...more,
});
export const marksIn = (json: JsonObject) => JSON.stringify(json).match(/"cache_control":\{[^}]*\}/g) ?? [];
