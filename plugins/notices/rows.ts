/** The rows of notices: choices, on which side each subject was last, and messages with their deliveries. */
import { type SQL, sql } from 'drizzle-orm';
import type { NoticeChannel, NoticeChoice, NoticeLanguage } from '../common/domain/admin/notices.ts';
import type { Database } from '../common/domain/database.ts';
import { parseUsd } from '../common/domain/money.ts';
import { instant, jsonOf, millisecondsOf, type Runner, rowsOf, tableOf } from '../common/kit/sql.ts';
import type { SeenState } from './crossing.ts';

export interface StoredSettings {
  readonly url: string | undefined;
  /** The first is shown, all sign. */
  readonly secrets: readonly string[];
  readonly language: NoticeLanguage;
}
export interface StateChange extends SeenState {
  readonly kind: string;
  readonly subject: string;
}
/** What is sent; `data` has one object for each crossing. */
export interface NoticeMessage {
  readonly title: string;
  readonly text: string;
  readonly data: readonly Readonly<Record<string, string>>[];
}
export interface NewMessage {
  readonly kind: string;
  readonly channels: readonly NoticeChannel[];
  readonly message: NoticeMessage;
}
interface StoredMessage {
  readonly kind: string;
  readonly channel: NoticeChannel;
  readonly message: NoticeMessage;
  readonly at: number;
  readonly sentAt: number | undefined;
  readonly fault: string | undefined;
  readonly waits: boolean;
}

type Name = 'settings' | 'choices' | 'states' | 'messages' | 'look' | 'prices' | 'ratios' | 'announcements';

/** Separates kind and subject in a key. */
export const stateKey = (kind: string, subject: string) => `${kind} ${subject}`;

const idsOf = (ids: readonly string[]): SQL =>
  sql`(${sql.join(
    ids.map((id) => sql`${id}::text`),
    sql`, `,
  )})`;

export class NoticeRows {
  readonly #database: Pick<Database, 'orm' | 'schema'>;

  constructor(database: Pick<Database, 'orm' | 'schema'>) {
    this.#database = database;
  }

