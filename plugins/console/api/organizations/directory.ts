/** The token by which the directory of a company says who is in its account (SCIM 2.0). */
import { z } from '@hono/zod-openapi';
import type { ConsoleServices } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done } from '../schemas.ts';
import { turnOf } from './company-view.ts';

const renew = route(
  'post',
  '/members/sign-in/directory',
  'Make a token for the directory; it is shown this once, and the one before ends',
  answers(z.object({ token: z.string() })),
);
const remove = route(
  'delete',
  '/members/sign-in/directory',
  'End the token: the directory changes nothing more, and members stay',
  answers(done),
);

export function directoryRoutes(services: ConsoleServices) {
  const { scim } = services.companies;
  return new Routes(services)
    .action(renew, ({ c }) => ({
      action: 'sign-in.directory',
      subject: 'SCIM',
      run: async () => ({ token: await scim.renew(await turnOf(services, c)) }),
    }))
    .action(remove, ({ c }) => ({
      action: 'sign-in.directory-off',
      subject: 'SCIM',
      run: async () => scim.remove(await turnOf(services, c)),
    }));
}
