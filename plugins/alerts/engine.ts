/** Evaluates the rules while something happens: by one process of a fleet at a time, from what all of them have written. */
import type { Host } from '../../core/contract/contract.ts';
import type { AlertEvents, AlertValue, Measurement } from '../common/domain/admin/alerts.ts';
import type { Rule } from './config.ts';
import type { Deliveries } from './deliveries.ts';
import { LocalAlerts } from './local.ts';
import { messageFor, plainFacts } from './message.ts';
import type { AlertRows, NewMessages, Report } from './rows.ts';
import { advance, muted, type OpenAlert, type Step, verdictOf } from './state.ts';

/** Subjects of a rule at most, and reports of a process: names may come from clients. */
const mostSubjects = 200;
const mostReports = 200;
/**
 * Windows of minutes are read from the rows of all requests in them, which takes the longer the more there are: about a tenth of the time
 * at most goes into it, whatever `every` says.
 */
const restTimes = 10;
/** A database that was slow for minutes must not silence alerts for hours. */
const longestRestMs = 300_000;

export interface EngineOptions {
  readonly everyMs: () => number;
  readonly rules: () => readonly Rule[];
  /** Rows of requests that this process has written: whether anything happens. */
  readonly written: () => number;
  /** The database gives no answers. */
  readonly isAway: () => boolean;
}

export class Engine implements AlertEvents {
  readonly #host: Pick<Host, 'clock' | 'log' | 'random' | 'gateway' | 'find'>;
  readonly #rows: AlertRows;
  readonly #deliveries: Deliveries;
  readonly #options: EngineOptions;
  readonly #process: string;
  readonly #local: LocalAlerts;
  /** Counts of events that are not written yet, by kind and subject. */
  readonly #reported = new Map<string, Report & { readonly value: number }>();
  #observed = new Map<string, Report>();
  /** As they were read last; known while the database is away, too. */
  #mutes: ReadonlyMap<string, { readonly until: number }> = new Map();
  #written = 0;
  /** Alerts were open or messages waited when this process last looked. */
  #isBusy = true;
  /** How often rules are still evaluated after the last sign of traffic: rows are written a moment after their requests. */
  #looksLeft = 0;
  /** Monotonic milliseconds: until then, rules that read rows are not evaluated. */
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(
    host: Pick<Host, 'clock' | 'log' | 'random' | 'gateway' | 'find'>,
    rows: AlertRows,
    deliveries: Deliveries,
    options: EngineOptions,
  ) {
    this.#host = host;
    this.#rows = rows;
    this.#deliveries = deliveries;
    this.#options = options;
    this.#process = host.random.bytes(12).toString('hex');
    this.#local = new LocalAlerts(host, deliveries);
  }

