/** Messages on their way: each is tried a few times, by one process, to the people or the webhook of its account. */
import { type SQL, sql } from 'drizzle-orm';
import type { Host } from '../../core/contract/contract.ts';
import { consolePages, mailers } from '../common/domain/admin/alerts.ts';
import { accountPeople, type NoticeChannel } from '../common/domain/admin/notices.ts';
import type { Database } from '../common/domain/database.ts';
import { faultOf, post, Refused } from '../common/kit/fetch/post.ts';
import { signedHeaders } from '../common/kit/fetch/webhooks.ts';
import { DueWatch } from '../common/kit/jobs/due-watch.ts';
import { backOff, givenBack, Leases, nextDueMs } from '../common/kit/jobs/leases.ts';
import { inMs, millisecondsOf } from '../common/kit/sql.ts';
import type { NoticeMessage, NoticeRows } from './rows.ts';

const atOnce = 8;
const timeoutMs = 10_000;
/** Longer than sending takes, so that no other process sends the same message. */
const leaseMs = 60_000;
/** About four hours in all. */
const mostTries = 12;
const firstPauseMs = 10_000;
const longestPauseMs = 3_600_000;
/** Messages of other processes, and of those that are gone, are found this late at most. */
const longestWaitMs = 60_000;
/** The receiver says that it wants no more. */
const gone = 410;

interface Row {
  readonly id: string;
  readonly account: string;
  readonly kind: string;
  readonly channel: NoticeChannel;
  readonly message: string;
  readonly at: number;
  readonly tries: number;
}
/** A message that is sent, or a test. */
interface Delivery {
  readonly id: string;
  readonly accountId: string;
  readonly kind: string;
  readonly at: number;
  readonly message: NoticeMessage;
}

export class Deliveries {
  readonly #host: Host;
  readonly #rows: NoticeRows;
  readonly #leases: Leases<Row>;
  readonly #watch: DueWatch;
  readonly #isPrivateAllowed: () => boolean;
  #running: Promise<void> | undefined;

  constructor(host: Host, { orm }: Pick<Database, 'orm'>, rows: NoticeRows, isPrivateAllowed: () => boolean) {
    this.#host = host;
    this.#rows = rows;
    this.#isPrivateAllowed = isPrivateAllowed;
    const columns = sql`taken.id::text as id, account_id as account, kind, channel, message::text as message,
      ${millisecondsOf(sql`made_at`)} as at, tries`;
    const table = rows.table('messages');
    this.#leases = new Leases({ runner: orm, table, columns });
    this.#watch = new DueWatch({
      clock: host.clock,
      nextMs: () => nextDueMs(orm, table),
      longestMs: longestWaitMs,
    });
  }

  /** This process has made messages. */
  changed(): void {
    this.#watch.changed();
  }

  /** Call it every so often; undefined: none was due when it was last asked. Runs do not overlap. */
  look(): Promise<void> | undefined {
    if (this.#running !== undefined) return this.#running;
    const looking = this.#watch.look(() => this.#sendDue());
    this.#running = looking?.finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #sendDue(): Promise<void> {
    const lease = this.#host.random.bytes(12).toString('hex');
    const due = await this.#leases.take(lease, atOnce, leaseMs);
    await Promise.all(due.map((row) => this.#deliver(row, lease)));
  }

  async #deliver(row: Row, lease: string): Promise<void> {
    const message = JSON.parse(row.message) as NoticeMessage;
    const { id, account: accountId, kind, at } = row;
    const failed = await this.send(row.channel, { id, accountId, kind, at, message });
    if (failed === undefined) {
      await this.#write(row, lease, sql`due_at = null, sent_at = now(), fault = null`);
      return;
    }
    const tries = row.tries + 1;
    const isLast = failed.isFinal || tries >= mostTries;
    if (isLast) this.#host.log.warn({ account: accountId, kind, reason: failed.fault }, 'a notice was given up');
    const { random } = this.#host;
    const due = isLast ? sql`null` : inMs(backOff(row.tries, firstPauseMs, longestPauseMs, random));
    await this.#write(row, lease, sql`due_at = ${due}, fault = ${failed.fault}`);
  }

  async #write({ id }: Row, lease: string, changes: SQL): Promise<void> {
    await this.#leases.change(id, lease, sql`tries = tries + 1, ${givenBack}, ${changes}`);
  }

  /** undefined: it was taken. */
  async send(channel: NoticeChannel, delivery: Delivery): Promise<{ fault: string; isFinal: boolean } | undefined> {
    try {
      await (channel === 'mail' ? this.#mail(delivery) : this.#post(delivery));
      return undefined;
    } catch (error) {
      const isFinal = error instanceof Final || (error instanceof Refused && error.status === gone);
      return { fault: faultOf(error), isFinal };
    }
  }

  async #mail({ accountId, message: { title, text } }: Delivery): Promise<void> {
    const mailer = this.#host.find(mailers)?.find();
    if (mailer === undefined) throw new Final('this gateway sends no mail');
    const people = await this.#host.find(accountPeople)?.mailsOf([accountId]);
    const addresses = people?.get(accountId) ?? [];
    if (addresses.length === 0) throw new Final('no person of the account has a confirmed address');
    // Where it is chosen which notices are sent.
    const page = this.#host.find(consolePages)?.address(`/profile?account=${accountId}`);
    const lines = page === undefined ? [text] : [text, '', page];
    const subject = `${this.#host.gateway}: ${title}`;
    await mailer.send({ to: addresses.join(', '), subject, text: `${lines.join('\n')}\n`, unsubscribe: page });
  }

  async #post({ id, accountId, kind, at, message }: Delivery): Promise<void> {
    const settings = await this.#rows.settings(accountId);
    if (settings?.url === undefined) throw new Final('the account has no webhook any more');
    const named = { type: `notice.${kind}`, timestamp: new Date(at).toISOString(), gateway: this.#host.gateway };
    const body = { ...named, account: accountId, ...message };
    const sentAt = new Date(this.#host.clock.now());
    await post(this.#host.fetch, {
      url: settings.url,
      body,
      headers: signedHeaders(settings.secrets, id, sentAt, JSON.stringify(body)),
      signal: AbortSignal.timeout(timeoutMs),
      allowPrivate: this.#isPrivateAllowed(),
    });
  }
}

/** Another try would end like this one. */
class Final extends Refused {}
