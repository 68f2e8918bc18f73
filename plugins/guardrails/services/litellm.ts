/** LiteLLM's generic guardrail API: any service that speaks it can be the checker. https://docs.litellm.ai/docs/adding_provider/generic_guardrail_api */

import { z } from '../../../core/contract/schema.ts';
import { listOf } from '../../../core/json/json.ts';
import { asType, changedPlace, oneOf, postedObject, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers(),
  parameters: z
    .record(z.string(), z.unknown())
    .default({})
    .describe(
      'Members that the service gets as `additional_provider_specific_params`. Set what your service asks for.',
    ),
});

export const litellm = asType<z.output<typeof config>>({
  name: 'litellm',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge({ stage, texts, signal }) {
      const given = texts.map(({ text }) => text);
      const answer = await postedObject(settings, tools, {
        path: '/beta/litellm_basic_guardrail_api',
        headers: settings.key === '' ? {} : { 'x-api-key': settings.key },
        signal,
        body: {
          texts: given,
          input_type: stage === 'prompt' ? 'request' : 'response',
          structured_messages: texts.map(({ role, text }) => ({ role, content: text })),
          request_data: {},
          additional_provider_specific_params: settings.parameters,
        },
      });
      const action = oneOf(answer['action'], ['BLOCKED', 'NONE', 'GUARDRAIL_INTERVENED'], 'action');
      if (action === 'NONE') return { isHit: false };
      if (action === 'BLOCKED') return { isHit: true };
      const changed = listOf(answer['texts']);
      if (changed.length !== given.length) throw new Error('the service has not answered for each text');
      const found = given.flatMap((text, index) => {
        const by = changed[index];
        return typeof by !== 'string' || by === text ? [] : [changedPlace(index, text, by, 'MASKED')];
      });
      return { isHit: found.length > 0, found };
    },
  }),
});
