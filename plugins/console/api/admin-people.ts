/** People who sign in: who they are, what they may, how they are let in. */
import { createRoute, z } from '@hono/zod-openapi';
import { GatewayError } from '../../../core/errors.ts';
import { roles } from '../actor.ts';
import type { Handover, PersonView } from '../people.ts';
import { type Ask, actorOf, audited, type Console, nothingHere, router } from './router.ts';
import { answers, asked, id, instant, iso, isoOrNull, pageAsked, pageOf, reasonAsked, takes } from './words.ts';

const role = z.enum(roles);
const person = z
  .object({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    role,
    blocked: z.boolean(),
    emailVerified: z.boolean(),
    twoFactor: z.boolean(),
    accountId: z.string().nullable(),
    createdAt: instant,
    seenAt: instant.nullable(),
  })
  .openapi('Person');

export function tellPerson(view: PersonView): z.infer<typeof person> {
  const { id, email, name, role, blocked, emailVerified, twoFactor, accountId } = view;
  return {
    id,
    email,
    name,
    role,
    blocked,
    emailVerified,
    twoFactor,
    accountId: accountId ?? null,
    createdAt: iso(view.createdAt),
    seenAt: isoOrNull(view.seenAt),
  };
}

const handover = z
  .object({
    mailed: z.boolean(),
    link: z.string().nullable().describe('To hand over yourself; null: it went out by mail.'),
  })
  .openapi('Handover');
const email = z.email().max(200);
const name = z.string().trim().min(1).max(100);
const one = z.object({ id });

const list = createRoute({
  method: 'get',
  path: '/admin/people',
  summary: 'People, newest first',
  request: { query: pageAsked.extend({ text: z.string().max(200).optional(), role: role.optional() }) },
  responses: answers(pageOf(person)),
});
const create = createRoute({
  method: 'post',
  path: '/admin/people',
  summary: 'Let somebody in; they set a password by the link',
  request: { body: takes(z.strictObject({ email, name, role, reason: reasonAsked.optional() })) },
  responses: answers(z.object({ person, handover })),
});
const change = createRoute({
  method: 'patch',
  path: '/admin/people/{id}',
  summary: 'Change a role, or block',
  request: {
    params: one,
    body: takes(z.strictObject({ role: role.optional(), blocked: z.boolean().optional(), reason: reasonAsked })),
  },
  responses: answers(person),
});
const reset = createRoute({
  method: 'post',
  path: '/admin/people/{id}/reset',
  summary: 'A link to set a new password',
  request: { params: one, body: takes(z.strictObject({ reason: reasonAsked })) },
  responses: answers(handover),
});
const invite = createRoute({
  method: 'post',
  path: '/admin/invitations',
  summary: 'A link by which a client signs up, once',
  request: { body: takes(z.strictObject({ email, reason: reasonAsked.optional() })) },
  responses: answers(handover),
});

export function peopleRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const query = ask.req.valid('query');
      const { rows, next } = await hall.people.search({ text: query.text, role: query.role }, asked(query));
      return ask.json({ rows: rows.map(tellPerson), next: next ?? null }, 200);
    })
    .openapi(create, async (ask) => {
      const { reason, ...wanted } = ask.req.valid('json');
      const change = { action: 'person.create', subject: wanted.email, reason: reason ?? wanted.role };
      const made = await audited(hall, ask, change, () => hall.people.create(wanted));
      return ask.json({ person: tellPerson(made.person), handover: tellHandover(ask, made.handover) }, 200);
    })
    .openapi(change, async (ask) => {
      const view = await knownPerson(hall, ask.req.valid('param').id);
      const { role, blocked, reason } = ask.req.valid('json');
      // Whoever locks themselves out needs somebody else to come back in.
      if (view.id === actorOf(ask).id)
        throw new GatewayError('conflict', 'Nobody changes their own role or blocks themselves.', { field: 'id' });
      const words = [role, blocked === undefined ? undefined : blocked ? 'blocked' : 'unblocked'].filter(Boolean);
      const change = { action: 'person.change', subject: view.email, reason: `${words.join(', ')}: ${reason}` };
      await audited(hall, ask, change, async () => {
        if (role !== undefined) await hall.people.setRole(view.id, role);
        if (blocked !== undefined) await hall.people.setBlocked(view.id, blocked);
      });
      return ask.json(tellPerson(await knownPerson(hall, view.id)), 200);
    })
    .openapi(reset, async (ask) => {
      const view = await knownPerson(hall, ask.req.valid('param').id);
      const { reason } = ask.req.valid('json');
      const link = await audited(hall, ask, { action: 'person.reset', subject: view.email, reason }, () =>
        hall.people.reset(view.id),
      );
      return ask.json(tellHandover(ask, link), 200);
    })
    .openapi(invite, async (ask) => {
      const { email, reason } = ask.req.valid('json');
      const link = await audited(hall, ask, { action: 'person.invite', subject: email, reason }, () =>
        hall.people.invite(email),
      );
      return ask.json(tellHandover(ask, link), 200);
    });
}

async function knownPerson(hall: Console, personId: string): Promise<PersonView> {
  const view = await hall.people.find(personId);
  if (view === undefined) throw nothingHere('person');
  return view;
}

function tellHandover(ask: Ask, { mailed, link }: Handover): z.infer<typeof handover> {
  return { mailed, link: link === undefined ? null : ask.env.origin + link };
}
