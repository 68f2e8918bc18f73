/** Lakera Guard, version 2: attacks on prompts, and whatever else its policy names. https://docs.lakera.ai/docs/api/guard */

import { z } from '../../../core/contract/schema.ts';
import { isObject, listOf } from '../../../core/json/json.ts';
import type { FoundPlace } from '../../common/guardrails/checks.ts';
import { asType, bearer, postedObject, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers('https://api.lakera.ai'),
  project: z
    .string()
    .min(1)
    .optional()
    .describe('Id of the project with the policy. Absent: the default policy of the key.'),
});

export const lakera = asType<z.output<typeof config>>({
  name: 'lakera',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge({ texts, signal }) {
      const { project, key } = settings;
      const answer = await postedObject(settings, tools, {
        path: '/v2/guard',
        headers: bearer(key),
        signal,
        body: {
          messages: texts.map(({ role, text }) => ({ role, content: text })),
          payload: true,
          ...(project === undefined ? {} : { project_id: project }),
        },
      });
      if (typeof answer['flagged'] !== 'boolean') throw new Error('the service does not say what is flagged');
      if (!answer['flagged']) return { isHit: false };
      const found = listOf(answer['payload']).flatMap((one) =>
        placeOf(
          one,
          texts.map(({ text }) => text),
        ),
      );
      return found.length === 0 ? { isHit: true } : { isHit: true, found };
    },
  }),
});

/** A place that does not fit its text is left out: all of the texts are meant then. */
function placeOf(one: unknown, texts: readonly string[]): FoundPlace[] {
  if (!isObject(one)) return [];
  const { start, end, message_id: message, detector_type: detector } = one;
  if (typeof start !== 'number' || typeof end !== 'number') return [];
  const text = typeof message === 'number' ? message : 0;
  const length = texts[text]?.length;
  if (length === undefined || start < 0 || end <= start || end > length) return [];
  const kind = String(detector ?? 'masked')
    .split('/')
    .at(-1)!
    .toUpperCase()
    .replace(/[^A-Z_]/g, '_');
  return [{ text, start, end, kind }];
}