  table(name: Name): SQL {
    return tableOf(this.#database, `notice_${name}`);
  }

  query<Row>(query: SQL, runner: Runner = this.#database.orm): Promise<Row[]> {
    return rowsOf<Row>(runner, query);
  }

  async settings(accountId: string): Promise<StoredSettings | undefined> {
    const [row] = await this.query<{
      url: string | null;
      secret: string | null;
      previous: string | null;
      language: NoticeLanguage;
    }>(sql`select url, secret, previous_secret as previous, language
      from ${this.table('settings')} where account_id = ${accountId}`);
    if (row === undefined) return undefined;
    const secrets = [row.secret, row.previous].filter((secret) => secret !== null);
    return { url: row.url ?? undefined, secrets, language: row.language };
  }

  /** By account; those that have chosen nothing are absent. */
  async choices(accountIds: readonly string[]): Promise<ReadonlyMap<string, readonly NoticeChoice[]>> {
    if (accountIds.length === 0) return new Map();
    const rows = await this.query<{ account: string; kind: string; channels: string; threshold: string | null }>(
      sql`select account_id as account, kind, array_to_string(channels, ' ') as channels, threshold::text as threshold
        from ${this.table('choices')} where account_id in ${idsOf(accountIds)}`,
    );
    const choices = rows.map(({ account, kind, channels, threshold }) => ({
      account,
      kind,
      channels: channels.split(' ').filter((channel) => channel !== '') as NoticeChannel[],
      threshold: threshold ?? undefined,
    }));
    return Map.groupBy(choices, ({ account }) => account);
  }

  /** In billionths: the highest that an account has chosen for a kind; that of the gateway does not count. */
  async mostThreshold(kind: string): Promise<bigint> {
    const [row] = await this.query<{ most: string }>(sql`select coalesce(max(threshold), 0)::text as most
      from ${this.table('choices')} where kind = ${kind} and channels <> '{}'`);
    return parseUsd(row!.most);
  }

  /** Whether any account has chosen a channel for a kind, and the lowest threshold that these have chosen. */
  async leastThreshold(kind: string): Promise<{ readonly isChosen: boolean; readonly least: bigint | undefined }> {
    const [row] = await this.query<{ chosen: boolean; least: string | null }>(sql`select count(*) > 0 as chosen,
      min(threshold)::text as least from ${this.table('choices')} where kind = ${kind} and channels <> '{}'`);
    return { isChosen: row!.chosen, least: row!.least === null ? undefined : parseUsd(row!.least) };
  }

  async change(
    accountId: string,
    { language, webhook }: { language: NoticeLanguage; webhook: Omit<StoredSettings, 'language'> },
    choices: readonly NoticeChoice[],
    /** Kinds whose threshold has changed: what was seen by the one before says nothing any more. */
    forgotten: readonly string[],
  ): Promise<void> {
    const [secret = null, previous = null] = webhook.secrets;
    await this.#database.orm.transaction(async (tx) => {
      await tx.execute(sql`insert into ${this.table('settings')} (account_id, url, secret, previous_secret, language)
        values (${accountId}, ${webhook.url ?? null}, ${secret}, ${previous}, ${language})
        on conflict (account_id) do update set url = excluded.url, secret = excluded.secret,
          previous_secret = excluded.previous_secret, language = excluded.language`);
      for (const { kind, channels, threshold } of choices)
        await tx.execute(sql`insert into ${this.table('choices')} (account_id, kind, channels, threshold)
          values (${accountId}, ${kind}, string_to_array(${channels.join(' ')}, ' '), ${threshold ?? null}::text::numeric)
          on conflict (account_id, kind) do update set channels = excluded.channels, threshold = excluded.threshold`);
      if (forgotten.length > 0)
        await tx.execute(sql`delete from ${this.table('states')}
          where account_id = ${accountId} and kind in ${idsOf(forgotten)}`);
    });
  }

  /** By account, then by `stateKey`. */
  async states(
    accountIds: readonly string[],
    kinds: readonly string[],
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, SeenState>>> {
    if (accountIds.length === 0 || kinds.length === 0) return new Map();
    const rows = await this.query<{ account: string; kind: string; subject: string; period: string; beyond: boolean }>(
      sql`select account_id as account, kind, subject, period, is_beyond as beyond from ${this.table('states')}
        where account_id in ${idsOf(accountIds)} and kind in ${idsOf(kinds)}`,
    );
    const stateOf = ({ kind, subject, period, beyond }: (typeof rows)[number]) =>
      [stateKey(kind, subject), { period, isBeyond: beyond }] as const;
    const byAccount = [...Map.groupBy(rows, ({ account }) => account)];
    return new Map(byAccount.map(([account, ofAccount]) => [account, new Map(ofAccount.map(stateOf))] as const));
  }

  /**
   * Stores changes of one account, and in the same transaction the messages that `messagesFor` makes of those that no other
   * process has stored. Returns how many messages.
   */
  cross(
    accountId: string,
    changes: readonly StateChange[],
    at: number,
    messagesFor: (stored: readonly StateChange[]) => readonly NewMessage[],
  ): Promise<number> {
    return this.#database.orm.transaction(async (tx) => {
      const stored: StateChange[] = [];
      for (const change of changes) {
        const { kind, subject, period, isBeyond } = change;
        const rows = await this.query(
          sql`insert into ${this.table('states')} as states (account_id, kind, subject, period, is_beyond, at)
            values (${accountId}, ${kind}, ${subject}, ${period}, ${isBeyond}, ${instant(at)})
            on conflict (account_id, kind, subject) do update
              set period = excluded.period, is_beyond = excluded.is_beyond, at = excluded.at
              where (states.period, states.is_beyond) is distinct from (excluded.period, excluded.is_beyond)
            returning kind`,
          tx,
        );
        if (rows.length > 0) stored.push(change);
      }
      let count = 0;
      for (const { kind, channels, message } of messagesFor(stored))
        for (const channel of channels) {
          await tx.execute(sql`insert into ${this.table('messages')} (account_id, kind, channel, message, made_at, due_at)
            values (${accountId}, ${kind}, ${channel}, ${jsonOf(message)}, ${instant(at)}, now())`);
          count++;
        }
      return count;
    });
  }

  /** The latest, newest first. */
  async messages(accountId: string, most: number): Promise<StoredMessage[]> {
    const rows = await this.query<{
      kind: string;
      channel: NoticeChannel;
      message: string;
      at: number;
      sent: number | null;
      fault: string | null;
      waits: boolean;
    }>(sql`select kind, channel, message::text as message, ${millisecondsOf(sql`made_at`)} as at,
        ${millisecondsOf(sql`sent_at`)} as sent, fault, due_at is not null as waits
      from ${this.table('messages')} where account_id = ${accountId} order by made_at desc, id limit ${most}::int`);
    return rows.map(({ message, sent, fault, ...row }) => ({
      ...row,
      message: JSON.parse(message) as NoticeMessage,
      sentAt: sent ?? undefined,
      fault: fault ?? undefined,
    }));
  }

  async removeOld(madeBefore: number, seenBefore: number): Promise<void> {
    await this.query(sql`delete from ${this.table('messages')} where made_at < ${instant(madeBefore)}`);
    await this.query(sql`delete from ${this.table('states')} where at < ${instant(seenBefore)} and period <> ''`);
  }
}
