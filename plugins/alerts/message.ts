/** The text of messages, and names without characters that could disguise them. Pure. */
import type { Host } from '../../core/contract/contract.ts';
import {
  type AlertMessage,
  type AlertUnit,
  type AlertValue,
  consolePages,
  type Measurement,
  type ShownValue,
} from '../common/domain/admin/alerts.ts';
import { formatUsd } from '../common/domain/money.ts';
import type { OpenAlert } from './state.ts';

const longestName = 120;

/** Names may come from clients: without line breaks, control characters, direction marks and invisible characters. */
export function plainName(name: string): string {
  const plain = name.replaceAll(/[\p{C}\p{DI}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  const letters = [...plain];
  return letters.length > longestName ? `${letters.slice(0, longestName - 1).join('')}…` : plain;
}

/** The measurement with subject and further facts as plain text. */
export function plainFacts<T extends Pick<Measurement, 'subject' | 'fields'>>(one: T): T {
  const subject = plainName(one.subject);
  if (one.fields === undefined) return { ...one, subject };
  const fields = Object.entries(one.fields).map(([name, field]) => [
    name,
    typeof field === 'string' ? plainName(field) : field,
  ]);
  return { ...one, subject, fields: Object.fromEntries(fields) };
}

export const shownValue = (value: AlertValue): ShownValue => (typeof value === 'bigint' ? formatUsd(value) : value);

export function valueText(value: ShownValue, unit: AlertUnit): string {
  if (typeof value === 'string') return unit === 'usd' ? `${value} USD` : `${oneDecimal(value)} times the usual`;
  if (unit === 'share') return `${(value * 100).toFixed(1)} %`;
  if (unit === 'milliseconds') return durationText(value);
  return String(Math.round(value));
}

function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 600_000) return `${(ms / 1_000).toFixed(1)} s`;
  const hours = ms / 3_600_000;
  if (hours < 2) return `${Math.round(ms / 60_000)} min`;
  return hours < 48 ? `${Math.round(hours)} h` : `${Math.floor(hours / 24)} days`;
}

/** Cuts the decimal text of `shownValue` after one digit. */
function oneDecimal(value: string): string {
  return value.slice(0, value.indexOf('.') + 2);
}

type Written = Omit<AlertMessage, 'title' | 'text'> & { readonly kindTitle: string };

export function messageOf({ kindTitle, ...written }: Written): AlertMessage {
  const facts = { ...written, gateway: plainName(written.gateway) };
  const { event, gateway, rule, subject, threshold, unit, beganAt, at, id } = facts;
  const what = `${kindTitle}: ${subject}`;
  const mark = { begin: 'ALERT', repeat: 'STILL', end: 'OVER', test: 'TEST' }[event];
  const lasted = `after ${minutes(at - beganAt)}`;
  const title = `[${gateway}] ${mark} ${what}${event === 'end' ? ` (${lasted})` : ''}`;
  const lines = [
    event === 'test' ? 'This is a test. Nothing is wrong.' : what,
    `Value: ${valueNow(facts)}, threshold: ${valueText(threshold, unit)}`,
    ...Object.entries(facts.fields).map(([name, field]) => `${name}: ${field}`),
    `Since: ${new Date(beganAt).toISOString()}${event === 'begin' || event === 'test' ? '' : ` (${lasted})`}`,
    `Rule: ${rule}`,
    `Id: ${id}`,
    ...(facts.url === undefined ? [] : [facts.url]),
  ];
  return { ...facts, title, text: lines.join('\n') };
}

function valueNow({ event, value, was, unit }: Pick<AlertMessage, 'event' | 'value' | 'was' | 'unit'>): string {
  const now = value === null ? 'nothing is measured any more' : valueText(value, unit);
  return event === 'end' && was !== undefined ? `${now}, was ${valueText(was, unit)}` : now;
}

/** The message of an alert. `good`: at its end the value that ended it; undefined: there is none. */
export function messageFor(
  alert: OpenAlert,
  event: AlertMessage['event'],
  { gateway, find }: Pick<Host, 'gateway' | 'find'>,
  at: number,
  good?: AlertValue,
): AlertMessage {
  const { id, rule, kind, subject, unit, fields, title: kindTitle } = alert;
  const [was, threshold] = [shownValue(alert.value), shownValue(alert.threshold)];
  const none = unit === 'count' ? 0 : null;
  const value = event !== 'end' ? was : good === undefined ? none : shownValue(good);
  const url = find(consolePages)?.address('/admin/alerts');
  const more = { ...(event === 'end' && { was }), ...(url !== undefined && { url }) };
  const facts = { id, event, rule, kind, kindTitle, subject, value, threshold, unit, fields, ...more };
  return messageOf({ ...facts, gateway, beganAt: alert.beganAt ?? at, at });
}

function minutes(ms: number): string {
  const whole = Math.max(0, Math.round(ms / 60_000));
  return whole < 120 ? `${whole} min` : `${Math.round(whole / 60)} h`;
}
