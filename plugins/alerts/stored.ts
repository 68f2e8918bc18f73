/** Alerts as they are stored, and what they are in memory. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { AlertUnit, AlertValue, AlertView } from '../common/domain/admin/alerts.ts';
import { shownValue } from './message.ts';
import type { OpenAlert } from './state.ts';

type Moment = Date | string;
export interface StoredAlert {
  readonly id: string;
  readonly rule: string;
  readonly kind: string;
  readonly title: string;
  readonly unit: AlertUnit;
  readonly subject: string;
  readonly phase: 'pending' | 'running' | 'ended';
  readonly value: string;
  readonly threshold: string;
  readonly fields: string;
  readonly since: Moment;
  readonly began_at: Moment | null;
  readonly sent_at: Moment | null;
  readonly calm_since: Moment | null;
  readonly ended_at: Moment | null;
  readonly acknowledged_at: Moment | null;
  readonly acknowledged_by: string | null;
  readonly acknowledged_reason: string | null;
  readonly version: number;
}

const ms = (moment: Moment) => new Date(moment).getTime();
const msOf = (moment: Moment | null) => (moment === null ? undefined : ms(moment));

/** A stored numeric value, in which exact units are whole billionths. */
export const storedValue = (stored: string, unit: AlertUnit): AlertValue =>
  unit === 'usd' || unit === 'times' ? BigInt(stored) : Number(stored);

export function stateOf(row: StoredAlert): OpenAlert {
  const { id, rule, kind, title, unit, subject, version } = row;
  return {
    ...{ id, rule, kind, title, unit, subject, version },
    value: storedValue(row.value, unit),
    threshold: storedValue(row.threshold, unit),
    fields: JSON.parse(row.fields),
    beganAt: msOf(row.began_at),
    state: {
      phase: row.phase === 'pending' ? 'pending' : 'running',
      since: ms(row.since),
      sentAt: msOf(row.sent_at),
      calmSince: msOf(row.calm_since),
      acknowledged: row.acknowledged_at !== null,
    },
  };
}

export function readView(row: StoredAlert): AlertView {
  const { id, rule, kind, title, unit, subject, acknowledged_at, acknowledged_by, acknowledged_reason } = row;
  return {
    ...{ id, rule, kind, title, unit, subject },
    threshold: shownValue(storedValue(row.threshold, unit)),
    value: shownValue(storedValue(row.value, unit)),
    fields: JSON.parse(row.fields),
    beganAt: ms(row.began_at!),
    endedAt: msOf(row.ended_at),
    acknowledged:
      acknowledged_at === null
        ? undefined
        : { at: ms(acknowledged_at), by: acknowledged_by ?? '', reason: acknowledged_reason ?? '' },
  };
}

export const cursorAt = ({ beganAt, id }: AlertView) => `${beganAt}_${id}`;

export function afterSql(after: string | undefined): SQL | undefined {
  if (after === undefined) return undefined;
  const match = /^(\d{1,15})_([0-9a-f]{1,64})$/.exec(after);
  if (match === null) throw new GatewayError('invalid_request', 'It is not the end of a page.', { field: 'after' });
  const [, began, id] = match;
  return sql`(began_at, id) < (${new Date(Number(began)).toISOString()}::timestamptz, ${id})`;
}
