/** What all addresses of the organization share: pages of lists, bodies with known members alone, times in seconds. */
import { GatewayError } from '../../core/contract/errors.ts';
import { readBody } from '../../core/json/request-body.ts';
import { type MemberRole, memberRoles } from '../common/domain/organizations/rights.ts';

const mostListed = 100;
const usualListed = 20;

export function limitIn(query: URLSearchParams): number {
  const text = query.get('limit') ?? String(usualListed);
  const limit = /^\d{1,4}$/.test(text) ? Number.parseInt(text, 10) : 0;
  if (limit >= 1 && limit <= mostListed) return limit;
  throw wrong('limit', `"limit" is a whole number from 1 to ${mostListed}.`);
}

/** Other members are refused: an answer that leaves them out would look as if they were taken. */
export function bodyOf(bytes: Uint8Array, fields: ReadonlySet<string>, of: string): Readonly<Record<string, unknown>> {
  const { json } = readBody(bytes, fields);
  const other = Object.keys(json).find((member) => !fields.has(member));
  if (other !== undefined) throw wrong(other, `The field "${other.slice(0, 100)}" is not known for ${of}.`);
  return json;
}

export function textIn(json: Readonly<Record<string, unknown>>, field: string): string {
  const value = json[field];
  if (typeof value === 'string') return value;
  throw wrong(field, `The field "${field}" must be a text.`);
}

export function roleIn(json: Readonly<Record<string, unknown>>): MemberRole {
  const role = memberRoles.find((one) => one === json['role']);
  if (role !== undefined) return role;
  throw wrong('role', `The field "role" is one of ${memberRoles.join(', ')}.`);
}

export const wrong = (field: string, message: string) =>
  new GatewayError('invalid_request', message, { field, shouldRetry: false });

export const unknown = (what: string, field: string) =>
  new GatewayError('not_found', `There is no such ${what}.`, { field, shouldRetry: false });

export const secondsOf = (at: number) => Math.floor(at / 1000);
export const secondsOrNull = (at: number | undefined) => (at === undefined ? null : secondsOf(at));

/** A page in the shape of OpenAI. */
export const listOf = <Row extends { readonly id: string }>(data: readonly Row[], hasMore: boolean) => ({
  ...{ object: 'list', data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: hasMore },
});

/** The page of rows that are all known: those behind the one that `after` names. */
export function pageIn<Row extends { readonly id: string }>(
  rows: readonly Row[],
  query: URLSearchParams,
  what: string,
) {
  const limit = limitIn(query);
  const after = query.get('after');
  const behind = after === null ? 0 : rows.findIndex(({ id }) => id === after) + 1;
  if (after !== null && behind === 0) throw unknown(what, 'after');
  return listOf(rows.slice(behind, behind + limit), rows.length > behind + limit);
}
