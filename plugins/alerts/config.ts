/** The section of a gateway file: rules, which begin with the defaults of their kinds, and sinks. */
import { isIP } from 'node:net';
import type { ExtensionPoint, Service } from '../../core/contract/contract.ts';
import type { Fault, Notice, SectionPart } from '../../core/contract/remarks.ts';
import { duration, z } from '../../core/contract/schema.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import { isPublicAddress } from '../../core/tools/public-address.ts';
import {
  type AlertKind,
  type AlertSinkType,
  type AlertValue,
  alertKinds,
  alertSinks,
} from '../common/domain/admin/alerts.ts';
import { parseUsd } from '../common/domain/money.ts';
import { shownValue } from './message.ts';
import type { Limits } from './state.ts';

const between = (least: number, most: number, words: string) =>
  duration().refine((value) => value >= least && value <= most, `must be from ${words}`);
const hour = 3_600_000;
const name = z.string().regex(/^[a-z][a-z0-9_-]{0,60}$/, 'must be a short name of small letters');

const rule = z.strictObject({
  kind: z
    .string()
    .optional()
    .describe(
      'Kind of the alert. Set it for a second rule of a kind, under another name. Default: the rule’s own name.',
    ),
  threshold: z
    .number()
    .optional()
    .describe(
      'The value is bad beyond it: a share from 0 to 1, milliseconds, USD or a count. Change it to what is unusual in your traffic. Default: that of the kind.',
    ),
  clear: z
    .number()
    .optional()
    .describe(
      'The value is good again from here on. Set it apart from the threshold when an alert begins and ends again and again. Default: that of the kind, or the threshold.',
    ),
  window: between(60_000, 7 * 24 * hour, '1m to 7d')
    .optional()
    .describe('How far measurements reach back. Raise it where there are few calls. Default: that of the kind.'),
  for: between(0, 24 * hour, '0s to 24h')
    .optional()
    .describe(
      'How long the value is bad before the alert begins. Raise it when short peaks raise alerts. Default: that of the kind.',
    ),
  quiet: between(0, 24 * hour, '0s to 24h')
    .optional()
    .describe(
      'How long the value is good before the alert ends. Raise it when an alert ends too early. Default: that of the kind.',
    ),
  repeat: between(60_000, 30 * 24 * hour, '1m to 30d')
    .optional()
    .describe(
      'How often this alert is sent again while it runs. Set it for a rule that needs more or fewer reminders than others. Default: `alerts.repeat`.',
    ),
  least: z
    .number()
    .min(0)
    .optional()
    .describe(
      'Smaller samples are ignored: requests, of `spend_spike` USD. Raise it when a few calls raise alerts. Default: that of the kind.',
    ),
  sinks: z
    .array(name)
    .optional()
    .describe('Sinks to which this alert is sent. Set it when an alert concerns some people only. Default: all sinks.'),
});

export const configSchema = z.strictObject({
  every: between(1_000, 600_000, '1s to 10m')
    .prefault('30s')
    .describe(
      'How often rules are evaluated while something happens. Lower it to hear of faults sooner, at the price of more queries.',
    ),
  repeat: between(60_000, 30 * 24 * hour, '1m to 30d')
    .prefault('4h')
    .describe('How often a running alert is sent again, until it is acknowledged. Raise it when reminders disturb.'),
  retention: between(hour, 3650 * 24 * hour, '1h to 3650d')
    .prefault('90d')
    .describe('How long ended alerts are kept. Raise it when you review incidents of a longer time.'),
  rules: z
    .record(name, z.union([z.literal('off'), rule]))
    .default({})
    .describe(
      'Changes of rules, further ones, or `off`; each kind has a rule of its name that is on by default. Set it when an alert comes too early, too late or to the wrong people.',
    ),
  sinks: z
    .record(
      name,
      z.looseObject({
        type: z
          .string()
          .describe(
            'How messages are sent: mail, webhook, slack, discord, feishu, dingtalk, or a type of a plugin. Choose the one that your team reads.',
          ),
      }),
    )
    .default({})
    .describe(
      'Where alerts are sent; without any they are shown in the console alone. Add one as soon as somebody should be called.',
    ),
});
export type AlertsConfig = z.output<typeof configSchema>;
type WrittenRule = z.output<typeof rule>;

export interface Rule extends Limits {
  readonly name: string;
  readonly kind: AlertKind;
  readonly windowMs: number;
  readonly forMs: number;
  readonly quietMs: number;
  readonly repeatMs: number;
  readonly least: AlertValue;
  /** Names of sinks. */
  readonly sinks: readonly string[];
  /** Its alerts are not sent for now. */
  readonly isMuted?: boolean;
}

/** The rules that are on: those of the kinds, as the section changes them, and its own. */
export function rulesOf({ rules, sinks, repeat }: AlertsConfig, kinds: readonly AlertKind[]): readonly Rule[] {
  const written = new Map(Object.entries(rules));
  const names = new Set([...kinds.map((kind) => kind.name), ...written.keys()]);
  return [...names].flatMap((name): Rule[] => {
    const own = written.get(name) ?? {};
    if (own === 'off') return [];
    const kind = kinds.find((one) => one.name === (own.kind ?? name));
    if (kind === undefined) return [];
    const { defaults } = kind;
    return [
      {
        name,
        kind,
        ...limitsOf(own, kind),
        windowMs: own.window ?? defaults.windowMs,
        forMs: own.for ?? defaults.forMs,
        quietMs: own.quiet ?? defaults.quietMs,
        repeatMs: own.repeat ?? repeat,
        least: valueLike(defaults.least, own.least),
        sinks: own.sinks ?? Object.keys(sinks),
      },
    ];
  });
}

