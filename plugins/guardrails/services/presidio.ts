/** Microsoft Presidio's analyzer, which says where personal data stand. https://microsoft.github.io/presidio/api-docs/api-docs.html */

import { z } from '../../../core/contract/schema.ts';
import { isObject } from '../../../core/json/json.ts';
import type { FoundPlace } from '../../common/guardrails/checks.ts';
import { asType, bearer, eachText, posted, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers(),
  language: z
    .string()
    .default('en')
    .describe('Language of the texts, as the analyzer knows it. Change it for texts of another language.'),
  entities: z
    .array(z.string().min(1))
    .optional()
    .describe('Kinds of data that are looked for. Absent: all that it knows.'),
  score: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .describe('Score from which on it is a finding. Raise it when too much is found.'),
});

export const presidio = asType<z.output<typeof config>>({
  name: 'presidio',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge({ texts, signal }) {
      const { language, entities, score } = settings;
      const found = await eachText(texts, async (text, index) => {
        const body = { text, language, score_threshold: score, ...(entities === undefined ? {} : { entities }) };
        const answer = await posted(settings, tools, { path: '/analyze', headers: bearer(settings.key), body, signal });
        if (!Array.isArray(answer)) throw new Error('the service answered with no list');
        return placesIn(answer, text, index);
      });
      const all = found.flat();
      return { isHit: all.length > 0, found: all };
    },
  }),
});

function placesIn(answer: readonly unknown[], text: string, index: number): FoundPlace[] {
  const offsets = unitOffsets(text);
  return answer.map((one) => {
    if (!isObject(one)) throw new Error('a finding of the service is no object');
    const { start, end, entity_type: type } = one;
    if (typeof start !== 'number' || typeof end !== 'number' || typeof type !== 'string')
      throw new Error('a finding of the service has no place');
    const [from, to] = [offsets(start), offsets(end)];
    if (from === undefined || to === undefined || to <= from)
      throw new Error('a finding of the service is outside of the text');
    return { text: index, start: from, end: to, kind: type.toUpperCase().replace(/[^A-Z_]/g, '_') };
  });
}

/** Python counts characters, not UTF-16 units. */
function unitOffsets(text: string): (characters: number) => number | undefined {
  const units = [0];
  let at = 0;
  for (const character of text) {
    at += character.length;
    units.push(at);
  }
  return (characters) => units[characters];
}
