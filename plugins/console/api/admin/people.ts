/** People who sign in: their roles, blocking, invitations, reset links. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { roles } from '../../actor.ts';
import type { Handover, PersonView } from '../../people.ts';
import { changesBetween, changesOf } from '../routing/audit-changes.ts';
import { actorOf, type ConsoleServices, nothingHere, type RequestContext } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, id, instant, pageOf, pageQuery, reasonInput, takes, writerOf } from '../schemas.ts';

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

const personJson = writerOf(person);

const handover = z
  .object({
    mailed: z.boolean(),
    link: z.string().nullable().describe('To hand over yourself; null: it went out by mail.'),
  })
  .openapi('Handover');
const email = z.email().max(200);
const name = z.string().trim().min(1).max(100);
const one = z.object({ id });

const list = route('get', '/admin/people', 'People, newest first', answers(pageOf(person)), {
  query: pageQuery.extend({ text: z.string().max(200).optional(), role: role.optional() }),
});
const create = route(
  'post',
  '/admin/people',
  'Invite a person, who sets a password by the link',
  answers(z.object({ person, handover })),
  { body: takes(z.strictObject({ email, name, role, reason: reasonInput.optional() })) },
);
const change = route('patch', '/admin/people/{id}', 'Change a role, or block', answers(person), {
  params: one,
  body: takes(
    z.strictObject({
      role: role.optional(),
      blocked: z.boolean().optional(),
      emailVerified: z.literal(true).optional().describe('The operator knows that the address is theirs.'),
      reason: reasonInput,
    }),
  ),
});
const reset = route('post', '/admin/people/{id}/reset', 'A link to set a new password', answers(handover), {
  params: one,
  body: takes(z.strictObject({ reason: reasonInput })),
});
const release = route(
  'post',
  '/admin/people/{id}/release',
  'Let whom a provider vouches for with this address take the account over; ends sessions',
  answers(person),
  { params: one, body: takes(z.strictObject({ reason: reasonInput })) },
);
const invite = route('post', '/admin/invitations', 'A link by which a client signs up, once', answers(handover), {
  body: takes(z.strictObject({ email, reason: reasonInput.optional() })),
});

export function peopleRoutes(services: ConsoleServices) {
  const { people } = services;
  return new Routes(services)
    .list(list, personJson, ({ query: { text, role } }, page) => people.search({ text, role }, page))
    .action(create, ({ json: { reason, ...wanted }, c }) => ({
      action: 'person.create',
      subject: wanted.email,
      reason: reason ?? wanted.role,
      changes: changesOf({ name: wanted.name, role: wanted.role }),
      run: async () => {
        const made = await people.create(wanted);
        return { person: personJson(made.person), handover: handoverJson(c, made.handover) };
      },
    }))
    .action(change, async ({ param, json: { role, blocked, emailVerified, reason }, c }) => {
      const { id, email, ...before } = await knownPerson(services, param.id);
      // An operator who locks themselves out needs another operator to undo it.
      if (id === actorOf(c).id)
        throw new GatewayError('conflict', 'You cannot change your own role or block yourself.', { field: 'id' });
      const words = [
        role,
        blocked === undefined ? undefined : blocked ? 'blocked' : 'unblocked',
        emailVerified && 'address confirmed',
      ].filter(Boolean);
      const run = async () => {
        if (role !== undefined) await people.setRole(id, role);
        if (blocked !== undefined) await people.setBlocked(id, blocked);
        if (emailVerified) await people.confirm(id);
        return personJson(await knownPerson(services, id));
      };
      const changes = changesBetween(before, { role, blocked, emailVerified });
      return { action: 'person.change', subject: email, reason: `${words.join(', ')}: ${reason}`, changes, run };
    })
    .action(reset, async ({ param, json: { reason }, c }) => {
      const { id, email } = await knownPerson(services, param.id);
      return {
        action: 'person.reset',
        subject: email,
        reason,
        run: async () => handoverJson(c, await people.reset(id)),
      };
    })
    .action(release, async ({ param, json: { reason } }) => {
      const { id, email } = await knownPerson(services, param.id);
      const run = async () => {
        await people.release(id);
        return personJson(await knownPerson(services, id));
      };
      return { action: 'person.release', subject: email, reason, run };
    })
    .action(invite, ({ json: { email, reason }, c }) => ({
      action: 'person.invite',
      subject: email,
      reason,
      run: async () => handoverJson(c, await people.invite(email)),
    }));
}

async function knownPerson(services: ConsoleServices, personId: string): Promise<PersonView> {
  const view = await services.people.find(personId);
  if (view === undefined) throw nothingHere('person');
  return view;
}

function handoverJson(c: RequestContext, { mailed, link }: Handover): z.infer<typeof handover> {
  return { mailed, link: link === undefined ? null : c.env.origin + link };
}
