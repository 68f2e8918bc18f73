/** Requests together with what they were charged: rows of two services joined by the request's id. */
import type { KeyNames } from '../../common/domain/admin/accounts.ts';
import type { ChargeView } from '../../common/domain/admin/ledger.ts';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import type { RequestListFilter, RequestView } from '../../common/domain/admin/requests.ts';
import type { TaskView } from '../../common/domain/admin/tasks.ts';

import { accountAdmin, guardrailVerdicts, ledgerQueries, requestQueries, taskAdmin } from '../services.ts';
import { type ConsoleServices, need, nothingHere } from './routing/router.ts';

export interface ChargedRequest {
  readonly row: RequestView;
  /** What its key is called. */
  readonly key: KeyNames | undefined;
  /** The name of the project that it was for. */
  readonly project: string | undefined;
  readonly charge: ChargeView | undefined;
  /** State of the task that it has made, where it was not charged (yet). */
  readonly task: TaskView['state'] | undefined;
  /** What guardrails have said of it. */
  readonly guardrails?: string | undefined;
}

/** One page of requests, each with its charge. */
export async function chargedRequests(
  services: ConsoleServices,
  filter: RequestListFilter,
  page: PageRequest,
): Promise<Page<ChargedRequest> & { readonly sortedOf: number | undefined }> {
  const { rows, next, sortedOf } = await need(services, requestQueries).list(filter, page);
  const ids = rows.map(({ id }) => id);
  const found = (await services.find(ledgerQueries)?.chargesOf(ids, filter.accountId)) ?? [];
  const charges = new Map(found.map((charge) => [charge.requestId, charge]));
  const [names, projects] = await Promise.all([keyNamesOf(services, rows), projectNamesOf(services, rows)]);
  const tasks = await tasksOf(
    services,
    rows.filter(({ id }) => !charges.has(id)),
  );
  return {
    rows: rows.map((row) => {
      const { id, keyId = '' } = row;
      return { row, key: names.get(keyId), project: projects(row), charge: charges.get(id), task: tasks?.get(id) };
    }),
    next,
    sortedOf,
  };
}

/** An order of an image is answered before its task ends: what became of it stands with the task. */
async function tasksOf(services: ConsoleServices, rows: readonly RequestView[]) {
  const orders = rows.flatMap(({ id: requestId, accountId, status, outcome }) =>
    accountId === undefined || status >= 300 || outcome !== 'complete' ? [] : [{ requestId, accountId }],
  );
  return orders.length === 0 ? undefined : await services.find(taskAdmin)?.statesOf(orders);
}

/** With what guardrails have said of them. */
export async function withVerdicts<Found extends { readonly rows: readonly ChargedRequest[] }>(
  services: ConsoleServices,
  found: Found,
): Promise<Found> {
  const calls = found.rows.map(({ row: { id: requestId, accountId = '' } }) => ({ requestId, accountId }));
  const verdicts = await services.find(guardrailVerdicts)?.of(calls);
  if (verdicts === undefined) return found;
  return { ...found, rows: found.rows.map((each) => ({ ...each, guardrails: verdicts.get(each.row.id) })) };
}

/** What the keys of these rows are called, by the keys. */
export async function keyNamesOf(
  services: ConsoleServices,
  rows: readonly { readonly keyId?: string | undefined }[],
): Promise<ReadonlyMap<string, KeyNames>> {
  const ids = new Set(rows.flatMap(({ keyId }) => keyId ?? []));
  return (await services.find(accountAdmin)?.namesOf([...ids])) ?? new Map();
}

/** What the project of each of these rows is called; its id, where there is no such project. */
export async function projectNamesOf(
  services: ConsoleServices,
  rows: readonly Pick<RequestView, 'projectId'>[],
): Promise<(row: Pick<RequestView, 'projectId'>) => string | undefined> {
  const ids = new Set(rows.flatMap(({ projectId }) => projectId ?? []));
  const names = await services.find(accountAdmin)?.projectNames([...ids]);
  return ({ projectId }) => projectId && (names?.get(projectId) ?? projectId);
}

/** One request of an account, or of any, with its charge and attempts. */
export async function chargedRequest(services: ConsoleServices, id: string, accountId: string | undefined) {
  const row = await need(services, requestQueries).find(id, accountId);
  if (row === undefined) throw nothingHere('request');
  const key = (await keyNamesOf(services, [row])).get(row.keyId ?? '');
  const project = (await projectNamesOf(services, [row]))(row);
  const charge = await services.find(ledgerQueries)?.charge(id, accountId);
  const task = charge === undefined ? (await tasksOf(services, [row]))?.get(id) : undefined;
  return { row, key, project, charge, task };
}
