/** The console's contract: kinds of alerts and sinks that plugins add, events that they report, and the service that shows what runs. */
import {
  type ConfigSchema,
  defineExtensionPoint,
  defineService,
  type Host,
  type Service,
} from '../../../../core/contract/contract.ts';
import type { Clock } from '../../../../core/contract/host-tools.ts';
import type { Page, PageRequest, Span } from './pages.ts';

// ---------------------------------------------------------------------------------------------------------------- kinds

/** The unit of a value. A share is from 0 to 1; `times`: so many times the usual. */
export type AlertUnit = 'share' | 'milliseconds' | 'usd' | 'count' | 'times';

/** A number; in the units `usd` and `times` whole billionths, so that money and its ratios stay exact. */
export type AlertValue = number | bigint;

/** Defaults of a rule of a kind; each can be changed in the gateway file. Times are milliseconds. */
export interface AlertDefaults<Value extends AlertValue = AlertValue> {
  readonly threshold: Value;
  /** The value is good again from here on; between it and the threshold nothing changes. */
  readonly clear: Value;
  /** How far measurements reach back; how long a reported event counts. */
  readonly windowMs: number;
  /** How long the value is bad before the alert begins. */
  readonly forMs: number;
  /** How long the value is good before the alert ends. */
  readonly quietMs: number;
  /** Measurements of a smaller sample are ignored. */
  readonly least: AlertValue;
}

export interface Measurement<Value extends AlertValue = number> {
  /** The measured subject: a model, a provider, an account. */
  readonly subject: string;
  readonly value: Value;
  /** The number of requests, or the money, that was measured; absent: enough. */
  readonly sample?: AlertValue;
  /** Further facts, by the names of the kind's `fields`; amounts as decimal USD. */
  readonly fields?: Readonly<Record<string, string | number>>;
}

/** A kind of alert. One rule of its name is on by default. */
export type AlertKind = KindOf<ExactUnit, bigint> | KindOf<Exclude<AlertUnit, ExactUnit>, number>;
type ExactUnit = 'usd' | 'times';

interface KindOf<Unit extends AlertUnit, Value extends AlertValue> {
  readonly name: string;
  /** For people: `Success rate of a model`. */
  readonly title: string;
  readonly unit: Unit;
  /** On which side of the threshold a value is bad. */
  readonly bad: 'above' | 'below';
  /** Units of further facts; `text` for names. */
  readonly fields?: Readonly<Record<string, AlertUnit | 'text'>>;
  readonly defaults: AlertDefaults<Value>;
  /** Reads the measurements of the span from the database; by one process of a fleet, and only while something happens. */
  measure?(span: Span): Promise<readonly Measurement<Value>[]>;
  /** Measurements of this process now. A kind with neither is reported by `AlertEvents`. */
  observe?(): readonly Measurement<Value>[];
}
/** Kinds of alert rules. Owned by `alerts`. */
export const alertKinds = defineExtensionPoint<AlertKind>("alerts' kinds");

/** Takes events of kinds that are neither measured nor observed, and counts them by subject. Costs nothing but a few members of memory. */
export interface AlertEvents {
  report(kind: string, subject: string, fields?: Measurement['fields']): void;
}
export const alertEvents = defineService<AlertEvents>('alert events');

// ---------------------------------------------------------------------------------------------------------------- sinks

/** A number, or decimal text in the units `usd` and `times`: `"-0.50"`. */
export type ShownValue = number | string;

/** The message that a sink sends. Names in it may come from clients: a sink escapes them for where they are shown. */
export interface AlertMessage {
  /** The alert's id; the same when it begins, is repeated and ends. */
  readonly id: string;
  readonly event: 'begin' | 'repeat' | 'end' | 'test';
  readonly gateway: string;
  readonly rule: string;
  readonly kind: string;
  readonly subject: string;
  /** At the end the one that is good again; null: nothing was measured any more. */
  readonly value: ShownValue | null;
  /** When the alert ends: the last value that was bad. */
  readonly was?: ShownValue;
  readonly threshold: ShownValue;
  readonly unit: AlertUnit;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly beganAt: number;
  readonly at: number;
  /** The console's page of alerts, where the gateway has a console. */
  readonly url?: string;
  /** One line, and a few: plain text. */
  readonly title: string;
  readonly text: string;
}

export interface AlertSink {
  /** Rejects when the message was not taken. The reason is shown to operators: it names no address and no secret. */
  send(message: AlertMessage, signal: AbortSignal): Promise<void>;
  close?(): Promise<void>;
}

