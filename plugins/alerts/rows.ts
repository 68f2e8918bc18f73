/** The rows of alerts: opened, changed with their messages, listed, acknowledged, forgotten. */
import { type SQL, sql } from 'drizzle-orm';
import type {
  AlertFilter,
  AlertKind,
  AlertMute,
  AlertSinkView,
  AlertValue,
  AlertView,
  Measurement,
} from '../common/domain/admin/alerts.ts';
import type { Page, PageRequest } from '../common/domain/admin/pages.ts';
import type { Database, Orm } from '../common/domain/database.ts';
import { instant, type Runner, rowsOf, tableOf } from '../common/kit/sql.ts';
import type { OpenAlert } from './state.ts';
import { afterSql, cursorAt, readView, type StoredAlert, stateOf, storedValue } from './stored.ts';

/** A message for one sink, as it is kept until it is sent. */
export interface DueMessage {
  readonly alertId: string;
  readonly version: number;
  readonly sink: string;
  /** JSON of an AlertMessage. */
  readonly message: string;
  readonly attempts: number;
}
export interface Report extends Measurement<AlertValue> {
  readonly kind: string;
}
export interface NewMessages {
  readonly sinks: readonly string[];
  /** JSON of an AlertMessage. */
  readonly message: string;
}

const at = (ms: number | undefined): SQL => (ms === undefined ? sql`null::timestamptz` : instant(ms));

export class AlertRows {
  readonly #orm: Orm;
  readonly #database: Pick<Database, 'orm' | 'schema'>;

  constructor(database: Pick<Database, 'orm' | 'schema'>) {
    this.#orm = database.orm;
    this.#database = database;
  }

  #table(name: 'alerts' | `alert_${'reports' | 'messages' | 'lease' | 'mutes' | 'tests'}`): SQL {
    return tableOf(this.#database, name);
  }

