/** Google's Model Armor by a template. https://docs.cloud.google.com/model-armor/sanitize-prompts-responses */

import { z } from '../../../core/contract/schema.ts';
import { isObject } from '../../../core/json/json.ts';
import { asType, bearer, oneOf, postedObject, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers(),
  provider: z
    .string()
    .min(1)
    .optional()
    .describe(
      'A provider of this file by which requests are authorized: one with `auth: { scheme: google }`. Absent: `key` is an access token.',
    ),
  template: z
    .string()
    .regex(/^projects\/[^/]+\/locations\/[^/]+\/templates\/[^/]+$/, 'must be projects/…/locations/…/templates/…')
    .describe('Name of the template. Make one for each set of rules.'),
});

export const modelArmor = asType<z.output<typeof config>>({
  name: 'model_armor',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge({ stage, texts, signal }) {
      const { template, provider, key } = settings;
      const text = texts.map((one) => one.text).join('\n\n');
      const isPrompt = stage === 'prompt';
      const answer = await postedObject(settings, tools, {
        path: `/v1/${template}:${isPrompt ? 'sanitizeUserPrompt' : 'sanitizeModelResponse'}`,
        headers: provider === undefined ? bearer(key) : {},
        provider,
        signal,
        body: isPrompt ? { userPromptData: { text } } : { modelResponseData: { text } },
      });
      const result = answer['sanitizationResult'];
      if (!isObject(result)) throw new Error('the service has no result');
      // Filters that did not run have found nothing, and proven nothing.
      oneOf(result['invocationResult'], ['SUCCESS'], 'result of its filters');
      return { isHit: oneOf(result['filterMatchState'], ['MATCH_FOUND', 'NO_MATCH_FOUND'], 'state') === 'MATCH_FOUND' };
    },
  }),
});
