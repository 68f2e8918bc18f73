/** Directives in a prompt that control the sandbox: `[[sandbox: status=429 retry_after=2]]`. Pure. */
import { badRequest } from '../fault.ts';
import { maxAnswerTokens } from './tokens.ts';

export interface Directives {
  status?: number;
  retry_after?: number;
  delay?: number;
  chunk_delay?: number;
  tokens?: number;
  chunks?: number;
  tool?: string;
  tools?: number;
  cut_after?: number;
  stall?: number;
  mid_error?: number;
  first_error?: number;
  no_terminal?: true;
  no_usage?: true;
  html?: true;
  refuse?: true;
  thinking?: true;
  empty?: true;
  takes?: number;
  link_lasts?: number;
  error_after?: number;
  poll_404?: number;
  poll_500?: number;
  stuck?: true;
  failed?: true;
  moderated?: true;
  lapsed?: true;
  partial?: true;
  twice?: true;
}

type Kind = 'flag' | 'milliseconds' | 'name' | { least: number; most: number; bare?: number };

const kinds: { readonly [K in keyof Directives]-?: Kind } = {
  status: { least: 400, most: 599 },
  retry_after: { least: 0, most: 86_400 },
  delay: 'milliseconds',
  chunk_delay: 'milliseconds',
  tokens: { least: 1, most: maxAnswerTokens },
  chunks: { least: 1, most: maxAnswerTokens },
  tool: 'name',
  tools: { least: 1, most: 64 },
  cut_after: { least: 0, most: maxAnswerTokens },
  stall: { least: 0, most: maxAnswerTokens, bare: 1 },
  mid_error: { least: 400, most: 599, bare: 500 },
  first_error: { least: 400, most: 599, bare: 500 },
  no_terminal: 'flag',
  no_usage: 'flag',
  html: 'flag',
  refuse: 'flag',
  thinking: 'flag',
  empty: 'flag',
  takes: 'milliseconds',
  link_lasts: 'milliseconds',
  error_after: { least: 400, most: 599, bare: 500 },
  poll_404: { least: 1, most: 1_000_000, bare: 1 },
  poll_500: { least: 1, most: 1_000_000, bare: 1 },
  stuck: 'flag',
  failed: 'flag',
  moderated: 'flag',
  lapsed: 'flag',
  partial: 'flag',
  twice: 'flag',
};

const longestWaitMs = 3_600_000;
const block = /\[\[sandbox:([^\]]*)\]\]/g;
const none: Directives = {};

/** The text without its directives, and their values. Throws a 400 fault for an unknown directive or a wrong value. */
export function parseDirectives(text: string): { text: string; directives: Directives } {
  if (!text.includes('[[sandbox:')) return { text, directives: none };
  const directives: Record<string, unknown> = {};
  const rest = text.replace(block, (_, list: string) => {
    for (const directive of list.split(/[\s,]+/)) if (directive !== '') parseDirective(directive, directives);
    return '';
  });
  return { text: rest.trim(), directives };
}

function parseDirective(directive: string, into: Record<string, unknown>): void {
  const equals = directive.indexOf('=');
  const name = equals < 0 ? directive : directive.slice(0, equals);
  const value = equals < 0 ? undefined : directive.slice(equals + 1);
  if (!Object.hasOwn(kinds, name)) throw badRequest(`The sandbox knows no directive "${name}".`);
  const read = parseValue(kinds[name as keyof Directives], value);
  if (read === undefined) throw badRequest(`The sandbox directive "${name}" cannot be "${value ?? ''}".`);
  into[name] = read;
}

function parseValue(kind: Kind, value: string | undefined): string | number | true | undefined {
  if (kind === 'flag') return value === undefined || value === 'true' ? true : undefined;
  if (kind === 'name') return value === '' ? undefined : value;
  if (kind === 'milliseconds') return parseMilliseconds(value ?? '');
  if (value === undefined) return kind.bare;
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  return number >= kind.least && number <= kind.most ? number : undefined;
}

function parseMilliseconds(value: string): number | undefined {
  const match = /^(\d{1,7})(ms|s)?$/.exec(value);
  const milliseconds = match === null ? Number.NaN : Number(match[1]) * (match[2] === 's' ? 1_000 : 1);
  return milliseconds <= longestWaitMs ? milliseconds : undefined;
}
