/** Events of a timeline in the reader's language. Pure. */
import type { ParseKeys, TFunction } from 'i18next';
import { formatRatio, formatUsd } from '../../../../../../common/domain/money.ts';
import { bytesText, countText, durationText, exactMoneyText, localDecimals } from '../../../parts/format.ts';

type Value = string | number | boolean | null;
export interface EventLine {
  /** In English: for kinds that no text here is for, such as those of added plugins. */
  readonly text: string;
  readonly kind: string;
  readonly values: readonly Value[];
}
interface Reader {
  readonly t: TFunction;
  readonly language: string;
}
type Names = Readonly<Record<string, string | number>>;
type Words = (values: readonly Value[], reader: Reader) => string;

/** Words of an event; a code without words throws, and the English text is shown. */
const say = (reader: Reader, key: string, names: Names = {}): string => words(reader, `operator.events.${key}`, names);
/** Words of the page of requests, and of all pages. */
const said = (reader: Reader, key: string, names: Names = {}): string =>
  words(reader, `operator.traffic.requests.${key}`, names);

function words({ t }: Reader, key: string, names: Names = {}): string {
  const found = t(key as ParseKeys, { ...names, defaultValue: '' });
  if (found === '') throw new Error(`no words for ${key}`);
  return found;
}

export function eventWords(line: EventLine, reader: Reader): string {
  try {
    return Object.hasOwn(wordsByKind, line.kind) ? wordsByKind[line.kind]!(line.values, reader) : line.text;
  } catch {
    return line.text;
  }
}

/** Kinds that are about one attempt, which their first value numbers. */
const ofAttempt = new Set(['route.goes', 'route.attempt', 'route.again', 'route.final', 'route.vendor']);

/** The attempt that a line is about. */
export const attemptOf = ({ kind, values }: EventLine): number | undefined =>
  ofAttempt.has(kind) && typeof values[0] === 'number' ? values[0] : undefined;

/** Failures of attempts by their stored texts: the gateway's own, and those of libraries, which are quoted too. */
const failures: readonly (readonly [text: RegExp, words: string, isQuoted?: true])[] = [
  [/^the upstream sends nothing$/, 'headSlow'],
  [/headers timeout/i, 'headSlow'],
  [/body timeout/i, 'bodySlow'],
  [/connect timeout|takes too long$/i, 'connectSlow'],
  [/^the proxy /, 'proxy', true],
  [/certificate|\bCERT_|\bTLS\b|\bSSL\b|EPROTO/i, 'certificate', true],
  [/ENOTFOUND|EAI_AGAIN/, 'name', true],
  [/ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT/, 'unreachable', true],
  [/ECONNRESET|EPIPE|other side closed|socket hang up|^terminated$|^the upstream closed/i, 'closed', true],
  [/^the stream ended without its end$/, 'unfinished'],
  [/^the stream reported an error$/, 'reported'],
  [/too large$|more than \d+ times its size$/, 'tooLarge'],
  [/content-encoding$|cannot be read/, 'unreadable', true],
  [/^Another attempt of this request answered first\.$/, 'lost'],
];

/** Why an attempt failed, as it is stored, in words; what is not known stands as it is. */
export function failureWords(text: string, reader: Reader): string {
  const status = /^the upstream answered (\d+)$/.exec(text)?.[1];
  if (status !== undefined) return say(reader, 'failedStatus', { status });
  const [, name, isQuoted] = failures.find(([form]) => form.test(text)) ?? [];
  if (name === undefined) return text;
  const known = name === 'lost' ? say(reader, 'why.lost') : say(reader, `failed.${name}`);
  return isQuoted ? `${known} (${text})` : known;
}

const reasons: Readonly<Record<string, string>> = {
  listed: 'listed',
  'takes the media': 'media',
  'by weight': 'weight',
  'by the session': 'session',
  'where the session was before': 'before',
  'the fastest': 'fastest',
  pinned: 'pinned',
};

