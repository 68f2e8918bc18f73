/** Prisma AIRS by its synchronous scan. https://pan.dev/prisma-airs/api/airuntimesecurity/scan-sync-request/ */
import { z } from '../../../core/contract/schema.ts';
import { asType, oneOf, postedObject, serviceMembers } from './service.ts';

const config = z.strictObject({
  ...serviceMembers('https://service.api.aisecurity.paloaltonetworks.com'),
  profile: z.string().min(1).describe('Name of the security profile. Make one for each set of rules.'),
  application: z
    .string()
    .min(1)
    .default('gateway')
    .describe('Name of the application in the service’s reports. Change it to tell several gateways apart.'),
});

export const prismaAirs = asType<z.output<typeof config>>({
  name: 'prisma_airs',
  config,
  isOutside: true,
  open: (settings, tools) => ({
    async judge({ stage, texts, signal }) {
      const { profile, application, key } = settings;
      const text = texts.map((one) => one.text).join('\n\n');
      const answer = await postedObject(settings, tools, {
        path: '/v1/scan/sync/request',
        headers: { 'x-pan-token': key },
        signal,
        body: {
          ai_profile: { profile_name: profile },
          metadata: { app_name: application },
          contents: [stage === 'prompt' ? { prompt: text } : { response: text }],
        },
      });
      return { isHit: oneOf(answer['action'], ['allow', 'block'], 'action') === 'block' };
    },
  }),
});
