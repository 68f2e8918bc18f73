/** OpenAI's moderations at any address. https://platform.openai.com/docs/api-reference/moderations */

import { z } from '../../../core/contract/schema.ts';
import { isObject, listOf } from '../../../core/json/json.ts';
import { asType, bearer, postedObject, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers('https://api.openai.com/v1'),
  model: z
    .string()
    .min(1)
    .default('omni-moderation-latest')
    .describe('Model that moderates. Change it where the service has another one.'),
  categories: z
    .array(z.string().min(1))
    .optional()
    .describe('Categories that are findings. Absent: all that the model flags.'),
});

export const openaiModerations = asType<z.output<typeof config>>({
  name: 'openai_moderations',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge({ texts, signal }) {
      const { key, model, categories } = settings;
      const answer = await postedObject(settings, tools, {
        path: '/moderations',
        headers: bearer(key),
        signal,
        body: { model, input: texts.map(({ text }) => text) },
      });
      const results = listOf(answer['results']);
      if (results.length !== texts.length) throw new Error('the service has not answered for each text');
      const isHit = results.some((result) => {
        if (!isObject(result) || typeof result['flagged'] !== 'boolean' || !isObject(result['categories']))
          throw new Error('a result of the service cannot be read');
        const flagged = result['categories'];
        return categories === undefined ? result['flagged'] : categories.some((name) => flagged[name] === true);
      });
      return { isHit };
    },
  }),
});