const usd = (nano: Value, { language }: Reader): string => exactMoneyText(formatUsd(BigInt(String(nano))), language);
const text = (value: Value): string => String(value);
const time = (value: Value, { language }: Reader): string => durationText(Number(value), language);
/** An age that is known in whole seconds. */
function ageInSeconds(seconds: number, reader: Reader): string {
  if (seconds < 1) return '< 1 s';
  return seconds < 60 ? `${seconds} s` : time(seconds * 1000, reader);
}
const count = (value: Value, { language }: Reader): string => countText(Number(value), language);
const bytes = (value: Value, { language }: Reader): string => bytesText(Number(value), language);

function withoutFields(form: string, fields: Value, reader: Reader): string {
  return fields === null ? form : `${form}; ${said(reader, 'droppedTitle')}: ${text(fields)}`;
}

const wordsByKind: Readonly<Record<string, Words>> = {
  'agent-loop.turn': ([number = 0, status = 0, cost = '0'], reader) =>
    say(reader, 'runTurn', {
      number: Number(number),
      status: text(status),
      amount: exactMoneyText(text(cost), reader.language),
    }),
  'agent-loop.call': ([tool = '', end = '', cost = '0'], reader) =>
    say(reader, end === 'failed' ? 'runToolFailed' : 'runToolAnswered', {
      tool: text(tool),
      amount: exactMoneyText(text(cost), reader.language),
    }),
  'plans.plan': ([name = ''], reader) => `${words(reader, 'shell.word.plan')}: ${text(name)}`,
  'auth.tags': ([tags = ''], reader) => `${words(reader, 'client.keys.tags')}: ${text(tags)}`,
  'rate-limit.standing': standing,
  'billing.held': held,
  'billing.end': charged,
  'billing.impossible': ([usage = ''], reader) => say(reader, 'impossible', { usage: text(usage) }),
  'billing.instead': ([requested = '', served = ''], reader) =>
    say(reader, 'instead', { requested: text(requested), served: text(served), why: why(reader, 'budget') }),
  'billing.served': ([by = ''], reader) => say(reader, 'served', { by: text(by) }),
  'cache.hit': ([how = '', ageS = 0], reader) =>
    say(reader, how === 'similar' ? 'cachedSimilar' : 'cachedEqual', {
      time: ageInSeconds(Number(ageS), reader),
    }),
  'guardrails.checked': ([verdicts = ''], reader) => say(reader, 'guarded', { said: text(verdicts) }),
  'mcp.called': ([server = '', tool = '', end = '', ms = 0], reader) => {
    const key = { answered: 'toolAnswered', refused: 'toolFailed' }[text(end)] ?? 'toolSilent';
    return say(reader, key, { tool: `${text(server)}/${text(tool)}`, time: time(Number(ms), reader) });
  },
  'web-search.searched': ([end = '', , ms = 0], reader) => {
    const key = { answered: 'toolAnswered', refused: 'toolFailed' }[text(end)] ?? 'toolSilent';
    return say(reader, key, { tool: 'web-search', time: time(Number(ms), reader) });
  },
  'multiplier.ratio': ([ratio = ''], reader) =>
    say(reader, 'ratio', { ratio: localDecimals(text(ratio), reader.language) }),
  'protocol-convert.form': ([to = '', from = null, fields = null], reader) => {
    const names = { to: text(to), from: text(from) };
    return withoutFields(say(reader, from === null ? 'relayed' : 'translated', names), fields, reader);
  },
  'endpoints.form': ([to = '', converted, fields = null], reader) =>
    withoutFields(say(reader, converted === true ? 'converted' : 'relayed', { to: text(to) }), fields, reader),
  'websockets.sent': ([, sent = 0, whole = 0], reader) =>
    say(reader, 'socket', { bytes: bytes(sent, reader), whole: bytes(whole, reader) }),
  'route.targets': ([names = '', more = 0, reason = null], reader) => {
    const order = say(reader, 'targets', { names: text(names) }) + (Number(more) > 0 ? ` (+${more})` : '');
    return reason === null ? order : `${order}; ${why(reader, reasons[text(reason)])}`;
  },
  'route.again': ([number = 0], reader) => say(reader, 'again', { number: Number(number) }),
  'route.final': ([number = 0, reason = ''], reader) =>
    say(reader, 'final', { number: Number(number), why: why(reader, reason) }),
  'route.instead': ([requested = '', served = '', reason = ''], reader) =>
    say(reader, 'instead', { requested: text(requested), served: text(served), why: why(reader, reason) }),
  'route.open': ([target = '', forMs = 0], reader) =>
    say(reader, Number(forMs) > 0 ? 'open' : 'openTrial', { target: text(target), time: time(forMs, reader) }),
  'route.resting': ([target = '', forMs = 0], reader) =>
    say(reader, Number(forMs) > 0 ? 'resting' : 'restingAll', { target: text(target), time: time(forMs, reader) }),
  'route.wait': ([waitedMs = 0, entered], reader) =>
    say(reader, entered === true ? 'waited' : 'waitedInVain', { time: time(waitedMs, reader) }),
  'route.place': ([provider = ''], reader) => say(reader, 'place', { provider: text(provider) }),
  'route.goes': ([number = 0, provider = '', model = '', credential = ''], reader) => {
    const names = { provider: text(provider), model: text(model), credential: text(credential) };
    return `${said(reader, 'attempt', { number: Number(number), ...names })} ${said(reader, 'attemptModel', names)}`;
  },
  'route.attempt': ([number = 0, result = '', status = null, durationMs = null], reader) => {
    const ended = result === 'lost' ? why(reader, result) : said(reader, `attemptResult.${result}`);
    const attempt = say(reader, 'attempt', { number: Number(number), result: ended });
    if (durationMs === null) return attempt;
    return `${attempt} · ${said(reader, 'attemptTook', { status: text(status ?? '–'), time: time(durationMs, reader) })}`;
  },
  'route.hedge': ([second = 0, first = 0, afterMs = 0], reader) =>
    say(reader, 'hedge', { second: Number(second), first: Number(first), time: time(afterMs, reader) }),
  'route.no_hedge': ([first = 0, reason = ''], reader) =>
    say(reader, 'noHedge', { first: Number(first), why: why(reader, reason === 'share' ? 'hedges' : reason) }),
  'route.vendor': ([number = 0, message = null, id = null], reader) => {
    const failed = say(reader, 'vendor', { number: Number(number) });
    const quoted = message === null ? failed : `${failed}: “${text(message)}”`;
    return id === null ? quoted : `${quoted}; ${said(reader, 'upstreamId')}: ${text(id)}`;
  },
};

