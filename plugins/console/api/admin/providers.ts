/** Providers that people sign in by: what to register there, and a test of each. */
import { z } from '@hono/zod-openapi';
import type { ConsoleServices } from '../routing/router.ts';
import { nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, id, writerOf } from '../schemas.ts';

const provider = z
  .object({
    id: z.string(),
    name: z.string(),
    issuer: z.string(),
    redirectUri: z.string().describe('To register at the provider: where it sends people back to.'),
    signedOutUri: z.string().describe('To register there where `signOut` is `provider`.'),
    domains: z.array(z.string()),
    withoutPasswords: z.array(z.string()).describe('Those of the domains whose people have no passwords.'),
    signOut: z.enum(['console', 'provider']),
  })
  .openapi('SignInProvider');

const list = route(
  'get',
  '/admin/sign-in',
  'Providers that people sign in by',
  answers(z.object({ rows: z.array(provider) })),
);
const test = route(
  'post',
  '/admin/sign-in/{id}/test',
  'Read what a provider says of itself',
  answers(z.object({ problem: z.string().nullable().describe('null: it can be used.') })),
  { params: z.object({ id }) },
);

export function providerRoutes({ providers, ...services }: ConsoleServices) {
  return new Routes({ providers, ...services })
    .read(list, () => ({ rows: providers.list().map(providerJson) }))
    .action(test, ({ param: { id } }) => ({
      action: 'provider.test',
      subject: id,
      run: async () => {
        const tested = await providers.test(id);
        if (tested === undefined) throw nothingHere('provider');
        return { problem: tested.problem ?? null };
      },
    }));
}

const providerJson = writerOf(provider);