  report(kind: string, subject: string, fields: Measurement['fields'] = {}): void {
    const plain = plainFacts({ subject, fields });
    const key = `${kind} ${plain.subject}`;
    const earlier = this.#reported.get(key);
    if (earlier === undefined && this.#reported.size >= mostReports) return;
    this.#reported.set(key, { kind, ...plain, value: (earlier?.value ?? 0) + 1 });
  }

  async look(): Promise<void> {
    if (this.#options.isAway()) {
      const isKnown = (kind: string, subject: string) => this.#observed.has(`${kind} ${subject}`);
      await this.#local.look(this.#rules(this.#host.clock.now()), isKnown);
      return;
    }
    if (this.#local.waits) await this.#adopt();
    const now = this.#host.clock.now();
    await this.#writeReports(now);
    if (this.#isQuiet()) return;
    if (!(await this.#rows.takeLease(this.#process, now, now + 2 * this.#options.everyMs() + 30_000))) {
      // The process with the lease evaluates these reports.
      return;
    }
    const open = await this.#rows.open();
    this.#mutes = await this.#rows.mutes(now);
    await this.#evaluateAll(open, now);
    await this.#dropUnruled(open, now);
    const waits = await this.#deliveries.advance();
    this.#isBusy = waits || (await this.#rows.open()).length > 0;
    if (this.#isQuiet()) await this.#rows.dropLease(this.#process);
  }

  /** Alerts that were sent without the database are stored, and from then on those of all processes. */
  async #adopt(): Promise<void> {
    await this.#local.store(this.#rows);
    await this.#local.send();
    this.#isBusy = true;
  }

  async #evaluateAll(open: readonly OpenAlert[], now: number): Promise<void> {
    const { clock } = this.#host;
    const begunAt = clock.monotonic();
    const rests = begunAt < this.#restsUntil;
    for (const rule of this.#rules(now))
      if (!rests || rule.kind.measure === undefined) await this.#evaluate(rule, open, now);
    if (rests) return;
    this.#looksLeft = Math.max(0, this.#looksLeft - 1);
    this.#restsUntil = begunAt + Math.min(restTimes * (clock.monotonic() - begunAt), longestRestMs);
  }

  /** Muted rules send to no sink. */
  #rules(now: number): readonly Rule[] {
    const isMuted = ({ name }: Rule) => (this.#mutes.get(name)?.until ?? 0) > now;
    return this.#options.rules().map((rule) => (isMuted(rule) ? { ...rule, sinks: [], isMuted: true } : rule));
  }

  #isQuiet(): boolean {
    const written = this.#options.written();
    if (written !== this.#written || this.#observed.size > 0 || this.#reported.size > 0) this.#looksLeft = 2;
    this.#written = written;
    return !this.#isBusy && this.#looksLeft === 0;
  }

  async #writeReports(now: number): Promise<void> {
    const seen = new Map<string, Report>();
    for (const { kind } of this.#options.rules())
      for (const one of (kind.observe?.() ?? []).slice(0, mostReports))
        seen.set(`${kind.name} ${one.subject}`, { ...plainFacts(one), kind: kind.name });
    const gone = [...this.#observed].filter(([key]) => !seen.has(key)).map(([, report]) => report);
    const counted = [...this.#reported.values()];
    this.#reported.clear();
    this.#observed = seen;
    if (seen.size + gone.length + counted.length > 0) {
      this.#looksLeft = 2;
      await this.#rows.report(this.#process, unique([...seen.values(), ...counted]), gone, now);
    }
  }

  async #evaluate(rule: Rule, open: readonly OpenAlert[], now: number): Promise<void> {
    const measured = await this.measure(rule, now).catch((error: unknown) => {
      this.#host.log.warn({ error, rule: rule.name }, 'a rule of the alerts could not be evaluated');
      return undefined;
    });
    // While a rule cannot be measured, its alerts neither begin nor end.
    if (measured === undefined) return;
    const found = new Map(measured.map((one) => [one.subject, one]));
    const mine = new Map(open.filter((one) => one.rule === rule.name).map((one) => [one.subject, one]));
    for (const subject of new Set([...mine.keys(), ...found.keys()]))
      await this.#step(rule, subject, mine.get(subject), found.get(subject), now);
  }

  /** What the rule finds now. */
  async measure(rule: Rule, now: number): Promise<readonly Measurement<AlertValue>[]> {
    const { kind, windowMs, least } = rule;
    const reportsSince = now - (kind.observe === undefined ? windowMs : 3 * this.#options.everyMs());
    const all =
      kind.measure === undefined
        ? await this.#rows.reports(kind, reportsSince, mostSubjects)
        : await kind.measure({ from: now - windowMs, until: now + 1 });
    return all
      .filter(({ sample }) => sample === undefined || sample >= least)
      .slice(0, mostSubjects)
      .map(plainFacts);
  }

  async #step(
    rule: Rule,
    subject: string,
    alert: OpenAlert | undefined,
    found: Measurement<AlertValue> | undefined,
    now: number,
  ) {
    const verdict = verdictOf(rule.kind.bad, rule, found?.value);
    const advanced = advance(alert?.state, verdict, now, rule);
    const step = rule.isMuted === true ? muted(alert?.state, advanced) : advanced;
    if (alert === undefined) {
      if (step.state === undefined) return;
      const next = this.#opened(rule, subject, found!, step.state, now);
      await this.#rows.begin(next, this.#messages(rule, next, step, now), now);
      return;
    }
    if (step.state === undefined && step.event === undefined) return void (await this.#rows.drop(alert));
    const shown = verdict === 'good' || found === undefined ? {} : { value: found.value, fields: found.fields ?? {} };
    const state = step.state ?? alert.state;
    const beganAt = alert.beganAt ?? (state.phase === 'running' ? now : undefined);
    const next: OpenAlert = { ...alert, ...shown, threshold: rule.threshold, state, beganAt };
    if (step.event === undefined && !isChanged(alert, next)) return;
    await this.#rows.change(next, step.state === undefined, this.#messages(rule, next, step, now, found?.value), now);
  }

  #opened(
    rule: Rule,
    subject: string,
    found: Measurement<AlertValue>,
    state: OpenAlert['state'],
    now: number,
  ): OpenAlert {
    const { name, kind, threshold } = rule;
    return {
      id: this.#host.random.bytes(12).toString('hex'),
      rule: name,
      kind: kind.name,
      title: kind.title,
      unit: kind.unit,
      subject,
      value: found.value,
      threshold,
      fields: found.fields ?? {},
      beganAt: state.phase === 'running' ? now : undefined,
      state,
      version: 1,
    };
  }

  #messages(rule: Rule, alert: OpenAlert, { event }: Step, now: number, good?: AlertValue): NewMessages | undefined {
    if (event === undefined) return undefined;
    const message = messageFor(alert, event, this.#host, now, good);
    const { subject, value, threshold } = message;
    if (rule.isMuted === true) return undefined;
    this.#host.log.warn({ rule: rule.name, subject, event, value, threshold }, 'alert');
    return { sinks: rule.sinks, message: JSON.stringify(message) };
  }

  /** Alerts of rules that are off now end without a message. */
  async #dropUnruled(open: readonly OpenAlert[], now: number): Promise<void> {
    const names = new Set(this.#options.rules().map(({ name }) => name));
    for (const alert of open.filter(({ rule }) => !names.has(rule))) {
      if (alert.state.phase === 'pending') await this.#rows.drop(alert);
      else await this.#rows.change(alert, true, undefined, now);
    }
  }
}

/** Keeps the last report of each subject: names that differ only in control characters become the same. */
const unique = (reports: readonly Report[]) => [
  ...new Map(reports.map((report) => [`${report.kind} ${report.subject}`, report])).values(),
];

function isChanged(before: OpenAlert, after: OpenAlert): boolean {
  const { state: was } = before;
  const { state: is } = after;
  return was.phase !== is.phase || was.calmSince !== is.calmSince || before.value !== after.value;
}