const why = (reader: Reader, code: Value | undefined): string => say(reader, `why.${code}`);

/** The dimension that refused, or null; then owner, dimension, rest and limit of each bucket. */
function standing([refusedBy = null, ...values]: readonly Value[], reader: Reader): string {
  const unit = (dimension: Value) => words(reader, `client.keys.${dimension}`);
  const parts: string[] = [];
  for (let index = 0; index + 4 <= values.length; index += 4) {
    const [owner, dimension, remaining, limit] = values.slice(index) as [Value, Value, Value, Value];
    const of = words(reader, owner === 'plan' ? 'shell.word.plan' : 'shell.word.key');
    parts.push(`${of}: ${unit(dimension)} ${count(remaining, reader)} / ${count(limit, reader)}`);
  }
  const names = { parts: parts.join('; ') };
  if (refusedBy === null) return say(reader, 'standing', names);
  return say(reader, 'standingRefused', { ...names, limit: unit(refusedBy) });
}

function held(
  [nano = '0', input = 0, output = 0, top = null, bottom = null]: readonly Value[],
  reader: Reader,
): string {
  const amount = say(reader, 'held', {
    amount: usd(nano, reader),
    input: count(input, reader),
    output: count(output, reader),
  });
  if (top === null || bottom === null) return amount;
  const ratio = formatRatio({ numerator: BigInt(text(top)), denominator: BigInt(text(bottom)) });
  return `${amount}, ${say(reader, 'ratio', { ratio: localDecimals(ratio, reader.language) })}`;
}

function charged([reason = null, spent = '0', estimated, final = null]: readonly Value[], reader: Reader): string {
  if (reason !== null) return say(reader, 'nothing', { why: said(reader, `attemptResult.${reason}`) });
  const amount = say(reader, 'charged', { amount: usd(spent, reader) });
  const known = estimated === true ? `${amount} (${said(reader, 'estimated')})` : amount;
  return final === null ? known : say(reader, 'heldInTheEnd', { text: known, amount: usd(final, reader) });
}
