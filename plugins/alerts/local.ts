/** Alerts while the database is away: each process evaluates what it sees by itself and sends at once; they are stored when it is back. */
import { hash } from 'node:crypto';
import type { Host } from '../../core/contract/contract.ts';
import type { AlertMessage, AlertValue, Measurement } from '../common/domain/admin/alerts.ts';
import type { Rule } from './config.ts';
import { type Deliveries, mostAttempts } from './deliveries.ts';
import { messageFor, plainFacts, shownValue } from './message.ts';
import type { AlertRows } from './rows.ts';
import { advance, type OpenAlert, type Step, verdictOf } from './state.ts';

const mostAlerts = 200;
const mostUnsent = 200;
/** Processes that see the same within such a time give their alerts the same id. */
const sameMs = 600_000;

interface Unsent {
  readonly sink: string;
  readonly message: AlertMessage;
  attempts: number;
}

export class LocalAlerts {
  readonly #host: Pick<Host, 'clock' | 'log' | 'gateway' | 'find'>;
  readonly #deliveries: Deliveries;
  /** By rule and subject; one that is over stays until it is stored. */
  readonly #alerts = new Map<string, OpenAlert & { readonly isOver: boolean }>();
  #unsent: Unsent[] = [];

  constructor(host: Pick<Host, 'clock' | 'log' | 'gateway' | 'find'>, deliveries: Deliveries) {
    this.#host = host;
    this.#deliveries = deliveries;
  }

  /** Whether there is something to store or to send. */
  get waits(): boolean {
    return this.#alerts.size > 0 || this.#unsent.length > 0;
  }

  /** `isKnown`: it was seen before the database went away, and its alert is stored. */
  async look(rules: readonly Rule[], isKnown: (kind: string, subject: string) => boolean): Promise<void> {
    for (const rule of rules) {
      const seen = (rule.kind.observe?.() ?? []) as readonly Measurement<AlertValue>[];
      const found = new Map(
        seen
          .filter(
            ({ subject, sample }) =>
              !isKnown(rule.kind.name, subject) && (sample === undefined || sample >= rule.least),
          )
          .map((one) => [one.subject, plainFacts(one)]),
      );
      const mine = [...this.#alerts.values()].filter((alert) => alert.rule === rule.name && !alert.isOver);
      for (const subject of new Set([...found.keys(), ...mine.map((alert) => alert.subject)]))
        this.#step(rule, subject, found.get(subject));
    }
    await this.send();
  }

  #step(rule: Rule, subject: string, found: Measurement<AlertValue> | undefined): void {
    const key = `${rule.name} ${subject}`;
    const earlier = this.#alerts.get(key);
    if (earlier === undefined && this.#alerts.size >= mostAlerts) return;
    const now = this.#host.clock.now();
    const step = advance(
      earlier?.isOver ? undefined : earlier?.state,
      verdictOf(rule.kind.bad, rule, found?.value),
      now,
      rule,
    );
    if (step.state === undefined && step.event === undefined) {
      if (earlier?.state.phase === 'pending') this.#alerts.delete(key);
      return;
    }
    const alert = this.#next(rule, subject, earlier, found, step, now);
    this.#alerts.set(key, { ...alert, isOver: step.state === undefined });
    const sent = step.event === 'end' && earlier !== undefined ? { ...alert, value: earlier.value } : alert;
    this.#queue(rule, sent, step, now, found?.value);
  }

  #next(
    { name, kind, threshold }: Rule,
    subject: string,
    earlier: OpenAlert | undefined,
    found: Measurement<AlertValue> | undefined,
    { state = earlier!.state, event }: Step,
    now: number,
  ): OpenAlert {
    const id = hash('sha256', `${this.#host.gateway} ${name} ${subject} ${Math.floor(now / sameMs)}`, 'hex').slice(
      0,
      24,
    );
    const begins = event === 'begin';
    return {
      ...{
        id: begins ? id : (earlier?.id ?? id),
        rule: name,
        kind: kind.name,
        title: kind.title,
        unit: kind.unit,
        subject,
      },
      ...{ threshold, state, version: 1, beganAt: begins ? now : earlier?.beganAt },
      value: found?.value ?? earlier!.value,
      fields: found === undefined ? earlier!.fields : (found.fields ?? {}),
    };
  }

  #queue(rule: Rule, alert: OpenAlert, { event }: Step, now: number, good: AlertValue | undefined): void {
    if (event === undefined) return;
    const message = messageFor(alert, event, this.#host, now, good);
    const { subject } = alert;
    this.#host.log.warn({ rule: rule.name, subject, event, value: shownValue(alert.value) }, 'alert');
    for (const sink of rule.sinks)
      if (this.#unsent.length < mostUnsent) this.#unsent.push({ sink, message, attempts: 0 });
  }

  /** Sends what waits; what a sink does not take is tried again at the next look. */
  async send(): Promise<void> {
    const sending = this.#unsent;
    this.#unsent = [];
    const left = await Promise.all(
      sending.map(async (one) => {
        const reason = await this.#deliveries.send(one.sink, one.message);
        if (reason === undefined) return [];
        one.attempts += 1;
        this.#host.log.warn({ sink: one.sink, attempt: one.attempts, reason }, 'a sink did not take an alert');
        return one.attempts < mostAttempts ? [one] : [];
      }),
    );
    this.#unsent.unshift(...left.flat());
  }

  /** The database is back: stores alerts that were sent without it. One that another process has stored is the same one. */
  async store(rows: AlertRows): Promise<void> {
    const now = this.#host.clock.now();
    for (const [key, alert] of this.#alerts) {
      if (alert.state.phase === 'running' && (await rows.begin(alert, undefined, alert.beganAt ?? now)) && alert.isOver)
        await rows.change(alert, true, undefined, now);
      this.#alerts.delete(key);
    }
  }
}
