/** What there are requests of in a span: the choices of the filters of usage, also of keys, projects and people that are gone. */
import { z } from '@hono/zod-openapi';
import type { RequestFilter, RequestGroup } from '../../../common/domain/admin/requests.ts';
import { accountAdmin, requestQueries } from '../../services.ts';
import { requestFilterIn } from '../request-rows.ts';
import { type ConsoleServices, has, need, type RequestContext } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, instantInput } from '../schemas.ts';
import { spanOfDays, zoneQuery } from '../time-zone.ts';
import { scopeOf } from './scope.ts';

/** The most frequent keys, projects and people are offered. */
const mostChoices = 500;

const named = z.array(z.object({ id: z.string(), name: z.string() }));
const choices = z
  .object({
    keys: named,
    projects: z.array(z.string()).describe('Names.'),
    people: named.describe('Whom calls were for; none for a role that does not read those of all keys.'),
  })
  .openapi('UsageChoices');
const query = z.object({ from: instantInput.optional(), until: instantInput.optional(), ...zoneQuery.shape });
const list = route('get', '/usage/choices', 'Keys, projects and people with own requests', answers(choices), { query });

export function usageChoiceRoutes(services: ConsoleServices) {
  return new Routes(services).read(list, ({ query: asked, c }) => choicesIn(services, c, asked));
}

async function choicesIn(services: ConsoleServices, c: RequestContext, asked: z.output<typeof query>) {
  const span = spanOfDays(asked, services.clock.now(), 30);
  const filter = await requestFilterIn(services, { ...asked, traffic: 'all' }, span, await scopeOf(services, c));
  const [keyIds, projectIds, personIds] = await Promise.all([
    idsIn(services, filter, 'key'),
    idsIn(services, filter, 'project'),
    (await has(services, c, 'allUsage')) ? idsIn(services, filter, 'person') : [],
  ]);
  const admin = need(services, accountAdmin);
  const [keys, projects, people] = await Promise.all([
    admin.namesOf(keyIds),
    admin.projectNames(projectIds),
    services.invitations.named(personIds),
  ]);
  return {
    keys: byName(keyIds, (id) => keys.get(id)?.name),
    projects: byName(projectIds, (id) => projects.get(id)).map(({ name }) => name),
    people: byName(personIds, (id) => people.get(id)?.name || people.get(id)?.email),
  };
}

async function idsIn(services: ConsoleServices, filter: RequestFilter, by: RequestGroup): Promise<string[]> {
  const groups = await need(services, requestQueries).groupCounts(filter, by, mostChoices);
  return groups.flatMap(({ group }) => (group === '' ? [] : group));
}

/** What is not known by a name any more stands there by its id. */
const byName = (ids: readonly string[], nameOf: (id: string) => string | undefined) =>
  ids
    .map((id) => ({ id, name: nameOf(id) || id }))
    .toSorted((one, other) => one.name.localeCompare(other.name) || one.id.localeCompare(other.id));