export interface AlertSinkTools {
  readonly clock: Clock;
  readonly fetch: Host['fetch'];
  /** undefined: this gateway sends no mail. */
  readonly mailer: () => Mailer | undefined;
}

/** A type of sink; its name is what operators write as `type`. */
export interface AlertSinkType<Config = unknown> {
  readonly name: string;
  /** The service that it sends by: a plugin of the list must provide it. */
  readonly requires?: Service<unknown>;
  /** Schema of the sink's section, without `type`. */
  readonly config: ConfigSchema<Config>;
  open(config: Config, tools: AlertSinkTools): AlertSink;
}
/** Where messages of alerts go. Owned by `alerts`. */
export const alertSinks = defineExtensionPoint<AlertSinkType>("alerts' sinks");

/** Sends mails of the gateway. */
export interface Mailer {
  /** `unsubscribe`: the page where its people say that they want no more such mails. The operator's foot follows the text. */
  send(mail: {
    readonly to: string;
    readonly subject: string;
    readonly text: string;
    readonly unsubscribe?: string | undefined;
  }): Promise<void>;
}
/** Addresses of the console's pages, where operators reach them. */
export const consolePages = defineService<{ address(path: string): string }>('console pages');

/** `find` gives undefined where no mail server is set. */
export const mailers = defineService<{ find(): Mailer | undefined }>('mailers');

// ---------------------------------------------------------------------------------------------------------------- admin

export interface AlertView {
  readonly id: string;
  readonly rule: string;
  readonly kind: string;
  readonly title: string;
  readonly unit: AlertUnit;
  readonly subject: string;
  readonly threshold: ShownValue;
  /** The latest, or the last one that was bad. */
  readonly value: ShownValue;
  readonly fields: Readonly<Record<string, string | number>>;
  readonly beganAt: number;
  /** undefined: it runs. */
  readonly endedAt: number | undefined;
  readonly acknowledged: { readonly at: number; readonly by: string; readonly reason: string } | undefined;
}
export interface AlertFilter {
  readonly from?: number | undefined;
  readonly until?: number | undefined;
  readonly running?: boolean | undefined;
  readonly rule?: string | undefined;
  readonly subject?: string | undefined;
}
export interface AlertSinkView {
  readonly name: string;
  readonly type: string;
  /** When the last message was sent, and why it failed; undefined: there was none. */
  readonly last: { readonly at: number; readonly fault: string | undefined } | undefined;
  /** Messages that wait to be sent again. */
  readonly waiting: number;
}
/** A rule as it runs, or one that is off. */
export interface AlertRuleView {
  readonly name: string;
  readonly kind: string;
  readonly title: string;
  readonly unit: AlertUnit;
  readonly bad: 'above' | 'below';
  readonly threshold: ShownValue;
  readonly clear: ShownValue;
  readonly forMs: number;
  readonly windowMs: number;
  readonly sinks: readonly string[];
  readonly isOn: boolean;
  /** While it is muted its alerts are shown and not sent. */
  readonly muted: AlertMute | undefined;
}
export interface AlertMute {
  readonly until: number;
  readonly by: string;
  readonly reason: string;
}
/** What a rule finds now. */
export interface AlertTrial {
  readonly subject: string;
  readonly value: ShownValue;
  /** `between`: no alert begins, and a running one goes on. */
  readonly verdict: 'bad' | 'between' | 'good';
}
export interface AlertAdmin {
  /** Newest first; with `from` and `until` those that ran within. */
  list(filter: AlertFilter, page: PageRequest): Promise<Page<AlertView>>;
  /** It is not repeated any more. false: no alert of this id runs. */
  acknowledge(id: string, by: string, reason: string): Promise<boolean>;
  sinks(): Promise<readonly AlertSinkView[]>;
  /** Sends a test message; undefined: there is no such sink. */
  testSink(name: string): Promise<{ readonly fault: string | undefined } | undefined>;
  rules(): Promise<readonly AlertRuleView[]>;
  /** Evaluates a rule without beginning alerts; undefined: no rule of this name is on. */
  tryRule(name: string): Promise<readonly AlertTrial[] | undefined>;
  /** false: no rule of this name is on. */
  mute(rule: string, until: number, by: string, reason: string): Promise<boolean>;
  /** false: it was not muted. */
  unmute(rule: string): Promise<boolean>;
}
/** Share of requests below which a model or a provider fails, unless a rule says otherwise. */
export const usualLeastShare = 0.9;
export const alertAdmin = defineService<AlertAdmin>('alert admin');
