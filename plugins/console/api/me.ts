/** Who I am, what this gateway is, and the one-time link that makes its first operator. */
import { createRoute, z } from '@hono/zod-openapi';
import { payments } from '../../../core/desk-money.ts';
import { roles } from '../actor.ts';
import {
  accountDesk,
  accounts,
  bodyDesk,
  configDesk,
  moneyDesk,
  plans,
  pool,
  priceDesk,
  probeDesk,
  requestDesk,
  shop,
  shopDesk,
  taskDesk,
  upstreamDesk,
} from '../desks.ts';
import { type Ask, actorOf, type Console, router } from './router.ts';
import { answers, done, instant, isoOrNull, takes } from './words.ts';

const features = {
  accounts: accountDesk,
  requests: requestDesk,
  bodies: bodyDesk,
  money: moneyDesk,
  wallet: pool,
  shop,
  codes: shopDesk,
  tasks: taskDesk,
  upstreams: upstreamDesk,
  tests: probeDesk,
  prices: priceDesk,
  plans,
  config: configDesk,
  payments,
} as const;
type Feature = keyof typeof features;
const featureNames = Object.keys(features) as Feature[];

const me = z
  .object({
    role: z.enum(roles),
    person: z
      .object({
        id: z.string(),
        email: z.string(),
        name: z.string(),
        emailVerified: z.boolean(),
        twoFactor: z.boolean(),
      })
      .nullable()
      .describe('null: a script with a token.'),
    account: z
      .object({
        id: z.string(),
        name: z.string(),
        plan: z.string(),
        planEndsAt: instant.nullable(),
        disabled: z.boolean(),
      })
      .nullable()
      .describe('null: has no account of its own.'),
    gateway: z.object({
      name: z.string(),
      origin: z.string().describe('Base address that clients are set up with, without a path.'),
    }),
    features: z
      .record(z.enum(featureNames as [Feature, ...Feature[]]), z.boolean())
      .describe('What this gateway can show; pages of what it lacks are not shown.'),
  })
  .openapi('Me');

const info = z
  .object({
    gateway: z.string(),
    signUp: z.enum(['open', 'invite', 'closed']),
    providers: z.array(z.object({ id: z.string(), name: z.string() })),
    firstOperatorMissing: z.boolean(),
    mail: z.boolean().describe('Whether mails are sent; without, links come from the operator.'),
    languages: z.array(z.string()),
  })
  .openapi('Info');

const password = z.string().min(10, 'needs at least 10 characters').max(128);
const personName = z.string().trim().min(1).max(100);

const getMe = createRoute({ method: 'get', path: '/me', summary: 'Who asks', responses: answers(me) });
const patchMe = createRoute({
  method: 'patch',
  path: '/me',
  summary: 'Change the own name',
  request: { body: takes(z.strictObject({ name: personName })) },
  responses: answers(me),
});
const getInfo = createRoute({
  method: 'get',
  path: '/info',
  summary: 'What the sign-in page must know',
  responses: answers(info),
});
const first = createRoute({
  method: 'post',
  path: '/first-operator',
  summary: 'Make the first operator by the one-time link',
  request: {
    body: takes(
      z.strictObject({ token: z.string().min(1).max(200), email: z.email().max(200), password, name: personName }),
    ),
  },
  responses: answers(done),
});

export function meRoutes(hall: Console) {
  return router()
    .openapi(getMe, async (ask) => ask.json(await tellMe(hall, ask), 200))
    .openapi(patchMe, async (ask) => {
      await hall.people.rename(actorOf(ask).id, ask.req.valid('json').name);
      return ask.json(await tellMe(hall, ask), 200);
    })
    .openapi(getInfo, async (ask) => {
      const { name, signUp, oidc, mail } = hall.settings;
      const firstOperatorMissing = await hall.people.firstOperatorMissing();
      const providers = oidc.map((provider) => ({ ...provider }));
      return ask.json({ gateway: name, signUp, providers, firstOperatorMissing, mail, languages: ['en', 'zh'] }, 200);
    })
    .openapi(first, async (ask) => {
      const wanted = ask.req.valid('json');
      const actor = { kind: 'person', id: 'first-operator', label: wanted.email, role: 'operator' } as const;
      // Whoever only guesses leaves no rows.
      await hall.people.makeFirstOperator(wanted);
      const { address } = ask.env;
      const end = await hall.audit.begin({
        actor,
        action: 'operator.first',
        subject: wanted.email,
        reason: undefined,
        address,
      });
      await end('done');
      return ask.json({ ok: true } as const, 200);
    });
}

async function tellMe(hall: Console, ask: Ask): Promise<z.infer<typeof me>> {
  const actor = actorOf(ask);
  const person = actor.kind === 'person' ? await hall.people.find(actor.id) : undefined;
  return {
    role: actor.role,
    person: person === undefined ? null : pick(person),
    account: person === undefined || actor.role === 'auditor' ? null : await tellAccount(hall, actor.id),
    gateway: { name: hall.settings.name, origin: ask.env.origin },
    features: Object.fromEntries(
      featureNames.map((name) => [name, hall.find<unknown>(features[name]) !== undefined]),
    ) as Record<Feature, boolean>,
  };
}

function pick({ id, email, name, emailVerified, twoFactor }: NonNullable<z.infer<typeof me>['person']>) {
  return { id, email, name, emailVerified, twoFactor };
}

async function tellAccount(hall: Console, personId: string) {
  const accountId = await hall.people.accountOf(personId);
  const view = await hall.find(accountDesk)?.find(accountId);
  if (view !== undefined) {
    const { id, name, plan, disabled } = view;
    return { id, name, plan, planEndsAt: isoOrNull(view.planEndsAt), disabled };
  }
  const account = await hall.find(accounts)?.find(accountId);
  if (account === undefined) return null;
  return { id: account.id, name: account.name, plan: account.plan, planEndsAt: null, disabled: false };
}