function limitsOf(own: WrittenRule, { defaults }: AlertKind): Limits {
  const threshold = valueLike(defaults.threshold, own.threshold);
  const clear = own.threshold === undefined ? defaults.clear : threshold;
  return { threshold, clear: valueLike(clear, own.clear) };
}

/** The written value, in billionths where the default is. Throws a RangeError for more than nine decimals. */
function valueLike(preset: AlertValue, written: number | undefined): AlertValue {
  if (written === undefined) return preset;
  return typeof preset === 'bigint' ? parseUsd(String(written)) : written;
}

/** Faults that show only when every plugin has added its kinds and sinks. */
export function problemsOf(
  { rules, sinks }: AlertsConfig,
  kinds: readonly AlertKind[],
  types: readonly AlertSinkType[],
  isProvided: (service: Service<unknown>) => boolean,
): (Fault | SectionPart)[] {
  const ofSinks = Object.entries(sinks).flatMap(([sink, { type, ...section }]): (Fault | SectionPart)[] => {
    const found = types.find((one) => one.name === type);
    if (found === undefined) return [unknown(['sinks', sink, 'type'], 'type of sink', type, types, alertSinks)];
    const part = { path: ['sinks', sink], schema: found.config as unknown as z.ZodType, value: section };
    return found.requires === undefined || isProvided(found.requires)
      ? [part]
      : [part, lacking(['sinks', sink, 'type'], type, found.requires)];
  });
  const ofRules = Object.entries(rules).flatMap(([name, own]): Fault[] => {
    const place = ['rules', name];
    if (own === 'off') return kinds.some((kind) => kind.name === name) ? [] : [noKind(name, place, kinds)];
    const kind = kinds.find((one) => one.name === (own.kind ?? name));
    if (kind === undefined)
      return [noKind(own.kind ?? name, own.kind === undefined ? place : [...place, 'kind'], kinds)];
    const missing = (own.sinks ?? []).filter((sink) => !Object.hasOwn(sinks, sink));
    const sentences = missing.map((sink) => `names the sink "${sink}", which is not set`);
    return [...sentences.map((message) => ({ path: [...place, 'sinks'], message })), ...valueFaults(own, kind, place)];
  });
  return [...ofSinks, ...ofRules];
}

/** Sinks that the rules for addresses refuse, judged by the address alone. */
export function unreachableSinks({ sinks }: AlertsConfig): Notice[] {
  return Object.entries(sinks).flatMap(([name, { url, webhook, allow_private: isAllowed }]) => {
    const [member, address] = url === undefined ? ['webhook', webhook] : ['url', url];
    const isInside = typeof address === 'string' && isAllowed !== true && isInsideHost(address);
    const text = `alerts.sinks.${name}.${member}: the host is not a public address, so no alert reaches it; if it is yours, set allow_private: true`;
    return isInside ? [{ level: 'warning', text, path: ['sinks', name, member as string] }] : [];
  });
}

/** A literal address that is not public, or a name that only a local network knows. */
function isInsideHost(address: string): boolean {
  const host = URL.parse(address)
    ?.hostname.replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  if (host === undefined) return false;
  if (isIP(host) !== 0) return !isPublicAddress(host);
  return !host.includes('.') || /\.(local|localhost|internal|lan|home\.arpa|test|invalid)$/.test(host);
}

function valueFaults(own: WrittenRule, kind: AlertKind, place: string[]): Fault[] {
  const amounts = (['threshold', 'clear', 'least'] as const).flatMap((name): Fault[] => {
    try {
      valueLike(kind.defaults[name], own[name]);
      return [];
    } catch (error) {
      const isUsd = name === 'least' || kind.unit === 'usd';
      const message = isUsd ? (error as Error).message : 'must have at most nine decimals';
      return [{ path: [...place, name], message }];
    }
  });
  if (amounts.length > 0) return amounts;
  const { threshold, clear } = limitsOf(own, kind);
  // Beyond the threshold a value would be bad and good at once.
  const isBeyond = kind.bad === 'above' ? clear > threshold : clear < threshold;
  const message = `must not be ${kind.bad} the threshold, ${shownValue(threshold)}`;
  return isBeyond ? [{ path: [...place, 'clear'], message }] : [];
}

const noKind = (name: string, path: string[], kinds: readonly AlertKind[]) =>
  unknown(path, 'kind of alert', name, kinds, alertKinds);

function lacking(path: string[], type: string, service: Service<unknown>): Fault {
  const message = `"${type}" needs the service "${service.name}", which no plugin of the list provides`;
  return { path, message, lacks: { service } };
}

function unknown(
  path: string[],
  what: string,
  name: string,
  known: readonly { readonly name: string }[],
  point: ExtensionPoint,
): Fault {
  const names = known.map((one) => one.name);
  const hint = didYouMean(name, names) || `; known are ${names.join(', ')}`;
  return { path, message: `there is no ${what} "${name}"${hint}`, lacks: { point, name } };
}