  #rows<Row>(query: SQL, runner: Runner = this.#orm): Promise<Row[]> {
    return rowsOf(runner, query);
  }

  /** true: this process evaluates the rules until then. */
  async takeLease(holder: string, now: number, untilMs: number): Promise<boolean> {
    const taken = await this.#rows(sql`insert into ${this.#table('alert_lease')} as lease (holder, held_until)
      values (${holder}, ${at(untilMs)}) on conflict (one) do update set holder = excluded.holder, held_until = excluded.held_until
      where lease.holder = excluded.holder or lease.held_until <= ${at(now)} returning holder`);
    return taken.length > 0;
  }

  /** Another process can take the lease at once. */
  async dropLease(holder: string): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#table('alert_lease')} where holder = ${holder}`);
  }

  /** Writes reports of a process; removes those of what it does not observe any more. */
  async report(process: string, seen: readonly Report[], gone: readonly Report[], now: number): Promise<void> {
    if (seen.length > 0)
      await this.#orm.execute(sql`insert into ${this.#table('alert_reports')} (kind, subject, process, value, fields, at)
        values ${sql.join(
          seen.map(
            ({ kind, subject, value, fields = {} }) =>
              sql`(${kind}, ${subject}, ${process}, ${String(value)}::numeric, ${JSON.stringify(fields)}::json, ${at(now)})`,
          ),
          sql`, `,
        )}
        on conflict (kind, subject, process) do update set value = excluded.value, fields = excluded.fields, at = excluded.at`);
    for (const { kind, subject } of gone)
      await this.#orm.execute(sql`delete from ${this.#table('alert_reports')}
        where kind = ${kind} and subject = ${subject} and process = ${process}`);
  }

  /** Reports of all processes since then; for each subject the one with the highest value. */
  async reports({ name, unit }: AlertKind, since: number, limit: number): Promise<Measurement<AlertValue>[]> {
    const rows = await this.#rows<{ subject: string; value: string; fields: string }>(sql`select distinct on (subject)
      subject, value, fields::text as fields from ${this.#table('alert_reports')}
      where kind = ${name} and at > ${at(since)} order by subject, value desc limit ${limit}`);
    return rows.map(({ subject, value, fields }) => ({
      subject,
      value: storedValue(value, unit),
      fields: JSON.parse(fields),
    }));
  }

  async open(): Promise<OpenAlert[]> {
    const rows = await this.#rows<StoredAlert>(sql`select *, fields::text as fields
      from ${this.#table('alerts')} where phase <> 'ended'`);
    return rows.map(stateOf);
  }

  /** false: another process has begun it, or it is stored already. */
  async begin(alert: OpenAlert, messages: NewMessages | undefined, now: number): Promise<boolean> {
    const { state } = alert;
    return this.#orm.transaction(async (transaction) => {
      const made = await this.#rows(
        sql`insert into ${this.#table('alerts')}
          (id, rule, kind, title, unit, subject, phase, value, threshold, fields, since, began_at, sent_at)
          values (${alert.id}, ${alert.rule}, ${alert.kind}, ${alert.title}, ${alert.unit}, ${alert.subject}, ${state.phase},
            ${String(alert.value)}::numeric, ${String(alert.threshold)}::numeric, ${JSON.stringify(alert.fields)}::json,
            ${at(state.since)}, ${at(state.phase === 'running' ? now : undefined)}, ${at(state.sentAt)})
          on conflict do nothing returning id`,
        transaction,
      );
      if (made.length > 0) await this.#addMessages(transaction, alert.id, 1, messages, now);
      return made.length > 0;
    });
  }

  /** false: another process has changed it since it was read. */
  async change(alert: OpenAlert, isOver: boolean, messages: NewMessages | undefined, now: number): Promise<boolean> {
    const { state, version } = alert;
    return this.#orm.transaction(async (transaction) => {
      const changed = await this.#rows(
        sql`update ${this.#table('alerts')} set phase = ${isOver ? 'ended' : state.phase},
          value = ${String(alert.value)}::numeric, fields = ${JSON.stringify(alert.fields)}::json,
          threshold = ${String(alert.threshold)}::numeric, since = ${at(state.since)},
          began_at = ${state.phase === 'running' ? sql`coalesce(began_at, ${at(now)})` : sql`began_at`},
          sent_at = ${at(state.sentAt)}, calm_since = ${at(state.calmSince)}, ended_at = ${at(isOver ? now : undefined)},
          version = version + 1
          where id = ${alert.id} and version = ${version} returning id`,
        transaction,
      );
      if (changed.length > 0) await this.#addMessages(transaction, alert.id, version + 1, messages, now);
      return changed.length > 0;
    });
  }

  /** Deletes an alert that is still pending. */
  async drop({ id, version }: OpenAlert): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#table('alerts')}
      where id = ${id} and version = ${version} and phase = 'pending'`);
  }

  async #addMessages(runner: Runner, id: string, version: number, messages: NewMessages | undefined, now: number) {
    if (messages === undefined) return;
    for (const sink of messages.sinks)
      await runner.execute(sql`insert into ${this.#table('alert_messages')}
        (alert_id, version, sink, message, made_at, due_at)
        values (${id}, ${version}, ${sink}, ${messages.message}::json, ${at(now)}, ${at(now)})`);
  }

  /** Takes messages that are due; each is due again at `nextAt` unless it is settled before. */
  async takeDue(now: number, nextAt: number, mostAttempts: number, limit: number): Promise<DueMessage[]> {
    const rows = await this.#rows<{
      alert_id: string;
      version: number;
      sink: string;
      message: string;
      attempts: number;
    }>(
      sql`update ${this.#table('alert_messages')} as mine set attempts = mine.attempts + 1, due_at = ${at(nextAt)}
        from (select alert_id, version, sink from ${this.#table('alert_messages')}
          where sent_at is null and due_at <= ${at(now)} and attempts < ${mostAttempts}
          order by made_at limit ${limit} for update skip locked) as due
        where mine.alert_id = due.alert_id and mine.version = due.version and mine.sink = due.sink
        returning mine.alert_id, mine.version, mine.sink, mine.message::text as message, mine.attempts`,
    );
    return rows.map(({ alert_id: alertId, ...row }) => ({ ...row, alertId }));
  }

  /** `fault` undefined: it was sent. */
  async settle(due: DueMessage, fault: string | undefined, now: number, dueAt: number): Promise<void> {
    await this.#orm.execute(sql`update ${this.#table('alert_messages')}
      set sent_at = ${at(fault === undefined ? now : undefined)}, fault = ${fault ?? null}, due_at = ${at(dueAt)}
      where alert_id = ${due.alertId} and version = ${due.version} and sink = ${due.sink}`);
  }

  async waiting(mostAttempts: number): Promise<number> {
    const [row] = await this.#rows<{ count: string }>(sql`select count(*) from ${this.#table('alert_messages')}
      where sent_at is null and attempts < ${mostAttempts}`);
    return Number(row!.count);
  }

  async acknowledge(id: string, by: string, reason: string, now: number): Promise<boolean> {
    const rows =
      await this.#rows(sql`update ${this.#table('alerts')} set acknowledged_at = ${at(now)}, acknowledged_by = ${by},
      acknowledged_reason = ${reason}, version = version + 1 where id = ${id} and phase = 'running' returning id`);
    return rows.length > 0;
  }

  async list(filter: AlertFilter, { limit, after }: PageRequest): Promise<Page<AlertView>> {
    const { running, rule, subject, from, until } = filter;
    const conditions = [
      sql`phase <> 'pending'`,
      running === undefined ? undefined : running ? sql`phase = 'running'` : sql`phase = 'ended'`,
      rule === undefined ? undefined : sql`rule = ${rule}`,
      subject === undefined ? undefined : sql`position(lower(${subject}) in lower(subject)) > 0`,
      until === undefined ? undefined : sql`began_at < ${at(until)}`,
      from === undefined ? undefined : sql`coalesce(ended_at, 'infinity') >= ${at(from)}`,
      afterSql(after),
    ].filter((condition) => condition !== undefined);
    const rows = await this.#rows<StoredAlert>(sql`select *, fields::text as fields from ${this.#table('alerts')}
      where ${sql.join(conditions, sql` and `)} order by began_at desc, id desc limit ${limit + 1}`);
    const shown = rows.slice(0, limit).map(readView);
    return { rows: shown, next: rows.length > limit ? cursorAt(shown.at(-1)!) : undefined };
  }

  /** The last message of each sink that was sent or refused, tests too, and how many wait. */
  async lastOfSinks(mostAttempts: number): Promise<ReadonlyMap<string, Omit<AlertSinkView, 'name' | 'type'>>> {
    const messages = this.#table('alert_messages');
    const rows = await this.#rows<{ sink: string; at: Date | string; fault: string | null; waiting: string }>(sql`
      select distinct on (sink) sink, at, fault, (select count(*) from ${messages} as other where other.sink = mine.sink
          and other.sent_at is null and other.attempts < ${mostAttempts}) as waiting
      from (select sink, coalesce(sent_at, made_at) as at, fault from ${messages} where sent_at is not null or fault is not null
        union all select sink, at, fault from ${this.#table('alert_tests')}) as mine order by sink, at desc`);
    return new Map(
      rows.map(({ sink, at, fault, waiting }) => [
        sink,
        { last: { at: new Date(at).getTime(), fault: fault ?? undefined }, waiting: Number(waiting) },
      ]),
    );
  }

  async recordTest(sink: string, fault: string | undefined, now: number): Promise<void> {
    await this.#orm.execute(sql`insert into ${this.#table('alert_tests')} (sink, at, fault)
      values (${sink}, ${at(now)}, ${fault ?? null})
      on conflict (sink) do update set at = excluded.at, fault = excluded.fault`);
  }

  /** By the name of the rule. */
  async mutes(now: number): Promise<ReadonlyMap<string, AlertMute>> {
    const rows = await this.#rows<{ rule: string; until: Date | string; by: string; reason: string }>(
      sql`select rule, until, by, reason from ${this.#table('alert_mutes')} where until > ${at(now)}`,
    );
    return new Map(rows.map(({ rule, until, by, reason }) => [rule, { until: new Date(until).getTime(), by, reason }]));
  }

  async mute(rule: string, untilMs: number, by: string, reason: string): Promise<void> {
    await this.#orm.execute(sql`insert into ${this.#table('alert_mutes')} (rule, until, by, reason)
      values (${rule}, ${at(untilMs)}, ${by}, ${reason})
      on conflict (rule) do update set until = excluded.until, by = excluded.by, reason = excluded.reason`);
  }

  async unmute(rule: string): Promise<boolean> {
    const rows = await this.#rows(sql`delete from ${this.#table('alert_mutes')} where rule = ${rule} returning rule`);
    return rows.length > 0;
  }

  async removeOld(endedBefore: number, reportedBefore: number): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#table('alerts')} where ended_at < ${at(endedBefore)}`);
    await this.#orm.execute(sql`delete from ${this.#table('alert_reports')} where at < ${at(reportedBefore)}`);
    await this.#orm.execute(sql`delete from ${this.#table('alert_mutes')} where until < ${at(reportedBefore)}`);
    await this.#orm.execute(sql`delete from ${this.#table('alert_tests')} where at < ${at(endedBefore)}`);
  }
}
