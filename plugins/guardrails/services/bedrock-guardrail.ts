/** A guardrail of Amazon Bedrock, applied by itself. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ApplyGuardrail.html */

import { z } from '../../../core/contract/schema.ts';
import { isObject, listOf } from '../../../core/json/json.ts';
import { asType, bearer, changedPlace, oneOf, postedObject, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers(),
  provider: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A provider of this file by which requests are signed: one with `auth: { scheme: aws }`. Absent: `key` is an API key of Bedrock.',
    ),
  guardrail: z.string().min(1).describe('Id or ARN of the guardrail. Take it from the pages of the service.'),
  version: z
    .string()
    .regex(/^(?:[1-9]\d{0,7}|DRAFT)$/, 'must be a number or DRAFT')
    .default('DRAFT')
    .describe('Version of the guardrail. Change it when you have published another one.'),
});

export const bedrockGuardrail = asType<z.output<typeof config>>({
  name: 'bedrock_guardrail',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge({ stage, texts, signal }) {
      const { guardrail, version, provider, key } = settings;
      const answer = await postedObject(settings, tools, {
        path: `/guardrail/${encodeURIComponent(guardrail)}/version/${version}/apply`,
        headers: provider === undefined ? bearer(key) : {},
        provider,
        signal,
        body: {
          source: stage === 'prompt' ? 'INPUT' : 'OUTPUT',
          content: texts.map(({ text }) => ({ text: { text } })),
        },
      });
      if (oneOf(answer['action'], ['NONE', 'GUARDRAIL_INTERVENED'], 'action') === 'NONE') return { isHit: false };
      if (!masksAlone(answer['assessments'])) return { isHit: true };
      const outputs = listOf(answer['outputs']).map((one) => (isObject(one) ? one['text'] : undefined));
      if (outputs.length !== texts.length) return { isHit: true };
      const found = texts.flatMap(({ text }, index) => {
        const by = outputs[index];
        return typeof by !== 'string' || by === text ? [] : [changedPlace(index, text, by, 'MASKED')];
      });
      return found.length === 0 ? { isHit: true } : { isHit: true, found };
    },
  }),
});

/** It has replaced data, and blocked nothing: its outputs are the texts. Otherwise they are its own message. */
function masksAlone(assessments: unknown): boolean {
  const actions: unknown[] = [];
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) for (const one of value) collect(one);
    else if (isObject(value))
      for (const [name, member] of Object.entries(value)) {
        if (name === 'action') actions.push(member);
        else collect(member);
      }
  };
  collect(assessments);
  return actions.includes('ANONYMIZED') && !actions.includes('BLOCKED');
}
